//! The tables of what differs.

use iotomy_record::statistic::{Statistics, Unit};
use iotomy_record::{Call, Diff, DiffRow, DiffSideName, DiffVerdict};

use super::grid::{Grid, GridRow};
use super::headline::signed;
use super::{DiffView, shown};
use crate::numbers::{bytes, decimals_for, figure, fixed, three_digits};
use crate::page::{Ink, Page};
use crate::table::Column;

/// Columns a name may take.
const NAME: usize = 60;

/// Columns a path, or a peer, may take on the widest line.
const PATH: usize = 120;

const PROGRAMS: &[Column<'static>] = &[
    Column::text("program", 11),
    Column::number("processes", "A", 3),
    Column::number("processes", "B", 3),
    Column::number("user", "A ms", 7),
    Column::number("user", "B ms", 8),
    Column::number("in calls", "A ms", 5),
    Column::number("in calls", "B ms", 6),
    Column::number("blocked", "A ms", 4),
    Column::number("blocked", "B ms", 4),
    Column::number("runq", "A ms", 1),
    Column::number("runq", "B ms", 1),
];

const CALLS: &[Column<'static>] = &[
    Column::text("call", 11),
    Column::number("calls", "A", 8),
    Column::number("calls", "B", 9),
    Column::number("wall", "A ms", 6),
    Column::number("wall", "B ms", 7),
    Column::number("B − A", "ms", 10),
    Column::number("mean", "A µs", 3),
    Column::number("mean", "B µs", 4),
    Column::text("beyond noise", 2),
];

const LAYERS: &[Column<'static>] = &[
    Column::text("layer", 11),
    Column::text("of", 10),
    Column::number("on-CPU", "A ms", 8),
    Column::number("on-CPU", "B ms", 8),
    Column::number("B − A", "ms", 9),
    Column::number("±", "ms", 9),
    Column::number("blocked", "A ms", 5),
    Column::number("blocked", "B ms", 5),
];

const FUNCTIONS: &[Column<'static>] = &[
    Column::text("function", 11),
    Column::text("layer", 5),
    Column::number("on-CPU", "A ms", 8),
    Column::number("on-CPU", "B ms", 8),
    Column::number("B − A", "ms", 9),
    Column::number("±", "ms", 9),
];

/// By program, where there are several.
pub(super) fn programs(page: &Page<'_>, record: &Diff, view: DiffView) -> Option<Grid> {
    if record.programs.len() < 2 {
        return None;
    }
    let names = ["user_ns", "calls_on_cpu_ns", "blocked_ns", "runnable_ns"];
    let decimals = decimals(&record.programs, &names);
    Some(grid("programs", "by program", PROGRAMS, &record.programs, view, |row| {
        let mut cells = vec![page.name(&row.program, NAME)];
        cells.extend(pair(row, "processes", three_digits));
        for name in names {
            cells.extend(pair(row, name, |ns| ms(ns, decimals)));
        }
        (cells, only_in(row).into_iter().collect())
    }))
}

pub(super) fn calls(page: &Page<'_>, record: &Diff, view: DiffView) -> Option<Grid> {
    let decimals = decimals(&record.calls, &["wall_ns"]);
    let title = "calls, by difference of time";
    Some(grid("calls", title, CALLS, &record.calls, view, |row| {
        let mut cells = vec![call_name(page, record, row)];
        cells.extend(pair(row, "calls", three_digits));
        cells.extend(pair(row, "wall_ns", |ns| ms(ns, decimals)));
        cells.push(signed(row.delta("wall_ns"), |ns| ms(ns, decimals)));
        cells.extend(pair(row, "mean_ns", |ns| figure(ns / 1e3)));
        cells.push(noise(row, &[("wall_ns", "time"), ("calls", "calls")], "other"));
        (cells, call_remarks(page, row))
    }))
}

pub(super) fn layers(page: &Page<'_>, record: &Diff, view: DiffView) -> Option<Grid> {
    let decimals = decimals(&record.layers, &["on_cpu_ns", "blocked_ns"]);
    Some(grid("layers", "layers, by difference of time", LAYERS, &record.layers, view, |row| {
        let mut cells = vec![page.name(&row.name, 40), page.name(&row.of, 24)];
        cells.extend(sampled(row, decimals));
        cells.extend(pair(row, "blocked_ns", |ns| ms(ns, decimals)));
        (cells, only_in(row).into_iter().collect())
    }))
}

pub(super) fn functions(page: &Page<'_>, record: &Diff, view: DiffView) -> Option<Grid> {
    let decimals = decimals(&record.functions, &["on_cpu_ns"]);
    let title = "functions, by difference of time";
    Some(grid("functions", title, FUNCTIONS, &record.functions, view, |row| {
        let mut cells = vec![page.name(&row.name, 48), page.name(&row.of, 30)];
        cells.extend(sampled(row, decimals));
        (cells, only_in(row).into_iter().collect())
    }))
}

/// The sampled time of both sides, and the error of their difference.
fn sampled(row: &DiffRow, decimals: usize) -> Vec<String> {
    let delta = row.measure("on_cpu_ns");
    let mut cells = pair(row, "on_cpu_ns", |ns| ms(ns, decimals)).to_vec();
    cells.push(signed(row.delta("on_cpu_ns"), |ns| ms(ns, decimals)));
    let error = delta.and_then(|delta| delta.sampling_error);
    cells.push(error.map_or_else(String::new, |ns| ms(ns, decimals)));
    cells
}

