//! The figures of a group: what its records measure, and what each machine has of that.
//!
//! They are the [measures](iotomy_record::measures) of the records, and of their kind: of a trace the calls that take most,
//! of a race the ratios. Of several records of a machine, a figure is their median.

use std::collections::BTreeMap;

use iotomy_record::measures::measures;
use iotomy_record::statistic::{Statistics, Unit, total};
use iotomy_record::store::{Record, RecordRef};
use iotomy_record::{Call, Metric, QUANTILES, Race, Times, Trace};
use iotomy_stats::{median, outliers};

use super::group::Group;

/// Calls that have figures of their own: those that take most.
const CALLS: usize = 3;

/// Quantiles of the call that takes most.
const SHOWN_QUANTILES: [&str; 2] = ["p50", "p99"];

/// The unit of a quotient.
pub(super) const RATIO: &str = "ratio";

/// A difference of a count that is too small to call a machine an outlier.
const FEW: f64 = 10.0;

/// A difference of a part of the run's time that is: a share of the median wall time.
const LITTLE: f64 = 0.01;

/// Figures of one name.
#[derive(Debug)]
pub(super) struct Figure {
    /// `wall`, `p99 of read`, `B/A wall`…
    pub(super) name: String,
    /// The record's unit: `ns`, `bytes`, `bytes/s`; [`RATIO`]; empty for a count.
    pub(super) unit: String,
    /// Of each machine, in the order of the group.
    pub(super) values: Vec<Option<Value>>,
    /// The median of all machines that have it.
    pub(super) median: f64,
    /// Of each machine, whether it is an outlier.
    pub(super) apart: Vec<bool>,
}

/// A figure of a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Value {
    pub(super) value: f64,
    /// Its 95 % confidence interval, if there is one.
    pub(super) interval: Option<[f64; 2]>,
}

impl Figure {
    /// What a machine has of it, over the median of all: 1 where both are 0, infinite where only the median is.
    pub(super) fn ratio(&self, value: f64) -> f64 {
        if value == self.median { 1.0 } else { value / self.median }
    }
}

/// What a record measures of a figure.
struct Measured {
    name: String,
    unit: String,
    value: Value,
    /// Whether it is a part of the wall time.
    is_part: bool,
}

impl Measured {
    fn new(name: impl Into<String>, unit: &str, value: f64) -> Self {
        let value = Value { value, interval: None };
        Self { name: name.into(), unit: unit.to_owned(), value, is_part: false }
    }
}

/// The figures of a group, the most important first.
pub(super) fn figures(group: &Group, records: &[&Record]) -> Vec<Figure> {
    let calls = busiest(group, records);
    let mut names: Vec<(String, String, bool)> = Vec::new();
    let mut of_machines: Vec<BTreeMap<(String, String), Vec<Value>>> = Vec::new();
    for member in &group.members {
        let mut found: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
        for at in &member.records {
            for one in measured(records[*at].as_ref(), &calls) {
                let key = (one.name.clone(), one.unit.clone());
                found.entry(key).or_default().push(one.value);
                if !names.iter().any(|(name, unit, _)| (name, unit) == (&one.name, &one.unit)) {
                    names.push((one.name, one.unit, one.is_part));
                }
            }
        }
        of_machines.push(found);
    }
    let mut figures: Vec<Figure> = Vec::new();
    for (name, unit, is_part) in names {
        let key = (name, unit);
        let values: Vec<Option<Value>> =
            of_machines.iter().map(|found| middle(found.get(&key)?)).collect();
        let wall = figures.first().filter(|_| is_part).map(|wall| wall.median);
        figures.extend(figure(key, values, wall));
    }
    figures
}

fn figure(
    (name, unit): (String, String),
    values: Vec<Option<Value>>,
    wall: Option<f64>,
) -> Option<Figure> {
    let (places, known): (Vec<usize>, Vec<f64>) =
        values.iter().enumerate().filter_map(|(at, one)| Some((at, one.as_ref()?.value))).unzip();
    let middle = median(&known)?;
    let least = match unit.as_str() {
        "" => FEW,
        _ => wall.map_or(0.0, |wall| LITTLE * wall),
    };
    let mut apart = vec![false; values.len()];
    for found in outliers::outliers(&known, least) {
        let at = places[found];
        // An interval that has the median in it may be of a machine that is as the others.
        let may_be_alike = values[at].and_then(|one| one.interval);
        apart[at] = may_be_alike.is_none_or(|[low, high]| middle < low || middle > high);
    }
    Some(Figure { name, unit, values, median: middle, apart })
}

