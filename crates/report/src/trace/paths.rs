//! The paths that calls were given, by call and outcome, summed over the images.
//!
//! Computed by `count_path` in `crates/observe/src/bpf/paths.bpf.h`.

use std::collections::BTreeMap;

use iotomy_record::{PathUse, Trace, statistic};

use super::rows;
use crate::columns::{self, Columns, Extent};
use crate::numbers::{counted, decimals_for, figure};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet};
use crate::table::print_hidden;

/// Columns a path may take on the widest line.
const PATH: usize = 100;

/// How many outcomes are shown, and how many paths of each, unless a number was requested.
const USUAL_OUTCOMES: usize = 6;
const USUAL_PATHS: usize = 5;

/// A path that could not be read.
const UNREAD: &str = "(not readable)";

/// A call, whether it is about its second path, and its error.
type Outcome<'r> = (&'r str, bool, Option<&'r str>);

/// Paths with the same outcome: the sum of them, and each.
type OfOutcome<'r> = (Outcome<'r>, PathUse, Vec<(Option<&'r str>, PathUse)>);

/// Most calls first, unless another order was requested, both the outcomes and the paths of each.
fn by_outcome(record: &Trace) -> Vec<OfOutcome<'_>> {
    let mut all: BTreeMap<Outcome<'_>, BTreeMap<Option<&str>, PathUse>> = BTreeMap::new();
    for one in &record.paths {
        let outcome = (one.syscall.as_str(), one.second, one.error.as_deref());
        let paths = all.entry(outcome).or_default();
        statistic::add(paths.entry(one.path.as_deref()).or_default(), one);
    }
    let key = record.view.sort;
    let mut all: Vec<OfOutcome<'_>> = all
        .into_iter()
        .map(|(outcome, paths)| {
            let sum = statistic::total(paths.values());
            let mut paths: Vec<_> = paths.into_iter().collect();
            columns::sort(&mut paths, key, |(_, sum)| sum, |sum| sum.calls);
            (outcome, sum, paths)
        })
        .collect();
    columns::sort(&mut all, key, |(_, sum, _)| sum, |sum| sum.calls);
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

/// A line of the terminal: an outcome, a path, or the number of paths that are not shown.
type Line<'r> = (Ink, String, Option<&'r PathUse>);

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
    let shown = rows(record, USUAL_OUTCOMES).min(all.len());
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (outcome, sum, paths) in &all[..shown] {
        let title = title(page, *outcome);
        let title = format!("{title}: {}", counted(paths.len() as u128, "path", "paths"));
        lines.push((Ink::Bold, title, Some(sum)));
        let few = rows(record, USUAL_PATHS).min(paths.len());
        for (path, sum) in &paths[..few] {
            let path = path.map_or_else(|| UNREAD.to_owned(), |path| page.name(path, PATH));
            lines.push((Ink::Plain, format!("  {path}"), Some(sum)));
        }
        if few < paths.len() {
            let rest = format!("  … {} more (--top {})", paths.len() - few, paths.len());
            lines.push((Ink::Dim, rest, None));
        }
    }
    let every = Extent { rows: lines.len(), name: PATH };
    Columns::new()
        .text(Field::text("path", "call, outcome, path").worth(9), |(_, text, _): &Line<'_>| {
            text.clone()
        })
        .declared::<PathUse>(decimals, |(_, _, sum)| *sum)
        .sheet("paths", "Paths", &lines, None, every)
        .print_inked(page, |at| lines[at].0);
    print_hidden(page, shown, all.len(), " outcomes");
}

/// A path, and the outcome of its calls.
type Row<'r> = (Outcome<'r>, Option<&'r str>, PathUse);

/// All of them, for a page; nothing where paths were not counted.
pub(super) fn sheet(page: &Page<'_>, record: &Trace) -> Option<Sheet> {
    if record.paths.is_empty() {
        return None;
    }
    let all = by_outcome(record);
    let most = all.iter().map(|(_, sum, _)| sum.wall_ns).max().unwrap_or(0);
    let paths: Vec<Row<'_>> = (all.into_iter())
        .flat_map(|(outcome, _, paths)| {
            paths.into_iter().map(move |(path, sum)| (outcome, path, sum))
        })
        .collect();
    let mut sheet = Columns::new()
        .text(Field::text("call", "call"), |((call, second, _), ..): &Row<'_>| {
            page.name(call, 60) + if *second { " (second path)" } else { "" }
        })
        .text(Field::text("outcome", "outcome"), |((.., error), ..)| {
            error.map_or_else(|| "ok".to_owned(), |error| page.name(error, 40))
        })
        .text(Field::text("path", "path"), |(_, path, _)| {
            path.map_or_else(|| UNREAD.to_owned(), |path| page.name(path, Extent::PAGE.name))
        })
        .declared(decimals_for(most as f64 / 1e6), |(.., sum): &Row<'_>| Some(sum))
        .number(Field::number("mean_ns", "mean", "µs"), |(.., sum)| {
            let mean = sum.wall_ns as f64 / sum.calls.max(1) as f64;
            Cell::real(mean, figure(mean / 1e3))
        })
        .sheet("paths", "Paths", &paths, None, Extent::PAGE);
    sheet.folded = true;
    Some(sheet)
}
