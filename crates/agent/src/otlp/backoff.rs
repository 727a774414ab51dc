//! How long to wait after a push that failed, as the specification of OTLP has it: twice as long each time, with chance in
//! it, and not less than the collector asks for.

use std::time::Duration;

/// After the first one that failed.
const FIRST: Duration = Duration::from_secs(1);

/// The longest wait, unless the collector asks for a longer one.
const LONGEST: Duration = Duration::from_secs(60);

/// The longest wait that a collector is followed in.
const LONGEST_ASKED: Duration = Duration::from_secs(3_600);

/// The waits of pushes that fail one after another.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failed: u32,
}

impl Backoff {
    /// The next wait. `chance` is from 0 to 1, so that machines whose collector comes back do not ask it all at once.
    pub(super) fn next(&mut self, asked: Option<Duration>, chance: f64) -> Duration {
        let doubled = FIRST.saturating_mul(2u32.saturating_pow(self.failed));
        self.failed = self.failed.saturating_add(1);
        let wait = doubled.min(LONGEST).mul_f64(0.5 + 0.5 * chance.clamp(0.0, 1.0));
        wait.max(asked.unwrap_or_default().min(LONGEST_ASKED))
    }

    /// One was taken, or is not tried again.
    pub(super) fn reset(&mut self) {
        self.failed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_a_bound_and_begin_again() {
        let mut backoff = Backoff::default();
        let mut next = |asked, chance| backoff.next(asked, chance).as_millis();
        assert_eq!(
            [0; 8].map(|_| next(None, 1.0)),
            [1, 2, 4, 8, 16, 32, 60, 60].map(|s| s * 1_000)
        );
        // However many there were.
        assert!((0..100).all(|_| next(None, 1.0) == 60_000));
        assert_eq!(next(None, 0.0), 30_000);
        backoff.reset();
        assert_eq!(backoff.next(None, 0.0).as_millis(), 500);
    }

    #[test]
    fn no_wait_is_shorter_than_the_collector_asks_or_for_ever() {
        let mut backoff = Backoff::default();
        let asked = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(backoff.next(asked(7), 1.0), Duration::from_secs(7));
        assert_eq!(backoff.next(asked(0), 1.0), Duration::from_secs(2));
        assert_eq!(backoff.next(asked(120), 1.0), Duration::from_secs(120));
        assert_eq!(backoff.next(asked(u64::MAX), 1.0), LONGEST_ASKED);
    }
}
