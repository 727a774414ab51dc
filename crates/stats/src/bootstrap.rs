//! The interval of a mean by resampling, for cases where the mean matters: a bill is paid by the
//! mean, not by the median.

use crate::order::Random;
use crate::{Interval, mean, quantile};

const RESAMPLES: usize = 4_000;

/// The mean of the samples and the interval it is in but for a chance of `alpha`: the percentiles
/// of the means of resamples, which `seed` repeats. `None` with fewer than two samples.
pub fn mean_interval(samples: &[f64], alpha: f64, seed: u64) -> Option<Interval> {
    if samples.len() < 2 {
        return None;
    }
    let mut random = Random::new(seed);
    let count = samples.len();
    // Resampling makes a small sample's spread too small by √((n−1)/n): stretched by as much.
    let stretch = (count as f64 / (count as f64 - 1.0)).sqrt();
    let middle = mean(samples)?;
    let means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let sum: f64 = (0..count).map(|_| samples[random.below(count)]).sum();
            middle + (sum / count as f64 - middle) * stretch
        })
        .collect();
    Some(Interval {
        point: middle,
        low: quantile(&means, alpha / 2.0)?,
        high: quantile(&means, 1.0 - alpha / 2.0)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_mean() {
        let mut random = Random::new(2);
        let missed = (0..400)
            .filter(|n| {
                let samples: Vec<f64> = (0..20).map(|_| random.normal()).collect();
                !mean_interval(&samples, 0.05, *n).unwrap().contains(0.0)
            })
            .count();
        assert!((8..38).contains(&missed), "{missed} of 400");
    }

    #[test]
    fn a_seed_repeats_it_and_one_sample_has_none() {
        let samples: Vec<f64> = (1..20).map(|n| f64::from(n).sqrt()).collect();
        assert_eq!(mean_interval(&samples, 0.05, 1), mean_interval(&samples, 0.05, 1));
        assert_ne!(mean_interval(&samples, 0.05, 1), mean_interval(&samples, 0.05, 2));
        assert_eq!(mean_interval(&[1.0], 0.05, 1), None);
    }
}
