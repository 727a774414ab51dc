//! A part of the time that was counted, and what follows from it for the whole.
//!
//! A record has what was counted, as it was; a report shows estimates of the whole ([`Trace::scaled`]). Switches are seen
//! all the time: thread time, blocked time, run queue delay and CPU time are exact, and stay as they are.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::statistic::{Joins, Statistics};
use crate::{Call, Factor, LedgerRow, Trace};

/// The windows of time in which calls were counted: those that were entered in one, until they returned.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// One window of so many was to be open: `--sample 1/N`.
    pub n: u32,
    /// The length of a window.
    pub window_ns: u64,
    /// How many were open.
    pub windows: u64,
    /// How long they were open in all.
    pub open_ns: u64,
    /// The time of which they are part.
    pub watched_ns: u64,
    /// How far the estimates of all calls together may be off. Absent where fewer than two windows were open: that is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margins: Option<Margins>,
    /// The same by call, over all processes. Empty where it is not known; calls whose number is not below 511 are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallMargins>,
}

/// How far estimates may be off: the true value is so near in 95 of 100 watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Margins {
    /// Of the number of calls that returned.
    pub calls: u64,
    /// Of the number of errors.
    pub errors: u64,
    /// Of the bytes moved.
    pub bytes: u64,
    /// Of the time from entry to return.
    pub wall_ns: u64,
}

/// The margins of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallMargins {
    /// The call's name, as in `calls`.
    pub syscall: String,
    /// Of its estimates.
    pub margins: Margins,
}

impl Sample {
    /// The factor of estimates, at least 1; and 1 where no window was open, for nothing was seen then.
    pub fn factor(&self) -> Factor {
        match self.open_ns {
            0 => Factor::ONE,
            part => Factor::new(self.watched_ns.max(part), part),
        }
    }

    /// The margins of a call, where they are known.
    pub fn margins_of(&self, syscall: &str) -> Option<Margins> {
        self.calls.iter().find(|one| one.syscall == syscall).map(|one| one.margins)
    }
}

impl Trace {
    /// The record with estimates in place of what windows saw; itself where all of the time was counted.
    pub fn scaled(&self) -> Cow<'_, Self> {
        let Some(factor) = self.sample.as_ref().map(Sample::factor) else {
            return Cow::Borrowed(self);
        };
        let mut whole = self.clone();
        whole.calls.iter_mut().for_each(|call| scale(call, factor));
        whole.ledger.iter_mut().for_each(|row| split(row, factor));
        Cow::Owned(whole)
    }
}

/// Multiplies the sums of a row. Maxima are those of what was seen.
fn scale(call: &mut Call, factor: Factor) {
    let sums =
        Call::statistics().filter(|one| matches!(one.shape.joins, Joins::Sum | Joins::Gauge));
    sums.for_each(|sum| (sum.field.scale)(call, factor));
}

/// The on-CPU time of calls is an estimate, and what is left of all on-CPU time is the user's.
fn split(row: &mut LedgerRow, factor: Factor) {
    let on_cpu = row.user_ns.saturating_add(row.calls_on_cpu_ns);
    row.calls_on_cpu_ns = factor.of(row.calls_on_cpu_ns).min(on_cpu);
    row.user_ns = on_cpu - row.calls_on_cpu_ns;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;

    fn sample(open_ns: u64, watched_ns: u64) -> Sample {
        Sample { n: 10, window_ns: 10, windows: 4, open_ns, watched_ns, ..Sample::default() }
    }

    #[test]
    fn estimates_are_what_was_seen_times_the_factor_to_the_nearest() {
        let factor = sample(30, 100).factor();
        assert_eq!([0, 1, 2, 3, 300].map(|seen| factor.of(seen)), [0, 3, 7, 10, 1_000]);
        assert_eq!(factor.of(u64::MAX), u64::MAX);
        // A clock that differs makes no whole smaller than its windows.
        assert_eq!(sample(101, 100).factor().of(7), 7);
        assert_eq!(sample(0, 100).factor().of(0), 0);
    }

    #[test]
    fn sums_and_distributions_are_scaled_and_the_exact_times_stay() {
        let mut call = Call { calls: 3, errors: 1, bytes: 70, wall_ns: 900, ..Call::default() };
        call.error_kinds.insert("EIO".into(), 1);
        (call.blocked_ns, call.in_flight, call.max_ns) = (Some(40), 1, 500);
        [100, 300, 500].into_iter().for_each(|ns| call.wall_times.add(ns));
        call.wall_log2 = call.wall_times.log2();
        let ledger = LedgerRow {
            thread_ns: 10_000,
            user_ns: 4_000,
            calls_on_cpu_ns: 860,
            blocked_ns: 5_000,
            runnable_ns: 140,
            ..LedgerRow::default()
        };
        let record = Trace {
            calls: vec![call],
            ledger: vec![ledger],
            sample: Some(sample(25, 100)),
            ..Trace::default()
        };
        let scaled = record.scaled();
        let call = &scaled.calls[0];
        assert_eq!((call.calls, call.errors, call.bytes, call.wall_ns), (12, 4, 280, 3_600));
        assert_eq!((call.error_kinds["EIO"], call.in_flight), (4, 4));
        assert_eq!((call.blocked_ns, call.max_ns), (Some(160), 500));
        assert_eq!((call.wall_times.total(), call.wall_times.max_ns), (12, 500));
        assert_eq!(call.wall_log2.total(), 12);
        let row = &scaled.ledger[0];
        assert_eq!((row.user_ns, row.calls_on_cpu_ns), (1_420, 3_440));
        assert_eq!((row.thread_ns, row.blocked_ns, row.runnable_ns), (10_000, 5_000, 140));
    }

    proptest! {
        #[test]
        fn nothing_is_estimated_below_what_was_seen(record in arbitrary::trace()) {
            let scaled = record.scaled();
            for (seen, estimate) in record.calls.iter().zip(&scaled.calls) {
                prop_assert!(estimate.calls >= seen.calls && estimate.wall_ns >= seen.wall_ns);
            }
            for (seen, estimate) in record.ledger.iter().zip(&scaled.ledger) {
                prop_assert!(estimate.user_ns <= seen.user_ns);
            }
            prop_assert!(record.sample.is_some() || matches!(scaled, Cow::Borrowed(_)));
        }
    }
}
