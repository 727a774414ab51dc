//! The size of a run, and its maximum duration.

use std::time::Duration;

/// How much of an experiment is run by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Takes up to 20 s: enough to see the shape.
    Quick,
    /// Takes up to 3 minutes.
    Default,
    /// The scale of the article, however long it takes.
    Full,
}

impl Size {
    /// The name in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Default => "default",
            Self::Full => "full",
        }
    }

    /// The promised duration; the contract test checks the times below against it.
    pub fn promised(self) -> Option<Duration> {
        match self {
            Self::Quick => Some(Duration::from_secs(20)),
            Self::Default => Some(Duration::from_secs(180)),
            Self::Full => None,
        }
    }

    /// Maximum duration of timing, including setup: the promised duration minus the time for
    /// watched runs (`watched_time`), for a visit in progress, and for taking down.
    pub fn max_time(self) -> Option<Duration> {
        match self {
            Self::Quick => Some(Duration::from_secs(11)),
            Self::Default => Some(Duration::from_secs(130)),
            Self::Full => None,
        }
    }
}

/// Maximum duration of watched runs after at most `max_time` of timing: enough for some watched
/// runs, whatever `max_time` is.
pub(crate) fn watched_time(max_time: Duration) -> Duration {
    (max_time / 5).max(Duration::from_secs(5))
}
