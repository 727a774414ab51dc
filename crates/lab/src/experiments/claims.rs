//! What a claim's test has to decide from: the cases, their ratios and lines through them.
//!
//! Pure: a saved record gives the same verdicts. Ratios are of the same round, so that what was slow at
//! that time was so for both.
//!
//! The one tricky thing: samples of one visit are alike, as what the caches, the memory and the
//! neighbours are like changes from visit to visit. So a visit counts once, by its median, however many
//! samples it gave.

use std::collections::BTreeMap;

use iotomy_record::{AxisValue, Case, ClaimVerdict};
use iotomy_stats::{Interval, Line, centre_interval, line, median};
use serde_json::{Value, json};

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
    /// slopes of one round each, where there are three or more.
    pub fn line(&self, axis: &str) -> Option<Line> {
        let along = |case: &Case| number(case, axis).map(|number| number as f64);
        let points: Vec<Point> = self
            .0
            .iter()
            .filter_map(|case| {
                let visits = by_visit(case, &case.samples).into_iter().collect();
                Some((along(case)?, case.median?, visits))
            })
            .collect();
        fitted(&points)
    }

    /// The same of what was measured besides with each sample.
    pub fn line_of(&self, extra: &str, axis: &str) -> Option<Line> {
        let along = |case: &Case| number(case, axis).map(|number| number as f64);
        let point = |case: &&Case| {
            let samples = case.extra_samples.get(extra)?;
            Some((along(case)?, median(samples)?, by_visit(case, samples).into_iter().collect()))
        };
        fitted(&self.0.iter().filter_map(point).collect::<Vec<_>>())
    }
}

/// A place on an axis, the median there, and that of each visit.
type Point = (f64, f64, BTreeMap<u64, f64>);

fn fitted(points: &[Point]) -> Option<Line> {
    let medians: Vec<(f64, f64)> = points.iter().map(|(x, y, _)| (*x, *y)).collect();
    let found = line(&medians)?;
    // Through the points of one round, where all of them were visited in it.
    let slope = |round: &u64| {
        let of_one = |(x, _, visits): &Point| Some((*x, *visits.get(round)?));
        line(&points.iter().map(of_one).collect::<Option<Vec<_>>>()?).map(|line| line.slope)
    };
    let slopes: Vec<f64> = points.first()?.2.keys().filter_map(slope).collect();
    let slope = centre_interval(&slopes);
    let slope_ci95 = slope.map(|slope| [slope.low, slope.high]).or(found.slope_ci95);
    Some(Line { slope_ci95, ..found })
}

/// The median of each visit of a case, with the number of its round, of something that was measured
/// with each sample. Where it was not kept which samples a visit gave, each counts as one.
pub(super) fn by_visit(case: &Case, samples: &[f64]) -> Vec<(u64, f64)> {
    let mut rest = samples;
    let mut medians = Vec::with_capacity(case.visits.len());
    for visit in &case.visits {
        let count = usize::try_from(visit.samples).unwrap_or(usize::MAX);
        let Some((of_visit, others)) = rest.split_at_checked(count) else { break };
        medians.extend(median(of_visit).map(|middle| (visit.round, middle)));
        rest = others;
    }
    if rest.is_empty() && !medians.is_empty() {
        return medians;
    }
    (1..).zip(samples.iter().copied()).collect()
}

/// The number an axis has in a case.
pub(super) fn number(case: &Case, axis: &str) -> Option<u64> {
    match case.params.get(axis) {
        Some(AxisValue::Number(number)) => Some(*number),
        _ => None,
    }
}

/// How many times `base` the `other` case takes, by pairs of visits of the same round; `None` with
/// fewer than three of them, or where they are not above 0.
pub(super) fn ratio(base: &Case, other: &Case) -> Option<Interval> {
    ratio_by(base, other, |case| Some(&case.samples))
}

/// The same of what was measured besides with each sample.
pub(super) fn ratio_of(extra: &str, base: &Case, other: &Case) -> Option<Interval> {
    ratio_by(base, other, |case| case.extra_samples.get(extra))
}

fn ratio_by(
    base: &Case,
    other: &Case,
    of: impl Fn(&Case) -> Option<&Vec<f64>>,
) -> Option<Interval> {
    let base: BTreeMap<u64, f64> = by_visit(base, of(base)?).into_iter().collect();
    let of_round = |(round, other): (u64, f64)| Some((other / base.get(&round)?).ln());
    let logs: Vec<f64> = by_visit(other, of(other)?).into_iter().filter_map(of_round).collect();
    if logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    Some(centre_interval(&logs)?.map(f64::exp))
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

/// A line's words: `3.10 µs + 38.2 ns × n (slope 37.9 … 38.5, R² 0.999)`.
pub(super) fn equation(line: &Line) -> String {
    let [low, high] = line.slope_ci95.unwrap_or([line.slope; 2]);
    format!(
        "{} + {} × n (slope {} … {} ns, R² {:.3})",
        time(line.intercept),
        time(line.slope),
        digits(low),
        digits(high),
        line.r2
    )
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
    use iotomy_record::Visit;
    pub(in crate::experiments) fn case(params: &[(&str, AxisValue)], samples: &[f64]) -> Case {
        super::super::figures::case_of(
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
        assert_eq!(ratio(&base, &case(&[], &[1.0, 2.0])), None, "two pairs");
        assert!(
            ratio(&base, &case(&[], &[2.0, 9.0, 4.1])).is_some(),
            "three: enough for the rough"
        );
        assert_eq!(ratio(&base, &case(&[], &[0.0; 8])), None);
    }

    #[test]
    fn samples_of_one_visit_count_once() {
        let visits = [1, 2, 4].map(|round| Visit { round, samples: 6, wall_ns: 1 });
        let of = |values: [f64; 3]| Case {
            visits: visits.into(),
            ..case(&[], &values.map(|value| [value; 6]).concat())
        };
        let (base, other) = (of([10.0, 10.0, 10.0]), of([8.0, 8.5, 10.5]));
        assert_eq!(by_visit(&other, &other.samples), [(1, 8.0), (2, 8.5), (4, 10.5)]);
        let found = ratio(&base, &other).unwrap();
        assert!(found.low < 0.8 && found.high > 1.0, "eighteen samples, three visits: {found:?}");
        let alone = |case: &Case| Case { visits: Vec::new(), ..case.clone() };
        let found = ratio(&alone(&base), &alone(&other)).unwrap();
        assert!(found.high < 1.0, "each for itself: {found:?}");
        // What does not add up is no visits at all.
        let odd =
            Case { visits: vec![Visit { round: 1, samples: 99, wall_ns: 1 }], ..other.clone() };
        assert_eq!(by_visit(&odd, &odd.samples).len(), 18);
        // Only what was visited in the same round is a pair.
        let late = visits.map(|visit| Visit { round: visit.round + 3, ..visit });
        let late = Case { visits: late.into(), ..other };
        assert_eq!(ratio(&base, &late), None, "4 is the one they have in common");
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
