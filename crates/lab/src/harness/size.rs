//! How much of an experiment is run, and how long that takes at most.

use std::time::Duration;

/// How much of an experiment is run, where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Over in 20 s: enough to see the shape.
    Quick,
    /// Over in 3 minutes.
    Default,
    /// As the article had it, however long that takes.
    Full,
}

impl Size {
    /// As the record has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Default => "default",
            Self::Full => "full",
        }
    }

    /// How long is promised; the contract test holds the times below against it.
    pub fn promised(self) -> Option<Duration> {
        match self {
            Self::Quick => Some(Duration::from_secs(20)),
            Self::Default => Some(Duration::from_secs(180)),
            Self::Full => None,
        }
    }

    /// How long timing goes on at most, set-up included: less than what is promised by what is
    /// watched afterwards (`watched_time`), by a visit that had begun, and by what is taken down.
    pub fn max_time(self) -> Option<Duration> {
        match self {
            Self::Quick => Some(Duration::from_secs(11)),
            Self::Default => Some(Duration::from_secs(130)),
            Self::Full => None,
        }
    }
}

/// How long runs are watched at most, after timing of `max_time` at most: enough for some watched runs
/// whatever was asked for.
pub(crate) fn watched_time(max_time: Duration) -> Duration {
    (max_time / 5).max(Duration::from_secs(5))
}
