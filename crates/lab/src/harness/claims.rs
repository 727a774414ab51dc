//! The input of a claim's test: the cases, their ratios and lines through them.
//!
//! The functions are pure: a saved record gives the same verdicts. Ratios compare visits of the
//! same round, so that a slow phase of the machine affects both sides.
//!
//! The samples of one visit are correlated, because the state of the caches, the memory and the
//! neighbouring load changes from visit to visit. So a visit counts once, by its median, however
//! many samples it gave.

use std::collections::BTreeMap;

use iotomy_record::{AxisValue, Case};
use iotomy_stats::{Interval, Line, centre_interval, line, line_by_shares, median};

use super::judgement::{ENOUGH, slope};

/// A selection of a sweep's cases.
#[derive(Debug, Clone)]
pub struct Cases<'a> {
    /// The selected cases.
    some: Vec<&'a Case>,
    /// All cases of the sweep, including those that could not be measured.
    planned: &'a [Case],
}

impl<'a> Cases<'a> {
    /// Selects all cases that were measured, and those for which there was no time: these have no
    /// samples, so that a test that needs one of them finds no data.
    pub fn new(cases: &'a [Case]) -> Self {
        let has_place = |case: &&Case| case.median.is_some() || case.had_no_time();
        Self { some: cases.iter().filter(has_place).collect(), planned: cases }
    }

    /// Whether the sweep planned cases where an axis has this name, measured or not.
    pub fn were_planned(&self, axis: &str, name: &str) -> bool {
        let wanted = AxisValue::Name(name.to_owned());
        self.planned.iter().any(|case| case.params.get(axis) == Some(&wanted))
    }

    /// Selects the cases with enough visits for their times to decide a claim.
    #[must_use]
    pub fn settled(&self) -> Self {
        self.filtered(is_settled)
    }

    /// Selects the cases where an axis has this name.
    #[must_use]
    pub fn named(&self, axis: &str, name: &str) -> Self {
        self.only(axis, &AxisValue::Name(name.to_owned()))
    }

    /// Selects the cases where an axis has this number.
    #[must_use]
    pub fn at(&self, axis: &str, number: u64) -> Self {
        self.only(axis, &AxisValue::Number(number))
    }

    fn only(&self, axis: &str, value: &AxisValue) -> Self {
        self.filtered(|case| case.params.get(axis) == Some(value))
    }

    /// Selects the cases for which `is_so` returns true.
    #[must_use]
    pub fn filtered(&self, is_so: impl Fn(&Case) -> bool) -> Self {
        let some = self.some.iter().copied().filter(|case| is_so(case)).collect();
        Self { some, planned: self.planned }
    }

