//! Statistics of paired measurements: the order of runs, estimates with intervals, and verdicts
//! that may be tested repeatedly.
//!
//! Pure: no clock, no I/O, and no randomness but from a seed. The one rule of the crate: a
//! statement of 95 % is wrong at most 5 times in 100 for every distribution of the noise, because
//! it relies on the random order of the runs, which [`order`] generates, and not on a model of the
//! machine.

mod bootstrap;
mod change;
mod few;
mod fit;
#[cfg(test)]
mod machines;
pub mod order;
pub mod outliers;
pub mod permutation;
pub mod sequential;
pub mod sessions;
mod signed_rank;
mod student;
mod summary;
mod unpaired;
mod windows;

pub use bootstrap::mean_interval;
pub use change::changes;
pub use few::centre_interval;
pub use fit::{Line, line, line_by_shares};
pub use signed_rank::{CriticalRanks, deviate, shift_interval};
pub use student::t975;
pub use summary::{Summary, mad, mean, median, median_interval, quantile, stddev};
pub use unpaired::shift_between;
pub use windows::{Estimate, Series, VarianceSum, Windows};

/// A figure and its interval at the requested confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub point: f64,
    /// The least it may be.
    pub low: f64,
    /// The most it may be.
    pub high: f64,
}

impl Interval {
    /// Each of the three through a function that rises, as `exp` does.
    #[must_use]
    pub fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self { point: rising(self.point), low: rising(self.low), high: rising(self.high) }
    }

    /// Whether `value` is inside, its ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}
