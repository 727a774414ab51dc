//! A measure over time: a chart with a line per level, and the facts about each change of it.
//!
//! Computed by `trends` in `crates/history/src/trend.rs` and `changes` in `crates/stats/src/change.rs`.

use iotomy_record::{Point, Trend};

use super::{amount, when};
use crate::Style;
use crate::numbers::{counted, fixed};
use crate::page::{Ink, Page, columns};

/// Lines and columns of the field.
const HIGH: usize = 12;

/// Lines of the field of each of several machines.
const HIGH_OF_SEVERAL: usize = 6;

/// Machines that have a chart, at most.
const MACHINES: usize = 16;

const WIDE: usize = 72;

/// A run this many times above or below the level is mentioned.
const FAR: f64 = 2.0;

/// Columns below which there is no chart.
const LEAST_WIDE: usize = 24;

/// The trends of a measure, one a machine, as the text a terminal shows, ending in a line break. Those of several machines
/// have one scale.
pub fn trends(records: &[Trend], style: &Style) -> String {
    let mut page = Page::new(style);
    let [first, ..] = records else { return page.finish() };
    let (subject, measure) = (page.name(&first.subject, 60), page.name(&first.measure, 40));
    let points = || records.iter().flat_map(|record| &record.points);
    let runs = counted(points().count() as u128, "run", "runs");
    let on = match records.len() {
        1 => String::new(),
        n => format!(" on {}", counted(n as u128, "machine", "machines")),
    };
    page.line(&[
        (Ink::Bold, &subject),
        (Ink::Plain, &format!(" · {measure} · {runs}{on} ({})", page.name(&first.kind, 12))),
    ]);
    let (low, high) = range(points().map(|point| point.value));
    for record in records.iter().take(MACHINES) {
        let levels = levels(record);
        let mut high_lines = HIGH;
        if records.len() > 1 {
            high_lines = HIGH_OF_SEVERAL;
            page.blank();
            let runs = counted(record.points.len() as u128, "run", "runs");
            page.line(&[
                (Ink::Bold, &page.name(&record.machine, 60)),
                (Ink::Plain, &format!(" · {runs}")),
            ]);
        }
        if record.points.len() > 1 {
            let scale = Scale { low, high, lines: high_lines };
            print_chart(&mut page, record, &levels, &scale);
        }
        print_levels(&mut page, record, &levels, records.len() == 1);
    }
    if records.len() > 1 {
        page.blank();
        if records.iter().any(|record| record.changes.is_empty() && record.points.len() < FEWEST) {
            page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &from_so_many());
        }
        let more = records.len().saturating_sub(MACHINES);
        let hint = match more {
            0 => "--machine NAME plots one machine".to_owned(),
            n => {
                let more = counted(n as u128, "more machine", "more machines");
                format!("{more}: --machine NAME plots one")
            }
        };
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &hint);
    }
    print_rest(&mut page, first);
    page.finish()
}

/// The scale of a chart, which those of several machines have in common.
struct Scale {
    low: f64,
    high: f64,
    /// Lines of the field.
    lines: usize,
}

/// A stretch without a change.
struct Level {
    start: usize,
    end: usize,
    median: f64,
}

fn levels(record: &Trend) -> Vec<Level> {
    let count = record.points.len();
    let inner = record.changes.iter().copied().filter(|at| *at > 0 && *at < count);
    let mut ends: Vec<usize> = std::iter::once(0).chain(inner).chain([count]).collect();
    ends.sort_unstable();
    ends.dedup();
    let pairs = ends.windows(2).map(|pair| (pair[0], pair[1]));
    pairs
        .map(|(start, end)| {
            let mut values: Vec<f64> =
                record.points[start..end].iter().map(|point| point.value).collect();
            values.sort_by(f64::total_cmp);
            let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
            Level { start, end, median: f64::midpoint(low, high) }
        })
        .collect()
}

fn print_chart(page: &mut Page<'_>, record: &Trend, levels: &[Level], scale: &Scale) {
    let Scale { low, high, lines } = *scale;
    let mut labels = [high, f64::midpoint(low, high), low].map(|value| amount(value, &record.unit));
    // Values too small for digits that tell them apart have one label.
    if labels[0] == labels[1] || labels[1] == labels[2] {
        (labels[0], labels[2]) = (String::new(), String::new());
    }
    let label = labels.iter().map(|label| columns(label)).max().unwrap_or(0);
    let wide = WIDE.min(page.width().saturating_sub(label + 6));
    if wide < LEAST_WIDE {
        return;
    }
    page.blank();
    for (line, row) in field(page, record, levels, scale, wide).iter().enumerate() {
        let text = match line {
            0 => &labels[0],
            line if line == lines / 2 => &labels[1],
            line if line == lines - 1 => &labels[2],
            _ => "",
        };
        let edge = if page.unicode() { "│" } else { "|" };
        let space = " ".repeat(label.saturating_sub(columns(text)));
        page.line(&[(Ink::Dim, &format!("  {space}{text} {edge} ")), (Ink::Plain, &row.concat())]);
    }
    let ends = [record.points.first(), record.points.last()]
        .map(|point| point.map_or_else(String::new, |point| when(page, &point.started)));
    let gap = " ".repeat(wide.saturating_sub(columns(&ends[0]) + columns(&ends[1])).max(1));
    page.line(&[(Ink::Dim, &format!("  {}   {}{gap}{}", " ".repeat(label), ends[0], ends[1]))]);
}

