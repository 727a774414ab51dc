//! The paths that calls were given, by call and outcome, summed over the images.
//!
//! Computed by `count_path` in `crates/observe/src/bpf/paths.bpf.h`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use iotomy_record::{PathUse, Trace};

use super::rows;
use crate::numbers::{counted, decimals_for, figure, fixed, thousands};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet, name};
use crate::table::{Column, Row, Table};

const COLUMNS: [Column; 3] = [
    Column::text("call, outcome, path", 9),
    Column::number("calls", "", 8),
    Column::number("time", "ms", 5),
];

/// Columns a path may take on the widest line.
const PATH: usize = 100;

/// How many outcomes are shown, and how many paths of each, unless a number was requested.
const USUAL_OUTCOMES: usize = 6;
const USUAL_PATHS: usize = 5;

/// A path that could not be read.
const UNREAD: &str = "(not readable)";

/// Calls with the same path and outcome, or with the same outcome.
#[derive(Default)]
struct Sum {
    calls: u128,
    wall_ns: u128,
}

impl Sum {
    fn add(&mut self, one: &PathUse) {
        self.calls += u128::from(one.calls);
        self.wall_ns += u128::from(one.wall_ns);
    }
}

/// A call, whether it is about its second path, and its error.
type Outcome<'r> = (&'r str, bool, Option<&'r str>);

/// Paths with the same outcome: the sum of them, and each.
type OfOutcome<'r> = (Outcome<'r>, Sum, Vec<(Option<&'r str>, Sum)>);

/// Most calls first, both the outcomes and the paths of each.
fn by_outcome(record: &Trace) -> Vec<OfOutcome<'_>> {
    let mut all: BTreeMap<Outcome<'_>, BTreeMap<Option<&str>, Sum>> = BTreeMap::new();
    for one in &record.paths {
        let outcome = (one.syscall.as_str(), one.second, one.error.as_deref());
        let paths = all.entry(outcome).or_default();
        paths.entry(one.path.as_deref()).or_default().add(one);
    }
    let mut all: Vec<OfOutcome<'_>> = all
        .into_iter()
        .map(|(outcome, paths)| {
            let mut sum = Sum::default();
            for one in paths.values() {
                sum.calls += one.calls;
                sum.wall_ns += one.wall_ns;
            }
            let mut paths: Vec<_> = paths.into_iter().collect();
            // Stable: equals stay in the order of their names.
            paths.sort_by_key(|(_, sum)| Reverse(sum.calls));
            (outcome, sum, paths)
        })
        .collect();
    all.sort_by_key(|(_, sum, _)| Reverse(sum.calls));
    all
}

/// As `openat ENOENT`.
fn title(page: &Page<'_>, (call, second, error): Outcome<'_>) -> String {
    let call = page.name(call, 40);
    let which = if second { ", second path" } else { "" };
    match error {
        Some(error) => format!("{call} {}{which}", page.name(error, 20)),
        None => format!("{call} ok{which}"),
    }
}

pub(super) fn print(page: &mut Page<'_>, record: &Trace) {
    if !record.view.paths {
        return;
    }
    page.blank();
    let all = by_outcome(record);
    if all.is_empty() {
        page.line(&[(Ink::Dim, "  no counted call was given a path")]);
        return;
    }
    let most = all.iter().map(|(_, sum, _)| sum.wall_ns).max().unwrap_or(0);
    let decimals = decimals_for(most as f64 / 1e6);
    let cells = |text: String, sum: &Sum| {
        vec![text, thousands(sum.calls), fixed(sum.wall_ns as f64 / 1e6, decimals)]
    };
    let mut table = Table::new(&COLUMNS);
    let shown = rows(record, USUAL_OUTCOMES).min(all.len());
    for (outcome, sum, paths) in &all[..shown] {
        let title = title(page, *outcome);
        let title = format!("{title}: {}", counted(paths.len() as u128, "path", "paths"));
        table.push(Row { cells: cells(title, sum), ink: Ink::Bold, ..Row::default() });
        let few = rows(record, USUAL_PATHS).min(paths.len());
        for (path, sum) in &paths[..few] {
            let path = path.map_or_else(|| UNREAD.to_owned(), |path| page.name(path, PATH));
            table.push(Row { cells: cells(format!("  {path}"), sum), ..Row::default() });
        }
        if few < paths.len() {
            let rest = format!("  … {} more (--top {})", paths.len() - few, paths.len());
            let cells = vec![rest, String::new(), String::new()];
            table.push(Row { cells, ink: Ink::Dim, ..Row::default() });
        }
    }
    table.print(page);
    super::print_hidden(page, shown, all.len(), " outcomes");
}

/// All of them, for a page; nothing where paths were not counted.
pub(super) fn sheet(page: &Page<'_>, record: &Trace) -> Option<Sheet> {
    if record.paths.is_empty() {
        return None;
    }
    let fields = vec![
        Field::text("call", "call"),
        Field::text("outcome", "outcome"),
        Field::text("path", "path"),
        Field::number("calls", "calls", ""),
        Field::number("wall_ns", "time", "ms"),
        Field::number("mean_ns", "mean", "µs"),
    ];
    let mut sheet = Sheet::new("paths", "Paths", fields);
    for ((call, second, error), _, paths) in by_outcome(record) {
        let call = page.name(call, 60) + if second { " (second path)" } else { "" };
        for (path, sum) in paths {
            let mean = sum.wall_ns as f64 / sum.calls.max(1) as f64;
            sheet.push(vec![
                Cell::text(call.clone()),
                Cell::text(error.map_or_else(|| "ok".to_owned(), |error| page.name(error, 40))),
                Cell::text(path.map_or_else(|| UNREAD.to_owned(), |path| name(page, path))),
                Cell::count(sum.calls),
                Cell::whole(sum.wall_ns, figure(sum.wall_ns as f64 / 1e6)),
                Cell::real(mean, figure(mean / 1e3)),
            ]);
        }
    }
    sheet.folded = true;
    Some(sheet)
}
