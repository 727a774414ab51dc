//! The result of a claim's test, and the criteria that tests decide by.
//!
//! The invariant: a time decides by its interval and never by its value alone. With fewer visits
//! than an interval needs there is no interval, and nothing is decided.

use iotomy_record::ClaimVerdict;
use iotomy_stats::{Interval, Line};
use serde_json::{Value, json};

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
    fn a_quotient_is_as_wide_as_both_of_its_parts_allow() {
        let interval = |point, low, high| Interval { point, low, high };
        let found = quotient(interval(6.0, 4.0, 8.0), interval(2.0, 1.0, 4.0)).unwrap();
        assert_eq!((found.point, found.low, found.high), (3.0, 1.0, 8.0));
        let found = quotient(interval(0.0, -4.0, 8.0), interval(2.0, 1.0, 4.0)).unwrap();
        assert_eq!((found.low, found.high), (-4.0, 8.0));
        assert_eq!(quotient(interval(1.0, 1.0, 1.0), interval(2.0, -1.0, 4.0)), None);
    }
}
