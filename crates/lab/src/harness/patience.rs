//! How long others are waited for: processes that get ready, fall asleep or answer.

use std::time::{Duration, Instant};

use iotomy_host::Skip;
use iotomy_record::Case;

/// Only to stop what would hang: thousands of processes on a loaded machine take some seconds.
const MOST: Duration = Duration::from_secs(120);

/// A wait ends with the time of the run, or when nothing can come of it any more.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Patience {
    /// When the time of the run is up; `None` is never.
    end: Option<Instant>,
}

/// A wait under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    until: Instant,
    is_of_run: bool,
}

impl Patience {
    /// With so much left of the run.
    pub(crate) fn for_time_left(left: Option<Duration>) -> Self {
        Self { end: left.and_then(|left| Instant::now().checked_add(left)) }
    }

    /// When the time of the run is up.
    pub(crate) fn end(self) -> Option<Instant> {
        self.end
    }

    /// A wait that begins now.
    pub(crate) fn begin(self) -> Waiting {
        let most = Instant::now() + MOST;
        let until = self.end.map_or(most, |end| end.min(most));
        Waiting { until, is_of_run: until < most }
    }
}

impl Waiting {
    /// Whether it has been long enough.
    pub(crate) fn is_over(self) -> bool {
        Instant::now() >= self.until
    }

    /// How long it still goes on.
    pub(crate) fn left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// The reason when the wait was in vain: `reason`, unless the run's time was up.
    pub(crate) fn in_vain(self, reason: &str) -> Skip {
        Skip(if self.is_of_run { Case::NO_TIME } else { reason }.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_the_run_and_says_so() {
        let waiting = Patience::for_time_left(Some(Duration::ZERO)).begin();
        assert!(waiting.is_over() && waiting.left().is_zero());
        assert_eq!(waiting.in_vain("nobody came"), Skip(Case::NO_TIME.to_owned()));
        for endless in [
            Patience::for_time_left(None),
            Patience::for_time_left(Some(Duration::MAX)),
            Patience::default(),
        ] {
            let waiting = endless.begin();
            assert!(!waiting.is_over() && endless.end().is_none());
            assert_eq!(waiting.in_vain("nobody came"), Skip("nobody came".to_owned()));
        }
    }
}
