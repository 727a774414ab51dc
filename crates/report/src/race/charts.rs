//! The pictures of a race: its runs in the order they were made, its rounds as ratios, and where each
//! command's time went.

use std::collections::HashMap;

use iotomy_record::{Comparison, Metric, Race, Run};

use super::headline::ratio;
use crate::axis::{Axis, Unit};
use crate::chart::{Chart, Drawing, Key, WIDE, series_class};
use crate::numbers::{counted, duration, thousands, three_digits};
use crate::page::Page;

/// The field of a picture with two axes.
const LEFT: f64 = 74.0;
const RIGHT: f64 = WIDE - 14.0;
const TOP: f64 = 14.0;

/// Runs or rounds that are drawn, at most.
const MOST: usize = 1_500;

/// The timed runs in the order they were made: a drift is seen here and nowhere else.
pub(super) fn runs(page: &Page<'_>, record: &Race) -> Option<Chart> {
    let all = in_order(record);
    let shown = &all[..all.len().min(MOST)];
    let times = shown.iter().map(|(_, _, run)| run.wall_ns as f64);
    let y = Axis::from_values(times.collect::<Vec<f64>>().into_iter())?;
    let y = if y.is_log { y.roomy() } else { padded(y) };
    let mut drawing = Drawing::new(WIDE, 300.0);
    let floor = 262.0;
    let up = |value: f64| floor - y.share(value) * (floor - TOP);
    let along = |at: usize| {
        LEFT + 10.0 + at as f64 / (shown.len().max(2) - 1) as f64 * (RIGHT - LEFT - 20.0)
    };
    heights(&mut drawing, &y, Unit::Time, floor);
    numbers(&mut drawing, shown.len(), floor, along);
    drawing.text((LEFT + RIGHT) / 2.0, floor + 32.0, "mid dim", "run, in the order they were made");
    let mut says = Vec::new();
    for (series, one) in record.commands.iter().enumerate() {
        drawing.group(series, |drawing| {
            let median = one.wall.median_ns;
            if median > 0.0 {
                let class = format!("{} fit", series_class(series));
                drawing.line([LEFT, up(median), RIGHT, up(median)], &class);
            }
            for (at, (_, _, run)) in
                shown.iter().enumerate().filter(|(_, (of, _, _))| *of == series)
            {
                let redone = is_redone(record, run);
                let tip = format!(
                    "{}, run {}: {}{}",
                    page.name(&one.label, 40),
                    at + 1,
                    duration(run.wall_ns as f64),
                    if redone { ", of a repeated round, not counted" } else { "" }
                );
                if redone {
                    drawing.body.push_str("<g class=\"faint\">");
                }
                drawing.mark(series, along(at), up(run.wall_ns as f64), &tip);
                if redone {
                    drawing.body.push_str("</g>");
                }
            }
        });
        says.push(format!(
            "{}: {} between {} and {}, median {}",
            page.name(&one.label, 40),
            counted(one.runs.len() as u128, "run", "runs"),
            duration(one.wall.min_ns),
            duration(one.wall.max_ns),
            duration(one.wall.median_ns)
        ));
    }
    let mut notes = vec![format!(
        "wall time; the dashed lines are the medians of the counted runs{}",
        match (y.is_log, y.low > 0.0) {
            (true, _) => "; the axis is logarithmic",
            (false, true) => "; the axis does not begin at 0",
            (false, false) => "",
        }
    )];
    if all.len() > shown.len() {
        notes.push(format!(
            "{} later runs are not drawn",
            thousands((all.len() - shown.len()) as u128)
        ));
    }
    Some(Chart {
        id: "runs-in-order".into(),
        title: "Runs in the order they were made".into(),
        says: says.join("; "),
        legend: legend(page, record),
        notes,
        drawing,
    })
}

