//! The result of a claim's test, and the criteria of the tests.
//!
//! The invariant: a time decides by its interval and never by itself. With samples of fewer visits than
//! an interval takes there is none, and nothing is decided.

use iotomy_record::ClaimVerdict;
use iotomy_stats::{Interval, Line};
use serde_json::{Value, json};

use super::Cases;

/// Visits below which nothing that was timed decides a claim: Student's interval takes three.
pub(crate) const ENOUGH: usize = 3;

/// The result of a claim's test.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Whether it is so.
    pub verdict: ClaimVerdict,
    /// Why, in a sentence with the numbers.
    pub because: String,
    /// The numbers.
    pub evidence: Vec<(&'static str, Value)>,
}

impl Judgement {
    /// It holds where `is_so`, else it fails.
    pub fn from_bool(is_so: bool, because: impl Into<String>) -> Self {
        let verdict = if is_so { ClaimVerdict::Holds } else { ClaimVerdict::Fails };
        Self { verdict, because: because.into(), evidence: Vec::new() }
    }

    /// The numbers do not tell.
    pub fn inconclusive(because: impl Into<String>) -> Self {
        Self { verdict: ClaimVerdict::Inconclusive, because: because.into(), evidence: Vec::new() }
    }

    /// By an interval: it holds when all of it is above `bound`, and fails when all of it is below.
    pub fn above(interval: Interval, bound: f64, because: impl Into<String>) -> Self {
        let verdict = if interval.low > bound {
            ClaimVerdict::Holds
        } else if interval.high < bound {
            ClaimVerdict::Fails
        } else {
            ClaimVerdict::Inconclusive
        };
        Self { verdict, because: because.into(), evidence: Vec::new() }
    }

    /// By an interval: it holds when all of it is below `bound`, and fails when all of it is above.
    pub fn below(interval: Interval, bound: f64, because: impl Into<String>) -> Self {
        let verdict = if interval.high < bound {
            ClaimVerdict::Holds
        } else if interval.low > bound {
            ClaimVerdict::Fails
        } else {
            ClaimVerdict::Inconclusive
        };
        Self { verdict, because: because.into(), evidence: Vec::new() }
    }

    /// With a number it rests on.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.evidence.push((name, value.into()));
        self
    }

    /// With an interval it rests on.
    #[must_use]
    pub fn with_interval(self, name: &'static str, of: Interval) -> Self {
        self.with(name, json!({"value": of.point, "ci95": [of.low, of.high]}))
    }

    /// With a line it rests on.
    #[must_use]
    pub fn with_line(self, name: &'static str, of: Line) -> Self {
        let value = json!({
            "intercept": of.intercept, "slope": of.slope, "slope_ci95": of.slope_ci95, "r2": of.r2,
            "miss": of.miss, "weighted": of.is_weighted,
        });
        self.with(name, value)
    }
}

/// The growth of a line along an axis from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// It changes so little that it has not doubled at its end, nor gone, wherever in its interval the
    /// slope lies.
    Level,
    /// It rises, and is one.
    Rises,
    /// It rises, and what it goes through rises by more than a line does.
    Steepens,
    /// The rounds do not tell.
    Unsure,
}

/// The line along an axis of three numbers or more, and the last place it goes through.
pub(crate) fn along(cases: &Cases<'_>, axis: &str) -> Option<(Line, (f64, f64))> {
    let last = cases.medians(axis).into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let line = cases.line(axis).filter(|_| cases.numbers(axis).len() >= 3)?;
    Some((line, last))
}

/// How much of the differences of the medians a line is to be, to be one.
const A_LINE: f64 = 0.9;

impl Growth {
    /// Of a line along an axis, and of the last place it goes through.
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

/// The quotient of two numbers that are known by intervals, as wide as both allow; `None` where what is
/// divided by may be 0 or less.
pub(crate) fn quotient(of: Interval, by: Interval) -> Option<Interval> {
    if by.low <= 0.0 || by.point <= 0.0 {
        return None;
    }
    let low = of.low / if of.low < 0.0 { by.low } else { by.high };
    let high = of.high / if of.high < 0.0 { by.high } else { by.low };
    Some(Interval { point: of.point / by.point, low, high })
}

/// The interval of a line's slope, where rounds enough have one.
pub(crate) fn slope(line: &Line) -> Option<Interval> {
    let [low, high] = line.slope_ci95?;
    Some(Interval { point: line.slope, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_decides_or_does_not() {
        let interval = |low, high| Interval { point: low, low, high };
        let above = |low, high| Judgement::above(interval(low, high), 1.0, "").verdict;
        let below = |low, high| Judgement::below(interval(low, high), 1.0, "").verdict;
        assert_eq!([above(1.1, 2.0), below(0.1, 0.9)], [ClaimVerdict::Holds; 2]);
        assert_eq!([above(0.1, 0.9), below(1.1, 2.0)], [ClaimVerdict::Fails; 2]);
        assert_eq!([above(0.9, 1.1), below(0.9, 1.1)], [ClaimVerdict::Inconclusive; 2]);
    }

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

    #[test]
    fn a_quotient_is_as_wide_as_both_of_its_parts_allow() {
        let interval = |point, low, high| Interval { point, low, high };
        let found = quotient(interval(6.0, 4.0, 8.0), interval(2.0, 1.0, 4.0)).unwrap();
        assert_eq!((found.point, found.low, found.high), (3.0, 1.0, 8.0));
        let found = quotient(interval(0.0, -4.0, 8.0), interval(2.0, 1.0, 4.0)).unwrap();
        assert_eq!((found.low, found.high), (-4.0, 8.0));
        assert_eq!(quotient(interval(1.0, 1.0, 1.0), interval(2.0, -1.0, 4.0)), None);
    }
}
