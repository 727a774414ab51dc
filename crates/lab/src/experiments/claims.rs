//! What a claim's test has to decide from: the cases, their ratios and lines through them.
//!
//! Pure: a saved record gives the same verdicts. Ratios are of samples of the same round, so that
//! what was slow at that time was so for both.

use iotomy_record::{AxisValue, Case, ClaimVerdict};
use iotomy_stats::{Interval, Line, line, shift_interval};
use serde_json::{Value, json};

/// How often an interval may be wrong.
const ALPHA: f64 = 0.05;

/// Some of a sweep's cases.
#[derive(Debug, Clone)]
pub struct Cases<'a>(Vec<&'a Case>);

/// What came of a claim's test.
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
    pub fn of(is_so: bool, because: impl Into<String>) -> Self {
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
        });
        self.with(name, value)
    }
}

impl<'a> Cases<'a> {
    /// All of these that were measured.
    pub fn of(cases: &'a [Case]) -> Self {
        Self(cases.iter().filter(|case| case.median.is_some()).collect())
    }

    /// Those where an axis has this name.
    #[must_use]
    pub fn named(&self, axis: &str, name: &str) -> Self {
        self.only(axis, &AxisValue::Name(name.to_owned()))
    }

    /// Those where an axis has this number.
    #[must_use]
    pub fn at(&self, axis: &str, number: u64) -> Self {
        self.only(axis, &AxisValue::Number(number))
    }

    fn only(&self, axis: &str, value: &AxisValue) -> Self {
        Self(self.0.iter().copied().filter(|case| case.params.get(axis) == Some(value)).collect())
    }

    /// Those of which this is so.
    #[must_use]
    pub fn filtered(&self, is_so: impl Fn(&Case) -> bool) -> Self {
        Self(self.0.iter().copied().filter(|case| is_so(case)).collect())
    }

    /// The first of them.
    pub fn first(&self) -> Option<&'a Case> {
        self.0.first().copied()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &'a Case> + '_ {
        self.0.iter().copied()
    }

