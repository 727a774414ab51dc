//! Which of a few values, one a machine, are apart from the others.
//!
//! The spread of the values is the median distance from their median ([`mad`]), which no outlier moves as long as fewer
//! than half are apart. Where more than half are equal, it is 0, and every other one counts as beyond it: only the least
//! difference decides then.

use crate::{mad, median};

/// Values below which none is called an outlier: of four, one alone is a quarter of all.
pub const FEWEST: usize = 5;

/// The least difference from the median that is called one, as a share of the median.
pub const LEAST_SHARE: f64 = 0.1;

/// How many spreads from the median an outlier is away at least, of so many values. Of few values the spread itself is
/// not known well.
pub fn spreads(count: usize) -> f64 {
    match count {
        0..=5 => 8.0,
        6 | 7 => 6.0,
        _ => 5.0,
    }
}

/// The positions of the values that are outliers: further from the median of all than [`spreads`] times the spread, than
/// [`LEAST_SHARE`] of the median, and than `least`. None of fewer than [`FEWEST`] values.
///
/// Of normally distributed values, in at most 6 of 100 samples any is called an outlier.
pub fn outliers(values: &[f64], least: f64) -> Vec<usize> {
    let (Some(middle), Some(spread)) = (median(values), mad(values)) else { return Vec::new() };
    if values.len() < FEWEST || values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let beyond = [spreads(values.len()) * spread, LEAST_SHARE * middle.abs(), least];
    let beyond = beyond.into_iter().fold(0.0, f64::max);
    let is_apart = |value: f64| (value - middle).abs() > beyond;
    (0..values.len()).filter(|at| is_apart(values[*at])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Random;

    #[test]
    fn one_that_is_apart_is_named_and_no_other() {
        assert_eq!(outliers(&[100.0, 101.0, 240.0, 99.0, 102.0, 100.0], 0.0), [2]);
        assert_eq!(outliers(&[100.0, 101.0, 20.0, 99.0, 102.0, 100.0], 0.0), [2]);
        assert_eq!(outliers(&[9.0, 100.0, 101.0, 99.0, 102.0, 100.0, 101.0, 900.0], 0.0), [0, 7]);
    }

    #[test]
    fn of_fewer_than_five_none_is_an_outlier() {
        for count in 0..FEWEST {
            let mut values = vec![100.0; count];
            values.iter_mut().take(1).for_each(|first| *first = 1e9);
            assert!(outliers(&values, 0.0).is_empty(), "{count}");
        }
        assert_eq!(outliers(&[1e9, 100.0, 100.0, 100.0, 100.0], 0.0), [0]);
    }

    #[test]
    fn values_that_are_equal_are_no_outliers_and_less_than_a_tenth_is_none() {
        assert!(outliers(&[7.0; 9], 0.0).is_empty());
        assert!(outliers(&[0.0; 9], 0.0).is_empty());
        let one = |value: f64, least: f64| outliers(&[1e3, 1e3, 1e3, 1e3, 1e3, value], least);
        assert!(one(1_100.0, 0.0).is_empty() && one(900.0, 0.0).is_empty());
        assert_eq!(one(1_101.0, 0.0), [5]);
        assert_eq!(one(899.0, 0.0), [5]);
        assert!(one(1_101.0, 200.0).is_empty());
        // Errors that only one machine has.
        assert_eq!(outliers(&[0.0, 0.0, 12.0, 0.0, 0.0], 10.0), [2]);
        assert!(outliers(&[0.0, 0.0, 9.0, 0.0, 0.0], 10.0).is_empty());
    }

    #[test]
    fn two_halves_have_no_outlier() {
        assert!(outliers(&[10.0, 10.0, 10.0, 50.0, 50.0, 50.0], 0.0).is_empty());
        assert!(outliers(&[10.0, 50.0, 11.0, 50.5, 10.5, 51.0, 10.2, 49.0], 0.0).is_empty());
    }

    #[test]
    fn what_is_no_number_is_said_nothing_of() {
        assert!(outliers(&[1.0, 1.0, f64::NAN, 1.0, 1.0, 9.0], 0.0).is_empty());
        assert!(outliers(&[1.0, 1.0, f64::INFINITY, 1.0, 1.0], 0.0).is_empty());
    }

    /// The spread of the noise is far above the least share, so that the rule of spreads alone decides.
    #[test]
    fn of_normal_noise_alone_any_is_named_in_at_most_6_of_100_samples() {
        let mut random = Random::new(11);
        for count in [5, 6, 7, 8, 10, 20, 50] {
            let mut any = 0;
            for _ in 0..4_000 {
                let values: Vec<f64> = (0..count).map(|_| random.normal()).collect();
                any += u32::from(!outliers(&values, 0.0).is_empty());
            }
            let share = f64::from(any) / 40.0;
            assert!(share <= 6.0, "{share} of 100 with {count} values");
        }
    }
}
