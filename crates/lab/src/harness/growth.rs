//! The course of a line along an axis.

use iotomy_stats::Line;

use super::Cases;

/// The course of a line along an axis, from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// It changes so little that the value has neither doubled nor dropped to 0 at the end of the
    /// line, wherever in its interval the slope lies.
    Level,
    /// It rises, and the points lie on a line.
    Rises,
    /// It rises, and the points rise by more than a line does.
    Steepens,
    /// The rounds are not enough to decide.
    Unsure,
}

/// Fits a line along an axis of three numbers or more; returns it with its last point.
pub(crate) fn along(cases: &Cases<'_>, axis: &str) -> Option<(Line, (f64, f64))> {
    let last = cases.medians(axis).into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let line = cases.line(axis).filter(|_| cases.numbers(axis).len() >= 3)?;
    Some((line, last))
}

/// The share of the differences of the medians that a line must explain to count as one.
const A_LINE: f64 = 0.9;

impl Growth {
    /// Classifies a line along an axis, given its last point.
    pub(crate) fn from_line(line: &Line, (most, last): (f64, f64)) -> Self {
        let Some([low, high]) = line.slope_ci95 else { return Self::Unsure };
        let start = line.intercept.abs();
        if low.abs().max(high.abs()) * most < start {
            Self::Level
        } else if low > 0.0 && line.r2 >= A_LINE && line.slope * most >= start {
            Self::Rises
        } else if low > 0.0
            && line.slope * most >= start
            && last > line.intercept + line.slope * most
        {
            Self::Steepens
        } else {
            Self::Unsure
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_level_or_rises_by_the_interval_of_its_slope() {
        let line = |slope: f64, ends: Option<[f64; 2]>| Line {
            intercept: 100.0,
            slope,
            slope_ci95: ends,
            r2: 0.99,
            miss: None,
            is_weighted: true,
        };
        let growth = |slope, ends| Growth::from_line(&line(slope, ends), (1_000.0, 5_100.0));
        let bent = |last| {
            let line = Line { r2: 0.8, ..line(5.0, Some([4.0, 6.0])) };
            Growth::from_line(&line, (1_000.0, last))
        };
        assert_eq!([bent(9_000.0), bent(3_000.0)], [Growth::Steepens, Growth::Unsure]);
        assert_eq!(growth(0.01, Some([0.0, 0.05])), Growth::Level);
        assert_eq!(growth(5.0, Some([4.0, 6.0])), Growth::Rises);
        assert_eq!(growth(0.01, Some([-5.0, 5.0])), Growth::Unsure);
        assert_eq!(growth(5.0, Some([-1.0, 9.0])), Growth::Unsure);
        assert_eq!(growth(5.0, None), Growth::Unsure, "of too few rounds");
    }
}