    /// Returns the first case.
    pub fn first(&self) -> Option<&'a Case> {
        self.some.first().copied()
    }

    /// Iterates over the cases.
    pub fn iter(&self) -> impl Iterator<Item = &'a Case> + '_ {
        self.some.iter().copied()
    }

    /// The numbers of an axis among the cases, in rising order.
    pub fn numbers(&self, axis: &str) -> Vec<u64> {
        let mut numbers: Vec<u64> =
            self.some.iter().filter_map(|case| number(case, axis)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The medians along an axis of numbers.
    pub fn medians(&self, axis: &str) -> Vec<(f64, f64)> {
        let point = |case: &&Case| Some((number(case, axis)? as f64, case.median?));
        self.some.iter().filter_map(point).collect()
    }

    /// Fits a line through the medians along an axis of numbers, with distances relative to the
    /// medians. With three or more rounds, the slope's interval is that of the slopes of the single
    /// rounds, widened to include the line's own slope; with fewer there is none.
    pub fn line(&self, axis: &str) -> Option<Line> {
        fitted(&self.points(axis, |x| x, |y| y)?, line_by_shares)
    }

    /// Fits the exponent of the measured values over an axis of numbers, each increased by `more`,
    /// in the same way.
    pub fn power(&self, axis: &str, more: f64) -> Option<Interval> {
        slope(&fitted(&self.points(axis, |x| (x + more).ln(), f64::ln)?, line)?)
    }

    /// The cases as points along an axis; `None` if one of them has no samples.
    fn points(
        &self,
        axis: &str,
        across: impl Fn(f64) -> f64,
        up: impl Fn(f64) -> f64,
    ) -> Option<Vec<Point>> {
        let point = |case: &&Case| {
            let visits = by_visit(case, &case.samples).into_iter();
            let visits = visits.map(|(round, middle)| (round, up(middle))).collect();
            Some((across(number(case, axis)? as f64), up(case.median?), visits))
        };
        self.some.iter().map(point).collect()
    }

    /// Fits the same line through an extra measured with each sample.
    pub fn line_of(&self, extra: &str, axis: &str) -> Option<Line> {
        let along = |case: &Case| number(case, axis).map(|number| number as f64);
        let point = |case: &&Case| {
            let samples = case.extra_samples.get(extra)?;
            Some((along(case)?, median(samples)?, by_visit(case, samples).into_iter().collect()))
        };
        fitted(&self.some.iter().filter_map(point).collect::<Vec<_>>(), line_by_shares)
    }
}

/// A position on an axis, the median there, and the median of each visit.
type Point = (f64, f64, BTreeMap<u64, f64>);

fn fitted(points: &[Point], line: fn(&[(f64, f64)]) -> Option<Line>) -> Option<Line> {
    let medians: Vec<(f64, f64)> = points.iter().map(|(x, y, _)| (*x, *y)).collect();
    let found = line(&medians)?;
    // The slope through the points of one round, if all of them were visited in it.
    let slope = |round: &u64| {
        let of_one = |(x, _, visits): &Point| Some((*x, *visits.get(round)?));
        line(&points.iter().map(of_one).collect::<Option<Vec<_>>>()?).map(|line| line.slope)
    };
    let slopes: Vec<f64> = points.first()?.2.keys().filter_map(slope).collect();
    // The line goes through the medians of all rounds, and its slope may lie outside the slopes of
    // single rounds.
    let around = |slope: Interval| [slope.low.min(found.slope), slope.high.max(found.slope)];
    Some(Line { slope_ci95: centre_interval(&slopes).map(around), ..found })
}

/// Returns the median of each visit of a case, with the number of its round, for the metric or an
/// extra. If the record does not say which samples belong to a visit, each sample counts as a
/// visit.
pub(crate) fn by_visit(case: &Case, samples: &[f64]) -> Vec<(u64, f64)> {
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

/// Whether the times of a case may decide a claim.
pub(crate) fn is_settled(case: &Case) -> bool {
    by_visit(case, &case.samples).len() >= ENOUGH
}

/// Returns the number of an axis in a case.
pub(crate) fn number(case: &Case, axis: &str) -> Option<u64> {
    match case.params.get(axis) {
        Some(AxisValue::Number(number)) => Some(*number),
        _ => None,
    }
}

/// Returns the ratio of the `other` case to `base`, by pairs of visits of the same round; `None`
/// with fewer than three pairs, or where values are not above 0.
pub(crate) fn ratio(base: &Case, other: &Case) -> Option<Interval> {
    ratio_by(base, other, |case| Some(&case.samples))
}

/// Returns the same ratio for an extra measured with each sample.
pub(crate) fn ratio_of(extra: &str, base: &Case, other: &Case) -> Option<Interval> {
    ratio_by(base, other, |case| case.extra_samples.get(extra))
}

/// Returns the ratio of two extras measured with the same samples.
pub(crate) fn ratio_within(case: &Case, base: &str, other: &str) -> Option<Interval> {
    let of = |name: &str| Some(by_visit(case, case.extra_samples.get(name)?));
    of_rounds(of(base)?, of(other)?)
}

fn ratio_by(
    base: &Case,
    other: &Case,
    of: impl Fn(&Case) -> Option<&Vec<f64>>,
) -> Option<Interval> {
    of_rounds(by_visit(base, of(base)?), by_visit(other, of(other)?))
}

fn of_rounds(base: Vec<(u64, f64)>, other: Vec<(u64, f64)>) -> Option<Interval> {
    let base: BTreeMap<u64, f64> = base.into_iter().collect();
    let of_round = |(round, other): (u64, f64)| Some((other / base.get(&round)?).ln());
    let logs: Vec<f64> = other.into_iter().filter_map(of_round).collect();
    if logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    Some(centre_interval(&logs)?.map(f64::exp))
}

/// Formats a ratio with its interval for use in a sentence: `1.37 (1.33 … 1.41)`.
pub(crate) fn shown(of: Interval) -> String {
    format!("{} ({} … {})", digits(of.point), digits(of.low), digits(of.high))
}

/// Formats a number with about three digits; a whole number has no fraction.
pub(crate) fn digits(x: f64) -> String {
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

/// The largest relative distance from a median at which a line still counts as a fit.
const A_FIT: f64 = 0.5;

/// Formats a line: `3.10 µs + 38.2 (37.9 … 38.5) ns × n (weighted R² 0.999)`, and by how much it
/// misses where it does not fit.
pub(crate) fn equation(line: &Line) -> String {
    let ends = line.slope_ci95.unwrap_or([line.slope; 2]);
    let (scale, unit) =
        unit_of(ends.into_iter().chain([line.slope]).map(f64::abs).fold(0.0, f64::max));
    let slope = digits(line.slope / scale);
    let slope = match line.slope_ci95.map(|ends| ends.map(|end| digits(end / scale))) {
        Some([low, high]) => format!("{slope} ({low} … {high}) {unit}"),
        None => format!("{slope} {unit} (too few rounds for a confidence interval)"),
    };
    let misses = match line.miss {
        Some(miss) if miss > A_FIT => {
            format!("; not linear: the fit misses a median by {} %", digits((100.0 * miss).round()))
        }
        _ => String::new(),
    };
    let r2 = if line.is_weighted { "weighted R²" } else { "R²" };
    format!("{} + {slope} × n ({r2} {:.3}{misses})", time(line.intercept), line.r2)
}

/// Formats a time in a suitable unit.
pub(crate) fn time(ns: f64) -> String {
    let (scale, unit) = unit_of(ns.abs());
    format!("{} {unit}", digits(ns / scale))
}

/// Returns the number of nanoseconds in the unit suitable for `ns`, and its name.
fn unit_of(ns: f64) -> (f64, &'static str) {
    match ns {
        size if size < 1e3 => (1.0, "ns"),
        size if size < 1e6 => (1e3, "µs"),
        size if size < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iotomy_record::Visit;
    pub(crate) fn case(params: &[(&str, AxisValue)], samples: &[f64]) -> Case {
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
        // Visits whose sample counts do not add up are ignored.
        let odd =
            Case { visits: vec![Visit { round: 1, samples: 99, wall_ns: 1 }], ..other.clone() };
        assert_eq!(by_visit(&odd, &odd.samples).len(), 18);
        // Only visits of the same round form a pair.
        let late = visits.map(|visit| Visit { round: visit.round + 3, ..visit });
        let late = Case { visits: late.into(), ..other };
        assert_eq!(ratio(&base, &late), None, "4 is the one they have in common");
    }

    #[test]
    fn cases_are_found_by_their_values() {
        let all: Vec<Case> = [("a", 1u64), ("a", 4), ("b", 2)]
            .map(|(name, n)| {
                let params = [("way", AxisValue::Name(name.into())), ("n", AxisValue::Number(n))];
                case(&params, &[n as f64 * 10.0 + 1.0])
            })
            .into();
        let cases = Cases::new(&all);
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
        let line = Cases::new(&all).line("n").unwrap();
        let [low, high] = line.slope_ci95.unwrap();
        assert!((line.slope - 5.0).abs() < 1e-9 && (low - 5.0).abs() < 1e-9, "{line:?}");
        assert!((high - 5.0).abs() < 1e-9, "{line:?}");
    }

    #[test]
    fn a_slope_lies_in_its_interval() {
        // All rounds but one fall, but the medians, which come from different rounds, do not.
        let of = |n: u64, samples: &[f64]| case(&[("n", AxisValue::Number(n))], samples);
        let few: Vec<f64> = (0..20).map(f64::from).collect();
        let many: Vec<f64> = few.iter().map(|x| if *x == 0.0 { 30.0 } else { x - 1.0 }).collect();
        let line = Cases::new(&[of(1, &few), of(2, &many)]).line("n").unwrap();
        let [low, high] = line.slope_ci95.unwrap();
        assert!(low <= line.slope && line.slope <= high, "{line:?}");
    }

    #[test]
    fn a_line_in_a_sentence_has_one_unit_and_says_when_it_is_none() {
        let line = Line {
            intercept: 3_100.0,
            slope: 1_071.5,
            slope_ci95: Some([992.0, 1_133.0]),
            r2: 0.9424,
            miss: Some(0.1),
            is_weighted: true,
        };
        assert_eq!(equation(&line), "3.10 µs + 1.07 (0.99 … 1.13) µs × n (weighted R² 0.942)");
        let plain = Line { is_weighted: false, ..line };
        assert_eq!(equation(&plain), "3.10 µs + 1.07 (0.99 … 1.13) µs × n (R² 0.942)");
        let rough = Line { slope: 96.0, slope_ci95: None, ..line };
        let said =
            "3.10 µs + 96 ns (too few rounds for a confidence interval) × n (weighted R² 0.942)";
        assert_eq!(equation(&rough), said);
        let bent = Line { intercept: -435e3, miss: Some(11.96), ..line };
        let said = "-435 µs + 1.07 (0.99 … 1.13) µs × n (weighted R² 0.942; not linear: the fit \
                    misses a median by 1,196 %)";
        assert_eq!(equation(&bent), said);
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
