//! Medians of paired figures and how sure they are. No clock, no I/O.
//!
//! The interval is of order statistics: the median of the population lies between the k-th
//! smallest and the k-th largest sample with a probability that only the binomial distribution
//! decides, whatever the noise is distributed like. On a shared machine that matters more than a
//! narrow interval.

/// Fewest samples from which a 95 % interval of the median exists: 1 − 2 / 2⁶ = 96.9 %.
pub const FEWEST: usize = 6;

/// A median and its interval of at least 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median of the samples.
    pub median: f64,
    /// Where the interval begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

/// The median of `samples` and its interval; with fewer than [`FEWEST`] the interval is their
/// range. `None` without samples.
pub fn estimate(samples: &[f64]) -> Option<Estimate> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = rank(sorted.len());
    Some(Estimate {
        median: median_of_sorted(&sorted)?,
        low: *sorted.get(rank)?,
        high: *sorted.get(sorted.len().checked_sub(rank + 1)?)?,
    })
}

/// The median of `samples`, or `None` without any.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

/// The sample a twentieth from the bottom: nearly the fastest, and no accident of one.
pub fn undisturbed(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 20).copied()
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get((sorted.len() - 1) / 2)?;
    Some((lower + upper) / 2.0)
}

/// How many samples to leave out at each end: the most that keep 95 %.
fn rank(samples: usize) -> usize {
    // P(X ≤ k) of a binomial(n, 1/2), summed term by term until a tail holds more than 2.5 %.
    let mut term = 0.5f64.powi(samples.try_into().unwrap_or(i32::MAX));
    let (mut tail, mut left_out) = (term, 0);
    while left_out < samples / 2 {
        term *= (samples - left_out) as f64 / (left_out + 1) as f64;
        tail += term;
        if tail > 0.025 {
            break;
        }
        left_out += 1;
    }
    left_out
}

/// The mean and the standard deviation of the samples; zeroes without any.
pub fn mean_and_stddev(samples: &[f64]) -> (f64, f64) {
    if samples.is_empty() {
        return (0.0, 0.0);
    }
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Order;

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(estimate(&[]), None);
    }

    #[test]
    fn what_disturbs_most_samples_is_left_out() {
        let mut samples = [20.0; 100];
        samples[7..20].fill(10.0);
        samples[50] = 1.0;
        assert_eq!(undisturbed(&samples), Some(10.0));
        assert_eq!(undisturbed(&[3.0]), Some(3.0));
        assert_eq!(undisturbed(&[]), None);
    }

    #[test]
    fn ranks_are_those_of_the_tables() {
        // Samples left out at each end for 95 %, as tables of the sign test have them.
        for (samples, left_out) in [(5, 0), (6, 0), (8, 0), (9, 1), (11, 1), (15, 3), (21, 5)] {
            assert_eq!(rank(samples), left_out, "{samples}");
        }
    }

    #[test]
    fn the_interval_holds_the_median_of_the_population() {
        let mut order = Order::new(7);
        let missed = (0..2_000)
            .filter(|_| {
                // Squared: skewed, with a median of 0.25.
                let samples: Vec<f64> = (0..15).map(|_| order.unit().powi(2)).collect();
                let found = estimate(&samples).unwrap();
                found.low > 0.25 || found.high < 0.25
            })
            .count();
        assert!(missed < 120, "{missed} of 2000");
    }

    #[test]
    fn one_wild_sample_moves_nothing() {
        let mut samples = [10.0; 15];
        samples[3] = 1e9;
        assert_eq!(estimate(&samples), Some(Estimate { median: 10.0, low: 10.0, high: 10.0 }));
    }
}
