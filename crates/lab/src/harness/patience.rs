//! How long a run waits for others: processes that get ready, block or answer.

use std::time::{Duration, Instant};

use iotomy_host::Skip;
use iotomy_record::Case;

/// Only a guard against hanging: thousands of processes on a loaded machine take a few seconds.
const MOST: Duration = Duration::from_secs(120);

/// The limit of waits: the run's time, or a maximum after which nothing can be expected any more.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Patience {
    /// When the time of the run is up; `None` means never.
    end: Option<Instant>,
}

/// A wait in progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    until: Instant,
    is_of_run: bool,
}

impl Patience {
    /// Creates a limit from the time left of the run.
    pub(crate) fn for_time_left(left: Option<Duration>) -> Self {
        Self { end: left.and_then(|left| Instant::now().checked_add(left)) }
    }

    /// Returns when the time of the run is up.
    pub(crate) fn end(self) -> Option<Instant> {
        self.end
    }

    /// Begins a wait.
    pub(crate) fn begin(self) -> Waiting {
        let most = Instant::now() + MOST;
        let until = self.end.map_or(most, |end| end.min(most));
        Waiting { until, is_of_run: until < most }
    }
}

impl Waiting {
    /// Whether the limit is reached.
    pub(crate) fn is_over(self) -> bool {
        Instant::now() >= self.until
    }

    /// Returns the time left.
    pub(crate) fn left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Returns the error for a wait in vain: the reason given, unless the run's time was up.
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
