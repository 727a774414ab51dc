//! The answer in a line, the two sides, the conditions that differ, and the figures of the whole runs.

use iotomy_record::{Delta, Diff, DiffSide, Difference};

use super::DiffView;
use super::grid::{Grid, GridRow};
use crate::numbers::{bytes, counted, duration, fixed, three_digits};
use crate::page::{Ink, Page};
use crate::table::Column;

pub(super) fn print(page: &mut Page<'_>, record: &Diff) {
    page.wrapped(&[], Ink::Bold, &answer(record));
    for (letter, side) in [("A", &record.a), ("B", &record.b)] {
        page.line(&[
            (Ink::Plain, "  "),
            (Ink::Bold, letter),
            (Ink::Plain, "  "),
            (Ink::Plain, &side_line(page, side)),
        ]);
    }
    for condition in &record.conditions {
        let (ink, lead) = match condition.matters {
            true => (Ink::Yellow, "  differs      "),
            false => (Ink::Dim, "  differs too  "),
        };
        page.wrapped(&[(ink, lead)], Ink::Plain, &difference(page, condition));
    }
}

/// The same, a line each.
pub(super) fn lines(page: &Page<'_>, record: &Diff) -> Vec<String> {
    let mut lines = vec![answer(record)];
    for (letter, side) in [("A", &record.a), ("B", &record.b)] {
        lines.push(format!("{letter}: {}", side_line(page, side)));
    }
    lines.extend(record.conditions.iter().map(|one| format!("differs: {}", difference(page, one))));
    lines
}

fn difference(page: &Page<'_>, condition: &Difference) -> String {
    let or_none = |text: &str| match text.is_empty() {
        true => "none".to_owned(),
        false => page.name(text, 200),
    };
    let what = page.name(&condition.what, 40);
    format!("{what}: {} → {}", or_none(&condition.then), or_none(&condition.now))
}

/// The time of the whole, or the CPU time where that is not a result.
fn answer(record: &Diff) -> String {
    let of = |name: &str| {
        let found = record.totals.iter().find(|delta| delta.measure == name)?;
        Some((found, found.a?, found.b?))
    };
    let (what, unit, found) = match of("wall_ns") {
        Some(found) => ("wall time", "", Some(found)),
        None => ("CPU time", " a second", of("cpu_ns")),
    };
    let Some((delta, a, b)) = found else { return "nothing to compare".to_owned() };
    let noise = match delta.beyond_noise {
        Some(true) => ", beyond noise",
        Some(false) => ", within noise",
        None => "",
    };
    let ratio = ratio(a, b).map_or_else(String::new, |ratio| format!(", {ratio} × A"));
    let by = signed(b - a, duration);
    format!("{what} of B: {}{unit} ({by}{ratio}{noise})", duration(b))
}

fn side_line(page: &Page<'_>, side: &DiffSide) -> String {
    let first = side.sources.first().map_or_else(String::new, |name| page.name(name, 40));
    let sources = match side.sources.len() {
        0 | 1 => first,
        n => format!("{first} and {} more", n - 1),
    };
    let started = side.started.first().map_or("", String::as_str);
    let started =
        started.get(..16).map_or_else(|| started.to_owned(), |text| text.replace('T', " "));
    let subject = page.name(&side.subject, 60);
    let mut parts = vec![sources, page.name(&started, 20), subject];
    if side.sources.len() > 1 {
        parts.push(counted(side.sources.len() as u128, "run", "runs"));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

const TOTALS: &[Column<'static>] = &[
    Column::text("", 11),
    Column::number("A", "", 9),
    Column::number("B", "", 10),
    Column::number("B − A", "", 8),
    Column::number("B ÷ A", "", 7),
    Column::text("95 % CI of B − A", 5),
    Column::text("", 6),
];

/// The figures of the whole runs that differ.
pub(super) fn totals(record: &Diff, view: DiffView) -> Grid {
    let differs = |delta: &&Delta| {
        let is_known = delta.a.is_some() && delta.b.is_some();
        // Rates may differ by less than is printed.
        let text = |value: Option<f64>| amount(delta.measure, value.unwrap_or(0.0));
        let differs = text(delta.a) != text(delta.b) && delta.beyond_noise != Some(false);
        is_known && (view.all || differs)
    };
    let rows = record.totals.iter().filter(differs).map(|delta| {
        let (a, b) = (delta.a.unwrap_or(0.0), delta.b.unwrap_or(0.0));
        let amount = |value: f64| amount(delta.measure, value);
        let interval = delta.ci95.map_or_else(String::new, |[low, high]| {
            format!("{} … {}", signed(low, amount), signed(high, amount))
        });
        let noise = match delta.beyond_noise {
            Some(true) => "beyond noise",
            _ => "",
        };
        let below = delta.overhead.filter(|_| delta.measure != "blocked_ns");
        let below = below.filter(|overhead| a != b && (b - a).abs() <= *overhead);
        GridRow {
            cells: vec![
                label(delta.measure).to_owned(),
                amount(a),
                amount(b),
                signed(b - a, amount),
                ratio(a, b).unwrap_or_default(),
                interval,
                noise.to_owned(),
            ],
            remarks: below
                .map(|_| "below the overhead of tracing".to_owned())
                .into_iter()
                .collect(),
            ink: Ink::Plain,
        }
    });
    let title = match record.per_second {
        true => "the whole watch, per second",
        false => "the whole run",
    };
    Grid {
        id: "totals",
        title: title.to_owned(),
        lead: None,
        columns: TOTALS,
        rows: rows.collect(),
        more: None,
    }
}

/// The name of a measure of whole runs.
fn label(measure: &str) -> &str {
    match measure {
        "wall_ns" => "wall",
        "cpu_ns" => "CPU",
        "user_ns" => "user",
        "calls_on_cpu_ns" => "on-CPU in calls",
        "blocked_ns" => "blocked",
        "runnable_ns" => "run queue delay",
        "minor_faults" => "minor page faults",
        "major_faults" => "major page faults",
        "storage_read_bytes" => "read from storage",
        "max_rss_bytes" => "largest resident set",
        other => other,
    }
}

/// A value in the unit of its measure.
pub(super) fn amount(measure: &str, value: f64) -> String {
    match measure {
        name if name.ends_with("_ns") => duration(value),
        name if name.ends_with("bytes") => bytes(value.max(0.0) as u128),
        _ => three_digits(value),
    }
}

/// A difference with its sign.
pub(super) fn signed(delta: f64, amount: impl Fn(f64) -> String) -> String {
    let text = amount(delta.abs());
    match delta {
        delta if delta > 0.0 => format!("+{text}"),
        delta if delta < 0.0 => format!("−{text}"),
        _ => text,
    }
}

/// B ÷ A; nothing where A is 0.
fn ratio(a: f64, b: f64) -> Option<String> {
    let ratio = b / a;
    (a > 0.0 && ratio.is_finite()).then(|| match ratio {
        ratio if ratio >= 100.0 => three_digits(ratio.round()),
        ratio if (0.9..1.1).contains(&ratio) => fixed(ratio, 3),
        ratio => fixed(ratio, 2),
    })
}