/// The median of several records; of one, that itself with its interval.
fn middle(values: &[Value]) -> Option<Value> {
    if let [only] = values {
        return Some(*only);
    }
    let all: Vec<f64> = values.iter().map(|one| one.value).collect();
    Some(Value { value: median(&all)?, interval: None })
}

fn measured(record: RecordRef<'_>, calls: &[String]) -> Vec<Measured> {
    match record {
        RecordRef::Trace(trace) => in_trace(trace, calls),
        RecordRef::Anatomy(anatomy) => in_trace(&anatomy.trace, calls),
        RecordRef::Race(race) => in_race(race),
        _ => plain(record),
    }
}

fn plain(record: RecordRef<'_>) -> Vec<Measured> {
    let each = measures(record).into_iter();
    each.map(|one| Measured::new(one.name, &one.unit, one.value)).collect()
}

fn in_trace(trace: &Trace, calls: &[String]) -> Vec<Measured> {
    let trace = &*trace.scaled();
    let mut found = plain(RecordRef::Trace(trace));
    // The wall time is the first, and other times are parts of that.
    found.iter_mut().skip(1).for_each(|one| one.is_part = one.unit == "ns");
    let sum = total(&trace.calls);
    let moved = Call::shown().filter(|(statistic, _)| statistic.shape.unit == Unit::Bytes);
    found.extend(moved.filter_map(|(statistic, column)| {
        let bytes = (statistic.field.number)(&sum)?;
        Some(Measured::new(column.head, "bytes", bytes as f64))
    }));
    for (at, name) in calls.iter().enumerate() {
        let rows: Vec<&Call> = trace.calls.iter().filter(|row| row.syscall == *name).collect();
        let wall = rows.iter().map(|row| row.wall_ns as f64).sum();
        found.push(Measured { is_part: true, ..Measured::new(name.clone(), "ns", wall) });
        if at == 0 {
            found.extend(quantiles(name, &rows));
        }
    }
    found
}

fn quantiles(name: &str, rows: &[&Call]) -> Vec<Measured> {
    let mut times = Times::default();
    rows.iter().for_each(|row| times.merge(&row.wall_times));
    let shown = QUANTILES.iter().filter(|(quantile, _)| SHOWN_QUANTILES.contains(quantile));
    let each = shown.filter(|_| !times.is_empty()).map(|(quantile, share)| {
        Measured::new(format!("{quantile} of {name}"), "ns", times.quantile(*share) as f64)
    });
    each.collect()
}

/// The calls that take most of the time of all machines, the one that takes most first.
fn busiest(group: &Group, records: &[&Record]) -> Vec<String> {
    let mut times: BTreeMap<&str, f64> = BTreeMap::new();
    for at in group.members.iter().flat_map(|member| &member.records) {
        let calls = match records[*at].as_ref() {
            RecordRef::Trace(trace) => &trace.calls,
            RecordRef::Anatomy(anatomy) => &anatomy.trace.calls,
            _ => continue,
        };
        for row in calls {
            *times.entry(&row.syscall).or_default() += row.wall_ns as f64;
        }
    }
    let mut sorted: Vec<(&str, f64)> = times.into_iter().filter(|(_, ns)| *ns > 0.0).collect();
    sorted.sort_by(|one, other| other.1.total_cmp(&one.1));
    sorted.into_iter().take(CALLS).map(|(name, _)| name.to_owned()).collect()
}