    /// The numbers an axis has among them, rising.
    pub fn numbers(&self, axis: &str) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.0.iter().filter_map(|case| number(case, axis)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The medians along an axis of numbers.
    pub fn medians(&self, axis: &str) -> Vec<(f64, f64)> {
        let point = |case: &&Case| Some((number(case, axis)? as f64, case.median?));
        self.0.iter().filter_map(point).collect()
    }

    /// The line through the medians along an axis of numbers. The interval of its slope is that of the
    /// slopes through the samples of one round each, where there are enough.
    pub fn line(&self, axis: &str) -> Option<Line> {
        let found = line(&self.medians(axis))?;
        let slope = self.slopes(axis).and_then(|slopes| shift_interval(&slopes, ALPHA));
        let slope_ci95 = slope.map(|slope| [slope.low, slope.high]).or(found.slope_ci95);
        Some(Line { slope_ci95, ..found })
    }

    /// The slope through the first sample of each case, that through the second, and so on.
    fn slopes(&self, axis: &str) -> Option<Vec<f64>> {
        let rounds = self.0.iter().map(|case| case.samples.len()).min()?;
        let point = |case: &&Case, at: usize| Some((number(case, axis)? as f64, case.samples[at]));
        let slope = |at: usize| {
            let points: Vec<(f64, f64)> =
                self.0.iter().filter_map(|case| point(case, at)).collect();
            line(&points).map(|line| line.slope)
        };
        (0..rounds).map(slope).collect()
    }
}

/// The number an axis has in a case.
pub(super) fn number(case: &Case, axis: &str) -> Option<u64> {
    match case.params.get(axis) {
        Some(AxisValue::Number(number)) => Some(*number),
        _ => None,
    }
}

/// How many times `base` the `other` case takes, by pairs of samples of the same round; `None` with
/// too few of them, or where they are not above 0.
pub(super) fn ratio(base: &Case, other: &Case) -> Option<Interval> {
    let pairs = base.samples.iter().zip(&other.samples);
    let logs: Vec<f64> = pairs.map(|(base, other)| (other / base).ln()).collect();
    if logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    Some(shift_interval(&logs, ALPHA)?.map(f64::exp))
}

/// A ratio with its interval, as sentences have it: `1.37 (1.33 … 1.41)`.
pub(super) fn shown(of: Interval) -> String {
    format!("{} ({} … {})", digits(of.point), digits(of.low), digits(of.high))
}

/// A number with some three digits, a whole one without a fraction.
pub(super) fn digits(x: f64) -> String {
    match x.abs() {
        size if size >= 100.0 || size.fract() == 0.0 => grouped(x),
        size if size >= 10.0 => format!("{x:.1}"),
        size if size >= 0.1 => format!("{x:.2}"),
        _ => format!("{x:.4}"),
    }
}

fn grouped(x: f64) -> String {
    let digits = format!("{:.0}", x.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if x < 0.0 { format!("-{text}") } else { text }
}

/// A time in the unit that suits it.
pub(super) fn time(ns: f64) -> String {
    match ns.abs() {
        size if size < 1e3 => format!("{} ns", digits(ns)),
        size if size < 1e6 => format!("{} µs", digits(ns / 1e3)),
        size if size < 1e9 => format!("{} ms", digits(ns / 1e6)),
        _ => format!("{} s", digits(ns / 1e9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    pub(in crate::experiments) fn case(params: &[(&str, AxisValue)], samples: &[f64]) -> Case {
        super::super::runner::case_of(
            params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            ("time", "ns"),
            samples.to_vec(),
            BTreeMap::new(),
        )
    }

    #[test]
    fn a_ratio_is_of_pairs_so_that_what_was_slow_for_both_does_not_count() {
        let noise = [1.0, 5.0, 2.0, 9.0, 3.0, 4.0, 7.0, 1.5];
        let base = case(&[], &noise);
        let other = case(&[], &noise.map(|x| 2.0 * x));
        let found = ratio(&base, &other).unwrap();
        assert!((found.low - 2.0).abs() < 1e-9 && (found.high - 2.0).abs() < 1e-9);
        assert_eq!(shown(Interval { point: 2.25, low: 2.0, high: 12.34 }), "2.25 (2 … 12.3)");
        assert_eq!(ratio(&base, &case(&[], &[1.0, 2.0])), None);
        assert_eq!(ratio(&base, &case(&[], &[0.0; 8])), None);
    }

    #[test]
    fn an_interval_decides_or_does_not() {
        let interval = |low, high| Interval { point: low, low, high };
        let verdict = |low, high| Judgement::above(interval(low, high), 1.0, "").verdict;
        assert_eq!(verdict(1.1, 2.0), ClaimVerdict::Holds);
        assert_eq!(verdict(0.1, 0.9), ClaimVerdict::Fails);
        assert_eq!(verdict(0.9, 1.1), ClaimVerdict::Inconclusive);
    }

    #[test]
    fn cases_are_found_by_their_values() {
        let all: Vec<Case> = [("a", 1u64), ("a", 4), ("b", 2)]
            .map(|(name, n)| {
                let params = [("way", AxisValue::Name(name.into())), ("n", AxisValue::Number(n))];
                case(&params, &[n as f64 * 10.0 + 1.0])
            })
            .into();
        let cases = Cases::of(&all);
        assert_eq!(cases.numbers("n"), [1, 2, 4]);
        let line = cases.named("way", "a").line("n").unwrap();
        assert!((line.slope - 10.0).abs() < 1e-9 && (line.intercept - 1.0).abs() < 1e-9);
        assert_eq!(cases.named("way", "b").first().unwrap().median, Some(21.0));
        assert!(cases.named("way", "b").at("n", 1).first().is_none());
        assert_eq!(line.slope_ci95, None, "one sample each");
    }

    #[test]
    fn a_slope_is_sure_when_each_round_has_it() {
        let of = |n: u64| {
            let samples: Vec<f64> =
                (0..8).map(|round| f64::from(round % 3) + 5.0 * n as f64).collect();
            case(&[("n", AxisValue::Number(n))], &samples)
        };
        let all = [of(1), of(10), of(100)];
        let line = Cases::of(&all).line("n").unwrap();
        let [low, high] = line.slope_ci95.unwrap();
        assert!((line.slope - 5.0).abs() < 1e-9 && (low - 5.0).abs() < 1e-9, "{line:?}");
        assert!((high - 5.0).abs() < 1e-9, "{line:?}");
    }

    #[test]
    fn numbers_in_sentences_have_few_digits() {
        assert_eq!(
            [0.0, 0.01234, 0.5, 12.34, 1_234.5].map(digits),
            ["0", "0.0123", "0.50", "12.3", "1,234"]
        );
        assert_eq!([12.0, 1_500.0, 2.5e6, 3e9].map(time), ["12 ns", "1.50 µs", "2.50 ms", "3 s"]);
    }
}
