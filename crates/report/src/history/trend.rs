//! A measure over time: a chart with a line per level, and the facts about each change of it.
//!
//! Computed by `trend` in `crates/history/src/trend.rs` and `changes` in `crates/stats/src/change.rs`.

use iotomy_record::{Point, Trend};

use super::{amount, when};
use crate::Style;
use crate::numbers::{counted, fixed};
use crate::page::{Ink, Page, columns};

/// Lines and columns of the field.
const HIGH: usize = 12;
const WIDE: usize = 72;

/// A run this many times above or below the level is mentioned.
const FAR: f64 = 2.0;

/// Columns below which there is no chart.
const LEAST_WIDE: usize = 24;

/// The trend as the text a terminal shows, ending in a line break.
pub fn trend(record: &Trend, style: &Style) -> String {
    let mut page = Page::new(style);
    let (subject, measure) = (page.name(&record.subject, 60), page.name(&record.measure, 40));
    let runs = counted(record.points.len() as u128, "run", "runs");
    page.line(&[
        (Ink::Bold, &subject),
        (Ink::Plain, &format!(" · {measure} · {runs} ({})", page.name(&record.kind, 12))),
    ]);
    let levels = levels(record);
    if record.points.len() > 1 {
        print_chart(&mut page, record, &levels);
    }
    print_levels(&mut page, record, &levels);
    print_rest(&mut page, record);
    page.finish()
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

fn print_chart(page: &mut Page<'_>, record: &Trend, levels: &[Level]) {
    let values = record.points.iter().map(|point| point.value);
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    let labels = [high, f64::midpoint(low, high), low].map(|value| amount(value, &record.unit));
    let label = labels.iter().map(|label| columns(label)).max().unwrap_or(0);
    let wide = WIDE.min(page.width().saturating_sub(label + 6));
    if wide < LEAST_WIDE {
        return;
    }
    page.blank();
    for (line, row) in field(page, record, levels, (low, high), wide).iter().enumerate() {
        let text = match line {
            0 => &labels[0],
            line if line == HIGH / 2 => &labels[1],
            line if line == HIGH - 1 => &labels[2],
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

/// The field, its lines from the top: levels first, so that the runs lie on them.
fn field(
    page: &Page<'_>,
    record: &Trend,
    levels: &[Level],
    (low, high): (f64, f64),
    wide: usize,
) -> Vec<Vec<&'static str>> {
    let (mark, level) = if page.unicode() { ("●", "─") } else { ("o", "-") };
    let last = record.points.len().saturating_sub(1).max(1);
    let column = |at: usize| at * (wide - 1) / last;
    // Halved, so that no difference exceeds the range of a number.
    let share = |value: f64| (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
    let line = |value: f64| match share(value) {
        share if share.is_finite() => {
            HIGH - 1 - (share.clamp(0.0, 1.0) * (HIGH - 1) as f64).round() as usize
        }
        _ => HIGH / 2,
    };
    let mut field = vec![vec![" "; wide]; HIGH];
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

fn print_levels(page: &mut Page<'_>, record: &Trend, levels: &[Level]) {
    page.blank();
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
    if levels.len() == 1 && record.points.len() < 6 {
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, "a step change is detected from 6 runs on");
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
