//! What counts of a part of the time are multiplied by.

/// By how much sums of windows are multiplied: a ratio of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Factor {
    whole: u64,
    part: u64,
}

impl Factor {
    /// Of what was counted all the time.
    pub const ONE: Self = Self { whole: 1, part: 1 };

    /// What a part of a time, which is not 0, is multiplied by for the whole.
    pub(crate) fn new(whole: u64, part: u64) -> Self {
        Self { whole, part }
    }

    /// The estimate, to the nearest.
    pub fn of(self, seen: u64) -> u64 {
        let (whole, part) = (u128::from(self.whole), u128::from(self.part));
        let scaled = (u128::from(seen) * whole + part / 2) / part;
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// The ratio.
    pub fn ratio(self) -> f64 {
        self.whole as f64 / self.part as f64
    }
}