pub(super) fn grid(
    id: &'static str,
    title: &str,
    columns: &'static [Column<'static>],
    all: &[DiffRow],
    view: DiffView,
    cells: impl Fn(&DiffRow) -> (Vec<String>, Vec<String>),
) -> Grid {
    let shown = shown(all, view);
    let most = view.rows();
    let rows = shown.iter().take(most).map(|row| {
        let (cells, remarks) = cells(row);
        let ink = if row.verdict.is_shown() { Ink::Plain } else { Ink::Dim };
        GridRow { cells, remarks, ink }
    });
    let rows = rows.collect();
    let more = (shown.len() > most).then(|| {
        let rest = &shown[most..];
        let time: f64 = rest.iter().map(|row| row.delta("wall_ns").abs()).sum();
        let time = match rest.iter().any(|row| row.measure("wall_ns").is_some()) {
            true => format!(", {} in total", crate::numbers::duration(time)),
            false => String::new(),
        };
        format!("{} more{time} (--top {})", rest.len(), shown.len())
    });
    Grid { id, title: title.to_owned(), lead: None, columns, rows, more }
}

pub(super) fn call_name(page: &Page<'_>, record: &Diff, row: &DiffRow) -> String {
    let name = page.name(&row.name, 28);
    match record.programs.len() {
        0 | 1 => name,
        _ => format!("{}: {name}", page.name(&row.program, 24)),
    }
}

/// Counts that have a column, or are by kind.
const TOLD: [&str; 2] = ["calls", "errors"];

/// What else differs of a call, and what may be behind a difference.
fn call_remarks(page: &Page<'_>, row: &DiffRow) -> Vec<String> {
    let mut remarks: Vec<String> = only_in(row).into_iter().collect();
    let both =
        |name: &str| row.measure(name).map(|one| (one.a.unwrap_or(0.0), one.b.unwrap_or(0.0)));
    remarks.extend(error_remarks(page, row));
    if let Some((a, b)) = both("bytes").filter(|(a, b)| a != b) {
        remarks.push(format!("{} → {}", bytes(a.max(0.0) as u128), bytes(b.max(0.0) as u128)));
    }
    for (statistic, column) in Call::shown().filter(|(one, _)| !TOLD.contains(&one.name)) {
        if statistic.shape.unit == Unit::Count
            && let Some((a, b)) = both(statistic.name).filter(|(a, b)| a != b)
        {
            remarks.push(format!("{} → {} {}", three_digits(a), three_digits(b), column.head));
        }
    }
    let wall = row.measure("wall_ns");
    let overhead = wall.and_then(|wall| wall.overhead).unwrap_or(0.0);
    if row.verdict == DiffVerdict::Differs && row.delta("wall_ns").abs() <= overhead {
        remarks.push("time below the overhead of tracing".to_owned());
    }
    remarks
}

/// The errors whose numbers differ.
pub(super) fn error_remarks(page: &Page<'_>, row: &DiffRow) -> Vec<String> {
    let mut remarks = Vec::new();
    for (kind, ends) in &row.error_kinds {
        let [a, b] = ends.map(three_digits);
        if a != b {
            remarks.push(format!("{} {a} → {b}", page.name(kind, 24)));
        }
    }
    remarks
}

/// A count that differs.
pub(super) fn changed(row: &DiffRow, measure: &str, what: &str) -> Option<String> {
    let [a, b] = pair(row, measure, three_digits);
    (a != b).then(|| format!("{a} → {b} {what}"))
}

/// The name of a row, which may have our signs in it: `/tmp/….s`, `openat ok → ENOENT`.
pub(super) fn named(page: &Page<'_>, text: &str) -> String {
    match text.contains(['…', '→']) {
        true => page.sentence(text),
        false => page.name(text, PATH),
    }
}

/// Which side alone has it, and what it stands for.
pub(super) fn remarks(row: &DiffRow) -> Vec<String> {
    let names = row.names.map(|counts| {
        // Each side has one, and another than the other has.
        if counts == [1.0, 1.0] {
            return "names differ".to_owned();
        }
        let [a, b] = counts.map(three_digits);
        format!("{a} → {b} names")
    });
    only_in(row).into_iter().chain(names).collect()
}

fn only_in(row: &DiffRow) -> Option<String> {
    row.only_in.map(|side| match side {
        DiffSideName::A => "only in A".to_owned(),
        DiffSideName::B => "only in B".to_owned(),
    })
}

/// The words of those measures that are beyond noise, where a row is; `others` where it is for measures without a word.
pub(super) fn noise(row: &DiffRow, measures: &[(&str, &str)], others: &str) -> String {
    if row.verdict != DiffVerdict::BeyondNoise {
        return String::new();
    }
    let is_beyond =
        |name: &str| row.measure(name).is_some_and(|one| one.beyond_noise == Some(true));
    let beyond = measures.iter().filter(|(name, _)| is_beyond(name));
    let found: Vec<&str> = beyond.map(|(_, word)| *word).collect();
    if found.is_empty() { others.to_owned() } else { found.join(", ") }
}

/// The values of both sides.
pub(super) fn pair(row: &DiffRow, name: &str, text: impl Fn(f64) -> String) -> [String; 2] {
    let delta = row.measure(name);
    let one = |value: Option<f64>| value.map_or_else(String::new, &text);
    [one(delta.and_then(|delta| delta.a)), one(delta.and_then(|delta| delta.b))]
}

pub(super) fn ms(ns: f64, decimals: usize) -> String {
    fixed(ns / 1e6, decimals)
}

/// The decimals of a table in ms.
pub(super) fn decimals(rows: &[DiffRow], names: &[&str]) -> usize {
    let values = rows.iter().flat_map(|row| names.iter().filter_map(|name| row.measure(name)));
    let largest = values.flat_map(|delta| [delta.a, delta.b]).flatten().fold(0.0, f64::max);
    decimals_for(largest / 1e6)
}
