//! A straight line through points, and how surely it rises.

/// The line with the least squares of distances (in y).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Where it is at x = 0.
    pub intercept: f64,
    /// How much it rises with each x.
    pub slope: f64,
    /// The interval of the slope, wrong 5 times in 100; `None` of two points.
    pub slope_ci95: Option<[f64; 2]>,
    /// The share of the points' variance that lies in the line, 0 to 1.
    pub r2: f64,
}

/// The line through points (x, y); `None` unless there are two different x.
pub fn line(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let across = sum(&|point| (point.0 - x).powi(2));
    if points.len() < 2 || across <= 0.0 {
        return None;
    }
    let slope = sum(&|point| (point.0 - x) * (point.1 - y)) / across;
    let intercept = y - slope * x;
    let total = sum(&|point| (point.1 - y).powi(2));
    let left = sum(&|point| (point.1 - intercept - slope * point.0).powi(2));
    // Points on a level line are all on it.
    let r2 = if total > 0.0 { (1.0 - left / total).max(0.0) } else { 1.0 };
    let slope_ci95 = (points.len() > 2).then(|| {
        let half = student_t(points.len() - 2) * (left / (n - 2.0) / across).sqrt();
        [slope - half, slope + half]
    });
    Some(Line { intercept, slope, slope_ci95, r2 })
}

/// The 97.5 % point of Student's t, as printed tables have it; between their rows, the row before,
/// which errs on the wide side.
fn student_t(freedom: usize) -> f64 {
    const TABLE: [(usize, f64); 18] = [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (4, 2.776),
        (5, 2.571),
        (6, 2.447),
        (7, 2.365),
        (8, 2.306),
        (9, 2.262),
        (10, 2.228),
        (12, 2.179),
        (15, 2.131),
        (20, 2.086),
        (25, 2.060),
        (30, 2.042),
        (60, 2.000),
        (120, 1.980),
        (1_000, 1.962),
    ];
    let row = TABLE.iter().rev().find(|(rows, _)| *rows <= freedom);
    row.map_or(f64::INFINITY, |(_, t)| *t)
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
        assert_eq!((level.slope, level.r2), (0.0, 1.0));
        assert_eq!(line(&[(1.0, 2.0)]), None);
        assert_eq!(line(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(line(&[(1.0, 2.0), (2.0, 3.0)]).unwrap().slope_ci95, None);
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
