//! A straight line through points, and how surely it rises.

use crate::student::t975;

/// A line with the least squares of distances (in y), each weighed or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Where it is at x = 0.
    pub intercept: f64,
    /// How much it rises with each x.
    pub slope: f64,
    /// The interval of the slope, wrong 5 times in 100; `None` of two points.
    pub slope_ci95: Option<[f64; 2]>,
    /// The share of the points' variance that lies in the line, 0 to 1; weighed as the distances are.
    pub r2: f64,
    /// The distance of the line from the point it misses most, as a share of that point: for a line
    /// that rises over decades the largest points dominate `r2`, which hides this. `None` where a
    /// point is not above 0.
    pub miss: Option<f64>,
    /// Whether distances are weighed as shares of their points; `r2` is weighted alike.
    pub is_weighted: bool,
}

/// The line with the least squares of distances through points (x, y); `None` unless there are two
/// different x.
pub fn line(points: &[(f64, f64)]) -> Option<Line> {
    weighted(points, |_| 1.0, false)
}

/// The same with each distance as a share of its point: for times from microseconds to seconds,
/// with proportional errors, the longest then do not decide alone where the line begins. Where a
/// point is not above 0, there are no shares, and it is [`line()`].
pub fn line_by_shares(points: &[(f64, f64)]) -> Option<Line> {
    match points.iter().all(|(_, y)| *y > 0.0) {
        true => weighted(points, |y| y.powi(-2), true),
        false => line(points),
    }
}

fn weighted(points: &[(f64, f64)], weight: impl Fn(f64) -> f64, is_weighted: bool) -> Option<Line> {
    let n = points.len() as f64;
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|(x, y)| weight(*y) * of(*x, *y)).sum()
    };
    let all = sum(&|_, _| 1.0);
    let (mean_x, mean_y) = (sum(&|x, _| x) / all, sum(&|_, y| y) / all);
    let across = sum(&|x, _| (x - mean_x).powi(2));
    if points.len() < 2 || across <= 0.0 {
        return None;
    }
    let slope = sum(&|x, y| (x - mean_x) * (y - mean_y)) / across;
    let intercept = mean_y - slope * mean_x;
    let total = sum(&|_, y| (y - mean_y).powi(2));
    let left = sum(&|x, y| (y - intercept - slope * x).powi(2));
    // Points on a level line are all on it.
    let r2 = if total > 0.0 { (1.0 - left / total).max(0.0) } else { 1.0 };
    let slope_ci95 = (points.len() > 2).then(|| {
        let half = t975(points.len() - 2) * (left / (n - 2.0) / across).sqrt();
        [slope - half, slope + half]
    });
    let miss = points.iter().try_fold(0.0, |most: f64, (x, y)| {
        (*y > 0.0).then(|| most.max(((intercept + slope * x) / y - 1.0).abs()))
    });
    Some(Line { intercept, slope, slope_ci95, r2, miss, is_weighted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Random;

    #[test]
    fn points_on_a_line_give_that_line() {
        let points: Vec<(f64, f64)> = (0..6).map(f64::from).map(|x| (x, 3.0 + 2.0 * x)).collect();
        let found = line(&points).unwrap();
        assert!((found.intercept - 3.0).abs() < 1e-9 && (found.slope - 2.0).abs() < 1e-9);
        assert!((found.r2 - 1.0).abs() < 1e-12);
        let level = line(&[(1.0, 5.0), (2.0, 5.0), (9.0, 5.0)]).unwrap();
        assert_eq!((level.slope, level.r2, level.miss), (0.0, 1.0, Some(0.0)));
        assert_eq!(line(&[(1.0, 2.0)]), None);
        assert_eq!(line(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(line(&[(1.0, 2.0), (2.0, 3.0)]).unwrap().slope_ci95, None);
    }

    #[test]
    fn a_line_through_decades_tells_how_far_it_misses_the_small() {
        let found = line(&[(10.0, 10.0), (100.0, 100.0), (9_000.0, 9_000.0)]).unwrap();
        assert!(found.miss.unwrap() < 1e-9, "{found:?}");
        let bent = line(&[(10.0, 10.0), (1_000.0, 1_000.0), (9_000.0, 18_000.0)]).unwrap();
        assert!(bent.r2 > 0.99 && bent.intercept < 0.0, "{bent:?}");
        assert!(bent.miss.unwrap() > 10.0, "{bent:?}");
        assert_eq!(line(&[(1.0, 0.0), (2.0, 3.0)]).unwrap().miss, None);
    }

    #[test]
    fn a_line_by_shares_begins_where_the_small_points_say() {
        let points: Vec<(f64, f64)> = (0..6).map(f64::from).map(|x| (x, 3.0 + 2.0 * x)).collect();
        let found = line_by_shares(&points).unwrap();
        assert!((found.intercept - 3.0).abs() < 1e-9 && (found.slope - 2.0).abs() < 1e-9);
        // A tenth too much at the end, which without weights moves the start below 0.
        let late = [(1.0, 65.0), (128.0, 573.0), (512.0, 2_332.0)];
        assert!(line(&late).unwrap().miss.unwrap() > 0.2);
        let found = line_by_shares(&late).unwrap();
        assert!(found.miss.unwrap() < 0.06 && (55.0..65.0).contains(&found.intercept), "{found:?}");
        // Without a share of 0 there is the usual line.
        let with_zero = [(1.0, 0.0), (2.0, 3.0), (3.0, 5.0)];
        assert_eq!(line_by_shares(&with_zero), line(&with_zero));
        assert_eq!([found.is_weighted, line(&with_zero).unwrap().is_weighted], [true, false]);
    }

    /// The first of Anscombe's quartet, as R's `lm` and `confint` have it.
    #[test]
    fn a_line_known_from_a_reference() {
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        let found = line(&points).unwrap();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 5e-4, "{a} {b}");
        close(found.intercept, 3.0001);
        close(found.slope, 0.5001);
        close(found.r2, 0.6665);
        close(found.slope_ci95.unwrap()[0], 0.2334);
        close(found.slope_ci95.unwrap()[1], 0.7668);
        // The normal equations with weights 1/y², solved in fractions.
        let found = line_by_shares(&points).unwrap();
        close(found.intercept, 2.5477);
        close(found.slope, 0.5130);
        close(found.r2, 0.6997);
        close(found.miss.unwrap(), 0.2735);
        close(found.slope_ci95.unwrap()[0], 0.2595);
        close(found.slope_ci95.unwrap()[1], 0.7664);
    }

    #[test]
    fn the_slopes_interval_holds_the_slope() {
        let mut random = Random::new(31);
        let missed = (0..1_000)
            .filter(|_| {
                let points: Vec<_> =
                    (0..6).map(f64::from).map(|x| (x, 2.0 * x + random.normal())).collect();
                let [low, high] = line(&points).unwrap().slope_ci95.unwrap();
                low > 2.0 || high < 2.0
            })
            .count();
        assert!((25..80).contains(&missed), "{missed} of 1000");
    }
}
