//! Wilcoxon's rank sums (Mann and Whitney): how far two samples lie apart that were not drawn in pairs.
//!
//! It rests on less than the pairs of a race do: that all measurements of both samples are independent,
//! and that the samples differ by a shift alone. Runs of two sessions on one machine fulfil that only as
//! far as the machine was in the same state in both, which [`crate::sessions`] accounts for.

use crate::signed_rank::deviate;
use crate::{Interval, median};

/// Up to this many pairs of measurements the distribution is exact; beyond, normal.
const EXACT: usize = 900;

/// By how much `other` is above `base` (Hodges and Lehmann), and the interval that holds it but for a
/// chance of `alpha`; `None` when there are too few measurements to be that sure.
pub fn shift_between(base: &[f64], other: &[f64], alpha: f64) -> Option<Interval> {
    let left_out = left_out(base.len(), other.len(), alpha)?;
    let mut apart: Vec<f64> =
        other.iter().flat_map(|one| base.iter().map(move |base| one - base)).collect();
    apart.sort_by(f64::total_cmp);
    Some(Interval {
        point: median(&apart)?,
        low: *apart.get(left_out)?,
        high: *apart.get(apart.len() - 1 - left_out)?,
    })
}

/// How many of the differences to leave out at each end.
fn left_out(first: usize, second: usize, alpha: f64) -> Option<usize> {
    if first == 0 || second == 0 {
        return None;
    }
    if first * second <= EXACT {
        return exact(first, second, alpha);
    }
    let (n, m) = (first as f64, second as f64);
    let spread = (n * m * (n + m + 1.0) / 12.0).sqrt();
    let sum = n * m / 2.0 - 0.5 - deviate(alpha / 2.0) * spread;
    (sum >= 0.0).then_some(sum.floor() as usize)
}

/// By the distribution of the number of pairs in which the second is the larger.
fn exact(first: usize, second: usize, alpha: f64) -> Option<usize> {
    let most = first * second;
    // The number of ways to reach each sum with the ranks so far: a division of polynomials, whose
    // quotient is Gauss's binomial coefficient.
    let mut ways = vec![0.0f64; most + 1];
    ways[0] = 1.0;
    for step in 1..=first {
        for sum in ((step + second)..=most).rev() {
            ways[sum] -= ways[sum - step - second];
        }
        for sum in step..=most {
            ways[sum] += ways[sum - step];
        }
    }
    let all: f64 = ways.iter().sum();
    let mut tail = 0.0;
    let small = ways.iter().take_while(|ways| {
        tail += **ways / all;
        tail <= alpha / 2.0
    });
    small.count().checked_sub(1)
}

/// The fewest measurements to compare with `count` others for an interval that is wrong at most
/// `alpha` of the time; `None` where a hundred do not suffice.
pub(crate) fn fewest_against(count: usize, alpha: f64) -> Option<usize> {
    (1..=100).find(|more| left_out(count, *more, alpha).is_some())
}

/// The fewest measurements of either side, as many of the one as of the other.
pub(crate) fn fewest_each(alpha: f64) -> Option<usize> {
    (1..=100).find(|count| left_out(*count, *count, alpha).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Random;

    #[test]
    fn critical_sums_are_those_of_the_tables() {
        // The largest sums that reject at 5 %, both sides, as printed tables of U have them.
        let table = [
            (3, 3, None),
            (3, 5, Some(0)),
            (4, 4, Some(0)),
            (5, 5, Some(2)),
            (5, 8, Some(6)),
            (8, 8, Some(13)),
            (10, 10, Some(23)),
            (12, 20, Some(69)),
            (20, 20, Some(127)),
        ];
        for (first, second, wanted) in table {
            assert_eq!(left_out(first, second, 0.05), wanted, "{first} {second}");
            assert_eq!(left_out(second, first, 0.05), wanted, "{second} {first}");
        }
        assert_eq!(left_out(0, 5, 0.05), None);
    }

    /// The percentage of all orders of equally many runs of two equal commands that is called
    /// different: those whose interval excludes 0.
    fn exact_error(each: usize) -> f64 {
        let (mut orders, mut wrong) = (0, 0);
        for order in 0u32..1 << (2 * each) {
            if order.count_ones() as usize != each {
                continue;
            }
            let ranks = |is_other| -> Vec<f64> {
                let of = |rank: &usize| (order >> rank & 1 == 1) == is_other;
                (0..2 * each).filter(of).map(|rank| rank as f64).collect()
            };
            orders += 1;
            let found = shift_between(&ranks(false), &ranks(true), 0.05).unwrap();
            wrong += usize::from(!found.contains(0.0));
        }
        100.0 * wrong as f64 / f64::from(orders)
    }

    #[test]
    fn few_runs_are_wrong_as_often_as_the_guide_says() {
        let guide = include_str!("../../../docs/race.md");
        let [four, five] = [4, 5].map(|each| format!("{:.1}", exact_error(each)));
        assert_eq!((four.as_str(), five.as_str()), ("2.9", "3.2"));
        for (runs, rate) in [(4, four), (5, five)] {
            let row = format!("| {runs} of each, exact | {rate} |");
            assert!(guide.lines().any(|line| line == row), "docs/race.md has no row {row}");
        }
    }

    #[test]
    fn the_normal_distribution_goes_on_where_the_exact_one_ends() {
        let exact = exact(30, 30, 0.05).unwrap();
        let normal = left_out(30, 31, 0.05).unwrap();
        assert!((exact..exact + 20).contains(&normal), "{exact} {normal}");
    }

    /// A session against itself, with heavy-tailed noise, as in `race --against`.
    #[test]
    fn a_command_against_its_own_baseline_is_called_different_five_times_in_a_hundred() {
        let mut random = Random::new(17);
        for (first, second) in [(8, 8), (20, 30), (60, 60)] {
            let missed = (0..2_000)
                .filter(|_| {
                    let mut draw = |count| (0..count).map(|_| random.heavy()).collect::<Vec<_>>();
                    let (base, other) = (draw(first), draw(second));
                    !shift_between(&base, &other, 0.05).unwrap().contains(0.0)
                })
                .count();
            assert!((40..=125).contains(&missed), "{missed} of 2000 at {first} and {second}");
        }
    }

    #[test]
    fn a_shift_is_found_where_it_is() {
        let base: Vec<f64> = (0..20).map(f64::from).collect();
        let other: Vec<f64> = base.iter().map(|x| x + 12.0).collect();
        let found = shift_between(&base, &other, 0.05).unwrap();
        assert!((found.point - 12.0).abs() < 1e-12 && found.low > 6.0, "{found:?}");
    }

    #[test]
    fn so_few_measurements_can_be_sure_and_fewer_cannot() {
        assert_eq!((fewest_each(0.05), fewest_each(0.01)), (Some(4), Some(5)));
        assert_eq!((fewest_against(20, 0.05), fewest_against(3, 0.05)), (Some(2), Some(5)));
        assert_eq!((fewest_against(1, 0.05), fewest_against(0, 0.05)), (Some(39), None));
    }
}
