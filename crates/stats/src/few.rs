//! The centre of a sample, however small: by ranks where there are enough measurements, by Student's
//! distribution where there are not.

use crate::student::t975;
use crate::{Interval, mean, shift_interval, stddev};

/// How often an interval may be wrong.
const ALPHA: f64 = 0.05;

/// The centre of independent measurements and an interval that holds it but for 5 times in 100; `None`
/// of one or two. With fewer than six it rests on noise that is no better than normal, and is wide:
/// nothing that rests on less can be that sure of so few.
pub fn centre_interval(samples: &[f64]) -> Option<Interval> {
    if let Some(found) = shift_interval(samples, ALPHA) {
        return Some(found);
    }
    let freedom = samples.len().checked_sub(1).filter(|freedom| *freedom >= 2)?;
    let (point, spread) = (mean(samples)?, stddev(samples)?);
    let half = t975(freedom) * spread / (samples.len() as f64).sqrt();
    Some(Interval { point, low: point - half, high: point + half })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Random;

    /// `t.test(c(4, 5, 9))` of R gives 6 and -0.572 to 12.572.
    #[test]
    fn an_interval_of_three_known_from_a_reference() {
        let found = centre_interval(&[4.0, 5.0, 9.0]).unwrap();
        assert!((found.point - 6.0).abs() < 1e-12, "{found:?}");
        assert!((found.low + 0.572).abs() < 2e-3, "{found:?}");
    }

    #[test]
    fn few_measurements_are_wrong_no_more_often_than_many() {
        let mut random = Random::new(5);
        for count in [3, 4, 5, 6, 12] {
            let missed = (0..2_000)
                .filter(|_| {
                    let samples: Vec<f64> = (0..count).map(|_| random.heavy() + 3.0).collect();
                    !centre_interval(&samples).unwrap().contains(3.0)
                })
                .count();
            assert!(missed <= 125, "{missed} of 2000 with {count}");
        }
        assert_eq!(centre_interval(&[1.0, 2.0]), None);
        assert_eq!(centre_interval(&[]), None);
    }

    /// Simulated samples of a few visits: those of one visit share an offset.
    #[test]
    fn samples_of_a_few_visits_taken_for_independent_are_wrong_most_of_the_time() {
        let mut random = Random::new(29);
        let (mut naive, mut by_visit) = (0, 0);
        for _ in 0..1_000 {
            let visits: Vec<Vec<f64>> = (0..3)
                .map(|_| {
                    let offset = 1.25 * random.normal();
                    (0..6).map(|_| offset + random.normal()).collect()
                })
                .collect();
            let all = visits.concat();
            let middles: Vec<f64> = visits.iter().filter_map(|one| mean(one)).collect();
            naive += usize::from(!centre_interval(&all).unwrap().contains(0.0));
            by_visit += usize::from(!centre_interval(&middles).unwrap().contains(0.0));
        }
        assert!(naive > 250, "{naive} of 1000");
        assert!(by_visit <= 70, "{by_visit} of 1000");
    }
}
