//! Estimates of the whole from what a part of the time has counted.

use std::borrow::Cow;

use crate::statistic::{Joins, Statistics};
use crate::{Call, Factor, LedgerRow, Sample, Trace};

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
            sample: Some(Sample { open_ns: 25, watched_ns: 100, ..Sample::default() }),
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