/// The range of an axis for these values: at least a twentieth of them, so that small differences look small, and that
/// labels of three digits differ.
fn range(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    let middle = f64::midpoint(low, high);
    let half = (high / 2.0 - low / 2.0).max(middle.abs() / 40.0);
    if half.is_finite() { (middle - half, middle + half) } else { (low, high) }
}

/// The field, its lines from the top: levels first, so that the runs lie on them.
fn field(
    page: &Page<'_>,
    record: &Trend,
    levels: &[Level],
    scale: &Scale,
    wide: usize,
) -> Vec<Vec<&'static str>> {
    let Scale { low, high, lines } = *scale;
    let (mark, level) = if page.unicode() { ("●", "─") } else { ("o", "-") };
    let last = record.points.len().saturating_sub(1).max(1);
    let column = |at: usize| at * (wide - 1) / last;
    // Halved, so that no difference exceeds the range of a number.
    let share = |value: f64| (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
    let line = |value: f64| match share(value) {
        share if share.is_finite() => {
            lines - 1 - (share.clamp(0.0, 1.0) * (lines - 1) as f64).round() as usize
        }
        _ => lines / 2,
    };
    let mut field = vec![vec![" "; wide]; lines];
    for one in levels {
        for cell in &mut field[line(one.median)][column(one.start)..=column(one.end - 1)] {
            *cell = level;
        }
    }
    for (at, point) in record.points.iter().enumerate() {
        field[line(point.value)][column(at)] = mark;
    }
    field
}

/// Runs from which on a step change is detected.
const FEWEST: usize = 6;

fn from_so_many() -> String {
    format!("a step change is detected from {FEWEST} runs on")
}

fn print_levels(page: &mut Page<'_>, record: &Trend, levels: &[Level], is_alone: bool) {
    if is_alone || record.points.len() > 1 {
        page.blank();
    }
    for (at, level) in levels.iter().enumerate() {
        let first = &record.points[level.start];
        let runs = counted((level.end - level.start) as u128, "run", "runs");
        let value = amount(level.median, &record.unit);
        let from = format!("run {}, {}", first.id, when(page, &first.started));
        let Some(before) = at.checked_sub(1).map(|before| &levels[before]) else {
            page.line(&[(Ink::Plain, &format!("  {value} over {runs}, from {from}"))]);
            continue;
        };
        let share = (level.median / before.median - 1.0) * 100.0;
        let sign = if share >= 0.0 { "+" } else { "" };
        let text = format!("{value} ({sign}{} %) over {runs}, since {from}", fixed(share, 1));
        page.line(&[(Ink::Bold, "  step change: "), (Ink::Plain, &text)]);
        for (what, then, now) in around(&record.points[level.start - 1], first) {
            let text = format!("{what}: {} → {}", page.name(then, 60), page.name(now, 60));
            page.wrapped(&[(Ink::Yellow, "    with it  ")], Ink::Plain, &text);
        }
    }
    if levels.len() == 1 && record.points.len() < FEWEST {
        // Of several machines it is told once.
        if is_alone {
            page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &from_so_many());
        }
    } else if levels.len() == 1 {
        page.line(&[(Ink::Plain, "  no step change")]);
    }
    let [only] = levels else { return };
    let is_far = |point: &&Point| {
        point.value > FAR * only.median || (point.value > 0.0 && point.value < only.median / FAR)
    };
    let far = record.points.iter().filter(is_far).count();
    if far > 0 {
        let runs = counted(far as u128, "run lies", "runs lie");
        let text = format!(
            "{runs} more than {FAR} × away from it: a step change takes 3 in a row; try `iotomy \
             history compare` to judge one run"
        );
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Yellow, &text);
    }
}

/// Other changes since the last run.
fn around<'a>(before: &'a Point, after: &'a Point) -> Vec<(&'static str, &'a str, &'a str)> {
    let mut found = vec![
        ("kernel", before.kernel.as_str(), after.kernel.as_str()),
        ("iotomy", before.version.as_str(), after.version.as_str()),
    ];
    found.retain(|(_, then, now)| then != now);
    found
}

fn print_rest(page: &mut Page<'_>, record: &Trend) {
    let mut parts = Vec::new();
    if record.elsewhere > 0 {
        parts.push(match record.elsewhere {
            1 => "1 run on another machine, or before the oldest here, is left out".to_owned(),
            n => format!("{n} runs on other machines, or before the oldest here, are left out"),
        });
    }
    if !record.others.is_empty() {
        let mut names: Vec<String> =
            record.others.iter().take(8).map(|name| page.name(name, 30)).collect();
        if record.others.len() > names.len() {
            names.push(page.ellipsis().to_owned());
        }
        parts.push(format!("--measure also takes {}", names.join(", ")));
    }
    if !parts.is_empty() {
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &parts.join(" · "));
    }
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn an_axis_spans_a_twentieth_of_its_values_at_least() {
        let of = |values: &[f64]| range(values.iter().copied());
        assert_eq!(of(&[39.5, 40.5]), (39.0, 41.0));
        assert_eq!(of(&[40.0]), (39.0, 41.0));
        assert_eq!(of(&[40.0, 80.0]), (40.0, 80.0));
        assert_eq!(of(&[-40.0]), (-41.0, -39.0));
        assert_eq!(of(&[0.0, 0.0]), (0.0, 0.0));
    }
}
