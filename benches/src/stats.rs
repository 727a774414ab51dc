//! Medians of paired figures and their confidence intervals, from [`iotomy_stats`]. No clock, no
//! I/O.
//!
//! The intervals use order statistics: the median of the population lies between the k-th smallest
//! and the k-th largest sample with a probability that depends only on the binomial distribution,
//! whatever the distribution of the noise. On a shared machine that matters more than a narrow
//! interval.

pub use iotomy_stats::median;
use iotomy_stats::{Summary, median_interval};

/// The fewest samples from which a 95 % interval of the median exists: 1 − 2 / 2⁶ = 96.9 %.
pub const FEWEST: usize = 6;

/// A median and its interval of at least 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median of the samples.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// Returns the median, or NaN without samples.
pub fn median_or_nan(samples: &[f64]) -> f64 {
    median(samples).unwrap_or(f64::NAN)
}

/// Returns the median of `samples` and its interval; with fewer than [`FEWEST`] samples, the
/// interval is their range. Returns `None` without samples.
pub fn estimate(samples: &[f64]) -> Option<Estimate> {
    let all = Summary::from_samples(samples)?;
    let [low, high] = median_interval(samples).unwrap_or([all.min, all.max]);
    Some(Estimate { median: all.median, low, high })
}

/// Returns the ratio of one figure to another of the same block, block by block. Returns `None` unless both have a
/// figure in every block, because otherwise the pairs are unknown.
pub fn ratio(one: &[f64], other: &[f64]) -> Option<Estimate> {
    let ratios = || one.iter().zip(other).map(|(one, other)| one / other).collect::<Vec<f64>>();
    if one.len() == other.len() { estimate(&ratios()) } else { None }
}

/// Returns the 5th percentile: nearly the fastest sample, but not a single outlier.
pub fn undisturbed(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 20).copied()
}

/// Returns the 95 % confidence interval of a proportion (Wilson's).
pub fn wilson(hits: usize, all: usize) -> [f64; 2] {
    let (n, z) = (all.max(1) as f64, 1.96f64);
    let p = hits as f64 / n;
    let middle = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    [(middle - half).max(0.0), (middle + half).min(1.0 + z * z / n)]
        .map(|end| end / (1.0 + z * z / n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_shares_are_those_of_the_tables() {
        // Newcombe (1998): 15 of 148 and 0 of 20.
        for (hits, all, low, high) in [(15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)] {
            let found = wilson(hits, all);
            assert!((found[0] - low).abs() < 1e-3 && (found[1] - high).abs() < 1e-3, "{found:?}");
        }
    }

    #[test]
    fn ratios_are_of_the_same_block() {
        let found = ratio(&[10.0, 20.0, 30.0], &[20.0, 40.0, 60.0]);
        assert_eq!(found, Some(Estimate { median: 0.5, low: 0.5, high: 0.5 }));
        assert_eq!(ratio(&[10.0, 20.0], &[20.0]), None);
    }

    #[test]
    fn without_samples_there_is_no_estimate() {
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
    fn few_samples_have_their_range_and_more_leave_some_out() {
        let of = |count: i32| {
            let samples: Vec<f64> = (1..=count).map(f64::from).collect();
            estimate(&samples).map(|found| (found.median, found.low, found.high))
        };
        assert_eq!(of(5), Some((3.0, 1.0, 5.0)));
        assert_eq!(of(FEWEST as i32), Some((3.5, 1.0, 6.0)));
        assert_eq!(of(9), Some((5.0, 2.0, 8.0)));
    }

    #[test]
    fn one_wild_sample_moves_nothing() {
        let mut samples = [10.0; 15];
        samples[3] = 1e9;
        assert_eq!(estimate(&samples), Some(Estimate { median: 10.0, low: 10.0, high: 10.0 }));
    }
}
