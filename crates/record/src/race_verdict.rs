//! The verdict of a comparison.

use serde::{Deserialize, Serialize};

/// The verdict of a comparison, for the command that is not the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaceVerdict {
    /// It takes less.
    Faster,
    /// It takes more.
    Slower,
    /// It takes the same, apart from less than the smallest relevant effect.
    NoDifference,
    /// There are too few runs for a verdict.
    Undecided,
}
