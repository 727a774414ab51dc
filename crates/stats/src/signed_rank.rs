//! Wilcoxon's signed ranks: where a symmetric distribution has its centre, without knowing more of
//! it than that it is symmetric.
//!
//! The difference of two runs in random order is symmetric about the commands' true difference, so
//! the intervals hold on a machine whose noise is heavy-tailed, stepwise or drifting.

use crate::{Interval, median};

/// Up to this many samples the distribution is exact; past it, normal.
const EXACT: usize = 128;

/// The rank sums that are too small to be chance, for one number of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CriticalRanks {
    /// How many Walsh averages to leave out at each end.
    left_out: usize,
}

impl CriticalRanks {
    /// For `count` samples and intervals that are wrong at most `alpha` (0 to 1) of the time; `None`
    /// where so few samples cannot be that sure.
    pub fn new(count: usize, alpha: f64) -> Option<Self> {
        if count == 0 {
            return None;
        }
        let below = if count <= EXACT { exact(count, alpha) } else { normal(count, alpha) };
        below.map(|left_out| Self { left_out })
    }
}

/// How many of the smallest sums together have at most `alpha / 2`.
fn exact(count: usize, alpha: f64) -> Option<usize> {
    // The chance of each rank sum: each rank is in it or not, by the toss of a coin.
    let most = count * (count + 1) / 2;
    let mut chance = vec![0.0; most + 1];
    chance[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..=rank * (rank + 1) / 2).rev() {
            let with = if sum >= rank { chance[sum - rank] } else { 0.0 };
            chance[sum] = (chance[sum] + with) / 2.0;
        }
    }
    let mut tail = 0.0;
    let small = chance.iter().take_while(|chance| {
        tail += **chance;
        tail <= alpha / 2.0
    });
    match small.count() {
        0 => None,
        sums => Some(sums - 1),
    }
}

fn normal(count: usize, alpha: f64) -> Option<usize> {
    let n = count as f64;
    let mean = n * (n + 1.0) / 4.0;
    let spread = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    let sum = mean - 0.5 - deviate(alpha / 2.0) * spread;
    (sum >= 0.0).then_some(sum.floor() as usize)
}

/// The quantile of a normal distribution, in standard deviations above the mean, for an upper tail
/// of `upper`: by bisection, from a continued fraction of the tail that is accurate to more digits
/// than needed.
pub fn deviate(upper: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if tail(middle) > upper {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The share of a normal distribution above `z` standard deviations, for `z` of 0 or more.
pub(crate) fn tail(z: f64) -> f64 {
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z < 1.0 {
        // The series of the other half converges fast here.
        let (mut term, mut sum) = (z, z);
        for k in 1..60 {
            term *= z * z / f64::from(2 * k + 1);
            sum += term;
        }
        return 0.5 - density * sum;
    }
    let fraction = (1..200).rev().fold(z, |below, k| z + f64::from(k) / below);
    density / fraction
}

/// The centre of a symmetric distribution (Hodges and Lehmann) and the interval that holds it but
/// for a chance of `alpha`; `None` when there are too few samples for that.
pub fn shift_interval(samples: &[f64], alpha: f64) -> Option<Interval> {
    let CriticalRanks { left_out } = CriticalRanks::new(samples.len(), alpha)?;
    let mut averages: Vec<f64> = (0..samples.len())
        .flat_map(|i| (i..samples.len()).map(move |j| f64::midpoint(samples[i], samples[j])))
        .collect();
    averages.sort_by(f64::total_cmp);
    Some(Interval {
        point: median(&averages)?,
        low: *averages.get(left_out)?,
        high: *averages.get(averages.len() - 1 - left_out)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Random;

    #[test]
    fn critical_sums_are_those_of_the_tables() {
        // The largest sums that reject at 5 % and 1 %, both sides, as printed tables have them.
        let table = [
            (6, Some(0), None),
            (7, Some(2), None),
            (8, Some(3), Some(0)),
            (9, Some(5), Some(1)),
            (10, Some(8), Some(3)),
            (15, Some(25), Some(15)),
            (20, Some(52), Some(37)),
            (25, Some(89), Some(68)),
            (30, Some(137), Some(109)),
        ];
        for (count, five, one) in table {
            assert_eq!(exact(count, 0.05), five, "{count} at 5 %");
            assert_eq!(exact(count, 0.01), one, "{count} at 1 %");
        }
        assert_eq!(CriticalRanks::new(5, 0.05), None);
        assert_eq!(CriticalRanks::new(0, 0.05), None);
    }

    #[test]
    fn the_normal_distribution_goes_on_where_the_exact_one_ends() {
        for alpha in [0.05, 0.01, 0.001] {
            let (exact, normal) = (exact(EXACT, alpha).unwrap(), normal(EXACT, alpha).unwrap());
            assert!(exact.abs_diff(normal) * 100 < exact, "{exact} {normal}");
        }
    }

    #[test]
    fn normal_tails_are_those_of_the_tables() {
        for (upper, wanted) in
            [(0.025, 1.959_964), (0.005, 2.575_829), (0.5, 0.0), (0.2, 0.841_621)]
        {
            assert!((deviate(upper) - wanted).abs() < 1e-6, "{upper}: {}", deviate(upper));
        }
    }

    /// Darwin's fifteen pairs of maize (Fisher, The Design of Experiments): R's `wilcox.test` gives
    /// a pseudo-median of 3.125 and, exactly, 0.5 to 5.1875 eighths of an inch for the differences.
    #[test]
    fn an_interval_known_from_a_reference() {
        let differences = [
            6.125, -8.375, 1.0, 2.0, 0.75, 2.875, 3.5, 5.125, 1.75, 3.625, 7.0, 3.0, 9.375, 7.5,
            -6.0,
        ];
        let found = shift_interval(&differences, 0.05).unwrap();
        assert!((found.point - 3.125).abs() < 1e-12, "{found:?}");
        assert!((found.low - 0.5).abs() < 1e-12, "{found:?}");
        assert!((found.high - 5.1875).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn intervals_hold_the_centre_of_heavy_tailed_noise() {
        let mut random = Random::new(11);
        let missed = (0..4_000)
            .filter(|_| {
                let samples: Vec<f64> = (0..14).map(|_| random.heavy() + 3.0).collect();
                !shift_interval(&samples, 0.05).unwrap().contains(3.0)
            })
            .count();
        assert!((120..230).contains(&missed), "{missed} of 4000");
    }
}