pub(super) fn legend(page: &Page<'_>, record: &Race) -> Vec<Key> {
    let key = |(series, one): (usize, &iotomy_record::RaceCommand)| Key {
        class: series_class(series),
        label: format!("{}  {}", page.name(&one.label, 20), page.name(&one.command, 80)),
        series: Some(series),
    };
    record.commands.iter().enumerate().map(key).collect()
}

/// Each run with its command's place and its own.
pub(super) fn in_order(record: &Race) -> Vec<(usize, usize, &Run)> {
    let places: HashMap<&str, usize> = record
        .commands
        .iter()
        .enumerate()
        .map(|(at, one)| (one.label.as_str(), at))
        .rev()
        .collect();
    let mut next = vec![0usize; record.commands.len()];
    let mut runs = Vec::new();
    for label in &record.order {
        let Some(at) = places.get(label.as_str()).copied() else { continue };
        if let Some(run) = record.commands[at].runs.get(next[at]) {
            runs.push((at, next[at], run));
            next[at] += 1;
        }
    }
    runs
}

pub(super) fn is_redone(record: &Race, run: &Run) -> bool {
    let round = usize::try_from(run.round).ok().and_then(|at| record.rounds.get(at));
    round.is_some_and(|round| round.redone)
}

/// The same axis with a margin on both sides.
fn padded(y: Axis) -> Axis {
    let room = ((y.high - y.low) * 0.12).max(y.high * 0.005);
    Axis { low: (y.low - room).max(0.0), high: y.high + room, ..y }
}

/// The heights of a field, with their lines.
pub(super) fn heights(drawing: &mut Drawing, y: &Axis, unit: Unit, floor: f64) {
    for tick in y.ticks(5) {
        let at = floor - y.share(tick) * (floor - TOP);
        drawing.line([LEFT, at, RIGHT, at], "grid");
        drawing.text(LEFT - 8.0, at + 4.0, "end dim num", &unit.shown(tick));
    }
    drawing.line([LEFT, TOP, LEFT, floor], "axis");
    drawing.line([LEFT, floor, RIGHT, floor], "axis");
}

/// Numbers from 1 along the floor, as many as there is room for.
fn numbers(drawing: &mut Drawing, count: usize, floor: f64, along: impl Fn(usize) -> f64) {
    let every = [1, 2, 5, 10, 20, 50, 100, 200, 500].into_iter().find(|step| count / step <= 14);
    let every = every.unwrap_or(count / 14 + 1);
    for at in (0..count).filter(|at| (at + 1) % every == 0 || *at == 0) {
        drawing.text(along(at), floor + 16.0, "mid dim num", &thousands(at as u128 + 1));
    }
}

/// The ratio of a pair in a round: the geometric mean of the other's runs over that of the base's,
/// which is the compared quantity.
fn rounds(record: &Race, found: &Comparison) -> Vec<(usize, f64)> {
    let logs = |label: &str| {
        let mut of: HashMap<u64, (f64, usize)> = HashMap::new();
        for run in record.command(label).map(|one| one.runs.as_slice()).unwrap_or_default() {
            let ns = match found.metric {
                Metric::Wall => run.wall_ns,
                Metric::Cpu => run.cpu_ns().max(1_000),
            };
            let sum = of.entry(run.round).or_default();
            *sum = (sum.0 + (ns.max(1) as f64).ln(), sum.1 + 1);
        }
        of
    };
    let (base, other) = (logs(&found.base), logs(&found.other));
    let of = |(at, round): (usize, &iotomy_record::Round)| {
        let (a, b) = (base.get(&(at as u64))?, other.get(&(at as u64))?);
        let of = (b.0 - a.0) / a.1 as f64;
        (!round.redone && a.1 == b.1).then_some((at, of.exp()))
    };
    record.rounds.iter().enumerate().filter_map(of).take(MOST).collect()
}

