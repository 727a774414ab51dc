//! The result of a claim's test, and the criteria that tests decide by.
//!
//! The invariant: a time decides by its interval and never by its value alone. With fewer visits
//! than an interval needs there is no interval, and nothing is decided.

use iotomy_record::ClaimVerdict;
use iotomy_stats::{Interval, Line};
use serde_json::{Value, json};

use super::Cases;

/// Minimum number of visits for a time to decide a claim: Student's interval needs three.
pub(crate) const ENOUGH: usize = 3;

/// The result of a claim's test.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Whether the claim holds.
    pub verdict: ClaimVerdict,
    /// The reason, in a sentence with the numbers.
    pub because: String,
    /// The numbers.
    pub evidence: Vec<(&'static str, Value)>,
}

impl Judgement {
    /// The claim holds if `is_so`, and fails otherwise.
    pub fn from_bool(is_so: bool, because: impl Into<String>) -> Self {
        let verdict = if is_so { ClaimVerdict::Holds } else { ClaimVerdict::Fails };
        Self { verdict, because: because.into(), evidence: Vec::new() }
    }

    /// The numbers are not enough to decide.
    pub fn inconclusive(because: impl Into<String>) -> Self {
        Self { verdict: ClaimVerdict::Inconclusive, because: because.into(), evidence: Vec::new() }
    }

    /// Judges by an interval: the claim holds if all of it is above `bound`, and fails if all of it
    /// is below.
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

    /// Judges by an interval: the claim holds if all of it is below `bound`, and fails if all of it
    /// is above.
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

    /// Adds a number to the evidence.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.evidence.push((name, value.into()));
        self
    }

    /// Adds an interval to the evidence.
    #[must_use]
    pub fn with_interval(self, name: &'static str, of: Interval) -> Self {
        self.with(name, json!({"value": of.point, "ci95": [of.low, of.high]}))
    }

    /// Adds a line to the evidence.
    #[must_use]
    pub fn with_line(self, name: &'static str, of: Line) -> Self {
        let value = json!({
            "intercept": of.intercept, "slope": of.slope, "slope_ci95": of.slope_ci95, "r2": of.r2,
            "miss": of.miss, "weighted": of.is_weighted,
        });
        self.with(name, value)
    }
}

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

/// Divides two numbers known by intervals; the result's interval is as wide as both allow. Returns
/// `None` where the divisor may be 0 or less.
pub(crate) fn quotient(of: Interval, by: Interval) -> Option<Interval> {
    if by.low <= 0.0 || by.point <= 0.0 {
        return None;
    }
    let low = of.low / if of.low < 0.0 { by.low } else { by.high };
    let high = of.high / if of.high < 0.0 { by.high } else { by.low };
    Some(Interval { point: of.point / by.point, low, high })
}

/// Returns the interval of a line's slope, if enough rounds have one.
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
