//! One value from many short batches.
//!
//! Between two reads of the clock there is only the work: samples go into memory reserved before.

use std::time::{Duration, Instant};

use iotomy_host::Skip;
use iotomy_stats::{median, quantile};

use super::limit::Figure;

/// Minimum duration of a batch of calls: some thousand times the duration of a clock read, and far
/// below the time between two timer interrupts.
const BATCH: Duration = Duration::from_micros(100);

/// Duration of the uncounted measurements at the start, so that the processor reaches its speed.
const WARM_UP: Duration = Duration::from_millis(5);

/// Minimum number of batches for a meaningful spread.
const LEAST: usize = 7;

/// The end of sampling: at `most` samples, or after `time` once there are a few.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub(super) time: Duration,
    pub(super) most: usize,
}

impl Budget {
    /// For calls of a few ns to a few µs.
    pub(super) const SHORT: Self = Self { time: Duration::from_millis(150), most: 501 };
    /// For operations of some ten µs and more.
    pub(super) const LONG: Self = Self { time: Duration::from_millis(300), most: 1_001 };

    /// Collects samples from `sample`, each a value in the limit's unit.
    pub(super) fn samples(
        self,
        mut sample: impl FnMut() -> Result<f64, Skip>,
    ) -> Result<Vec<f64>, Skip> {
        let mut samples = Vec::with_capacity(self.most);
        let begun = Instant::now();
        while samples.len() < self.most && (samples.len() < LEAST || begun.elapsed() < self.time) {
            samples.push(sample()?);
        }
        Ok(samples)
    }

    /// Returns the median and spread of the samples from `sample`.
    pub(super) fn figure(self, sample: impl FnMut() -> Result<f64, Skip>) -> Result<Figure, Skip> {
        figure(&self.samples(sample)?)
    }

    /// Measures ns per call; `calls` makes the given number of calls.
    pub(super) fn ns_per_call(
        self,
        mut calls: impl FnMut(u32) -> Result<(), Skip>,
    ) -> Result<Figure, Skip> {
        let count = batch_of(|count| timed(&mut calls, count))?;
        self.figure(|| Ok(timed(&mut calls, count)?.as_nanos() as f64 / f64::from(count)))
    }
}

/// Finds how many calls take [`BATCH`], while warming up; `timed` makes the given number of calls
/// and returns their duration.
fn batch_of(mut timed: impl FnMut(u32) -> Result<Duration, Skip>) -> Result<u32, Skip> {
    let (mut spent, mut count) = (Duration::ZERO, 1);
    loop {
        let took = timed(count)?;
        spent += took;
        let long_enough = took >= BATCH || count >= 1 << 24;
        if long_enough && spent >= WARM_UP {
            return Ok(count);
        }
        if !long_enough {
            count *= 2;
        }
    }
}

fn timed(calls: &mut impl FnMut(u32) -> Result<(), Skip>, count: u32) -> Result<Duration, Skip> {
    let begun = Instant::now();
    calls(count)?;
    Ok(begun.elapsed())
}

/// Returns the median and the distance between the quartiles.
pub(super) fn figure(samples: &[f64]) -> Result<Figure, Skip> {
    let quartiles = quantile(samples, 0.25).zip(quantile(samples, 0.75));
    match median(samples).zip(quartiles) {
        Some((value, (lower, upper))) => Ok(Figure { value, spread: upper - lower }),
        None => Err(Skip("nothing was measured".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_spoilt_batches_do_not_move_the_figure() {
        let mut samples = vec![10.0; 90];
        samples.extend([1e9; 10]);
        assert_eq!(figure(&samples).unwrap(), Figure { value: 10.0, spread: 0.0 });
        assert!(figure(&[]).is_err());
    }

    #[test]
    fn sampling_ends_at_the_number_asked_for_and_with_too_little_time_at_the_least() {
        let budget = Budget { time: Duration::from_secs(3_600), most: 20 };
        assert_eq!(budget.samples(|| Ok(1.0)).unwrap().len(), 20);
        let none = Budget { time: Duration::ZERO, most: 20 };
        assert_eq!(none.samples(|| Ok(1.0)).unwrap().len(), LEAST);
        assert_eq!(none.samples(|| Err(Skip("no".into()))), Err(Skip("no".into())));
    }

    #[test]
    fn a_batch_is_long_against_the_clock() {
        let (mut made, mut spent) = (Vec::new(), Duration::ZERO);
        let found = batch_of(|count| {
            let took = Duration::from_micros(10) * count;
            made.push(count);
            spent += took;
            Ok(took)
        });
        assert_eq!((found, made.last()), (Ok(16), Some(&16)));
        // The count is doubled until a batch is long enough; then the batch is repeated until the
        // processor is warm, and no longer.
        assert_eq!(made[..5], [1, 2, 4, 8, 16]);
        assert!(made[5..].iter().all(|count| *count == 16));
        assert!(spent >= WARM_UP && spent < WARM_UP + 2 * BATCH, "{spent:?}");
    }

    #[test]
    fn a_figure_is_of_as_many_batches_as_there_is_time_for() {
        let mut made = Vec::new();
        let budget = Budget { time: Duration::ZERO, most: 10 };
        let calls = |count| {
            made.push(count);
            Ok(())
        };
        budget.ns_per_call(calls).unwrap();
        let last = made.last().unwrap();
        assert!(made.ends_with(&[*last; LEAST]), "{made:?}");
    }
}
