//! A part of the time that was counted, and what follows from it for the whole.
//!
//! A record has what was counted, as it was; a report shows estimates of the whole (`scaled.rs`). Switches are seen
//! all the time: thread time, blocked time, run queue delay and CPU time are exact, and stay as they are.

use serde::{Deserialize, Serialize};

use crate::Factor;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