/// The ratios first: they are what a race is for.
fn in_race(race: &Race) -> Vec<Measured> {
    let metric = |metric: Metric| if metric == Metric::Cpu { "cpu" } else { "wall" };
    let mut found: Vec<Measured> = race
        .comparisons
        .iter()
        .map(|one| {
            let name = format!("{}/{} {}", one.other, one.base, metric(one.metric));
            // Too few runs for an interval have one of 0.
            let interval = Some(one.ci95).filter(|[low, high]| *low > 0.0 && high >= low);
            let value = Value { value: one.ratio, interval };
            Measured { name, unit: RATIO.to_owned(), value, is_part: false }
        })
        .filter(|one| one.value.value.is_finite())
        .collect();
    for (at, one) in plain(RecordRef::Race(race)).into_iter().enumerate() {
        // Two of each command, in their order.
        let Some(command) = race.commands.get(at / 2) else { continue };
        found.push(Measured { name: format!("{} {}", command.label, one.name), ..one });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::group::groups;
    use super::super::tests::{race_of, trace_of, with_machine};
    use super::*;

    fn figures_of(records: &[Record]) -> Vec<Figure> {
        let records: Vec<&Record> = records.iter().collect();
        figures(&groups(&records)[0], &records)
    }

    fn traces(walls: &[u64]) -> Vec<Record> {
        let each = walls.iter().enumerate();
        each.map(|(at, wall)| trace_of(&format!("node{at}"), "make", *wall)).collect()
    }

    #[test]
    fn a_trace_has_its_measures_its_bytes_and_the_calls_that_take_most() {
        let figures = figures_of(&traces(&[10, 20]));
        let names: Vec<&str> = figures.iter().map(|one| one.name.as_str()).collect();
        let wanted = [
            "wall",
            "user",
            "in calls",
            "blocked",
            "run queue delay",
            "calls",
            "errors",
            "bytes",
            "read",
            "p50 of read",
            "p99 of read",
            "openat",
        ];
        assert_eq!(names, wanted);
        assert_eq!(figures[0].median, 15e6);
        assert_eq!(figures[0].values.iter().flatten().map(|one| one.value).sum::<f64>(), 30e6);
    }

    #[test]
    fn the_machine_that_takes_longer_is_apart_in_its_wall_time_alone() {
        let figures = figures_of(&traces(&[10, 10, 31, 11, 10, 10]));
        let apart = |one: &Figure| one.apart.iter().filter(|is| **is).count();
        assert_eq!(figures[0].apart, [false, false, true, false, false, false]);
        assert_eq!(figures.iter().skip(1).map(apart).sum::<usize>(), 0);
        // Of four, none is said to be.
        let four = figures_of(&traces(&[10, 10, 31, 11]));
        assert_eq!(four.iter().map(apart).sum::<usize>(), 0);
    }

    #[test]
    fn a_time_that_is_a_hundredth_of_the_run_makes_no_outlier() {
        let blocked = |blocked_ns: u64| {
            let mut records = traces(&[100; 6]);
            records[3] =
                with_machine(records[3].clone(), |trace| trace.ledger[0].blocked_ns = blocked_ns);
            figures_of(&records).iter().any(|one| one.name == "blocked" && one.apart[3])
        };
        // Of 1 ms on all others, and 100 ms in all.
        assert!(!blocked(1_900_000));
        assert!(blocked(2_100_000));
    }

    #[test]
    fn a_machine_that_lacks_a_figure_is_left_out_of_it() {
        let mut records = traces(&[10; 6]);
        records[0] = with_machine(records[0].clone(), |trace| trace.ledger.clear());
        let figures = figures_of(&records);
        let user = figures.iter().find(|one| one.name == "user").unwrap();
        assert_eq!((user.values[0], user.values[1].is_some()), (None, true));
        assert!(!user.apart[0]);
    }

    #[test]
    fn a_race_has_its_ratio_with_the_interval_and_an_interval_with_the_median_in_it_is_not_apart() {
        let race = |at: usize, ratio: f64, half: f64| race_of(&format!("node{at}"), ratio, half);
        let mut records: Vec<Record> = (0..6).map(|at| race(at, 1.5, 0.01)).collect();
        records[4] = race(4, 2.5, 0.02);
        let ratio = &figures_of(&records)[0];
        assert_eq!((ratio.name.as_str(), ratio.unit.as_str()), ("B/A wall", RATIO));
        assert_eq!(ratio.values[4].unwrap().interval, Some([2.48, 2.52]));
        assert_eq!(ratio.apart, [false, false, false, false, true, false]);
        records[4] = race(4, 2.5, 1.1);
        assert_eq!(figures_of(&records)[0].apart, [false; 6]);
    }

    #[test]
    fn of_several_records_of_a_machine_a_figure_is_the_median() {
        let again = |day: u32, wall: u64| {
            let started = format!("2026-01-0{day}T00:00:00Z");
            with_machine(trace_of("node1", "make", wall), |trace| trace.started = started)
        };
        let records = [again(1, 10), again(2, 90), again(3, 20), trace_of("node2", "make", 30)];
        let wall = &figures_of(&records)[0];
        assert_eq!(wall.values[0].unwrap().value, 20e6);
        assert_eq!(wall.median, 25e6);
    }
}