/// The rounds of a comparison as ratios, with the interval of their middle.
pub(super) fn pairs(page: &Page<'_>, record: &Race, found: &Comparison) -> Option<Chart> {
    let ratios = rounds(record, found);
    if ratios.len() < 2 {
        return None;
    }
    let [low, high] = found.ci95;
    let has_interval = found.ci95 != [0.0, 0.0];
    let mut values: Vec<f64> = ratios.iter().map(|(_, ratio)| *ratio).chain([1.0]).collect();
    values.extend(found.ci95.iter().filter(|_| has_interval));
    let y = padded(Axis::from_values(values.into_iter())?);
    let y = if y.is_log && y.low <= 0.0 { Axis { is_log: false, ..y } } else { y };
    let floor = 222.0;
    let mut drawing = Drawing::new(WIDE, 260.0);
    let up = |value: f64| floor - y.share(value) * (floor - TOP);
    let along =
        |at: usize| LEFT + 10.0 + at as f64 / (ratios.len() - 1) as f64 * (RIGHT - LEFT - 20.0);
    for tick in y.ticks(5) {
        drawing.line([LEFT, up(tick), RIGHT, up(tick)], "grid");
        drawing.text(
            LEFT - 8.0,
            up(tick) + 4.0,
            "end dim num",
            &format!("{} ×", three_digits(tick)),
        );
    }
    if has_interval {
        drawing.rect([LEFT, up(high), RIGHT - LEFT, (up(low) - up(high)).max(1.0)], "s0 band", "");
    }
    drawing.line([LEFT, up(found.ratio), RIGHT, up(found.ratio)], "s0 fit");
    drawing.line([LEFT, up(1.0), RIGHT, up(1.0)], "zero");
    drawing.line([LEFT, TOP, LEFT, floor], "axis");
    numbers(&mut drawing, ratios.len(), floor, along);
    let (base, other) = (page.name(&found.base, 20), page.name(&found.other, 20));
    drawing.text((LEFT + RIGHT) / 2.0, floor + 32.0, "mid dim", "round of runs");
    for (number, (at, value)) in ratios.iter().enumerate() {
        let disturbed = record.rounds[*at].disturbed.first();
        let remark = disturbed
            .map_or_else(String::new, |why| format!(", disturbed: {}", page.name(why, 120)));
        let tip = format!(
            "round {}: {other} takes {} × the time of {base}{remark}",
            at + 1,
            ratio(*value)
        );
        drawing.mark(0, along(number), up(*value), &tip);
    }
    let interval = match has_interval {
        true => {
            format!("the band is its 95 % confidence interval, {} … {}", ratio(low), ratio(high))
        }
        false => "too few runs for a confidence interval".to_owned(),
    };
    let metric = if found.metric == Metric::Cpu { "CPU" } else { "wall" };
    let says = format!(
        "{other} over {base} in {} rounds, median {}; {interval}",
        ratios.len(),
        ratio(found.ratio)
    );
    Some(Chart {
        id: format!("pairs-{}-{}", part_name(&found.base), part_name(&found.other)),
        title: format!("{other} over {base}, round by round"),
        says: says.clone(),
        legend: Vec::new(),
        notes: vec![format!(
            "{metric} time of {other} over that of {base}; the dashed line is the median, {}; \
             {interval}; at 1 both take the same time",
            ratio(found.ratio)
        )],
        drawing,
    })
}

/// A label as a part of a name.
pub(super) fn part_name(label: &str) -> String {
    label.chars().filter(char::is_ascii_alphanumeric).take(8).collect::<String>().to_lowercase()
}

/// Where each command's time went in its traced run.
pub(super) fn times(page: &Page<'_>, record: &Race) -> Option<Chart> {
    let rows: Vec<_> = record
        .commands
        .iter()
        .filter_map(|one| Some((page.name(&one.label, 20), one.trace.as_ref()?)))
        .filter(|(_, trace)| !trace.ledger.is_empty() && !trace.observer.times_inflated)
        .collect();
    crate::trace::side_by_side(&rows)
}
