//! The tables beside those of calls: files, peers, paths, groups and threads.

use std::collections::BTreeMap;

use iotomy_record::{Delta, Diff, DiffRow, DiffSideName};

use super::DiffView;
use super::grid::Grid;
use super::headline::signed;
use super::rows::{changed, decimals, error_remarks, grid, ms, named, pair, remarks};
use crate::numbers::{bytes, figure, three_digits};
use crate::page::Page;
use crate::table::Column;

const FILES: &[Column<'static>] = &[
    Column::text("file", 11).usually(44).keeping_end(),
    Column::number("reads", "A", 5),
    Column::number("reads", "B", 6),
    Column::number("read", "A", 7),
    Column::number("read", "B", 8),
    Column::number("writes", "A", 3),
    Column::number("writes", "B", 4),
    Column::number("written", "A", 7),
    Column::number("written", "B", 8),
    Column::number("mapped", "A", 1),
    Column::number("mapped", "B", 1),
];

const PEERS: &[Column<'static>] = &[
    Column::text("peer", 11).usually(36).no_less_than(31),
    Column::number("conns", "A", 3),
    Column::number("conns", "B", 4),
    Column::number("opened", "A", 9),
    Column::number("opened", "B", 9),
    Column::number("time", "A µs", 5),
    Column::number("time", "B µs", 6),
    Column::number("reads", "A", 2),
    Column::number("reads", "B", 2),
    Column::number("read", "A", 7),
    Column::number("read", "B", 8),
    Column::number("writes", "A", 1),
    Column::number("writes", "B", 1),
    Column::number("written", "A", 7),
    Column::number("written", "B", 8),
];

const PATHS: &[Column<'static>] = &[
    Column::text("path", 11).usually(44).keeping_end(),
    Column::text("call", 10),
    Column::number("calls", "A", 8),
    Column::number("calls", "B", 9),
    Column::number("B − A", "ms", 7),
];

const GROUPS: &[Column<'static>] = &[
    Column::text("values", 11).usually(36),
    Column::number("calls", "A", 8),
    Column::number("calls", "B", 9),
    Column::number("errors", "A", 2),
    Column::number("errors", "B", 2),
    Column::number("bytes", "A", 3),
    Column::number("bytes", "B", 4),
    Column::number("wall", "A ms", 6),
    Column::number("wall", "B ms", 7),
    Column::number("mean", "A µs", 4),
    Column::number("mean", "B µs", 5),
];

const THREADS: &[Column<'static>] = &[
    Column::text("thread", 11),
    Column::number("threads", "A", 5),
    Column::number("threads", "B", 5),
    Column::number("on-CPU", "A ms", 8),
    Column::number("on-CPU", "B ms", 9),
    Column::number("blocked", "A ms", 4),
    Column::number("blocked", "B ms", 4),
    Column::number("runq", "A ms", 3),
    Column::number("runq", "B ms", 3),
    Column::number("calls", "A", 6),
    Column::number("calls", "B", 7),
];

fn size(n: f64) -> String {
    if n > 0.0 { bytes(n as u128) } else { String::new() }
}

fn count(n: f64) -> String {
    if n > 0.0 { three_digits(n) } else { String::new() }
}

pub(super) fn files(page: &Page<'_>, record: &Diff, view: DiffView) -> Grid {
    grid("files", "files, by difference of bytes", FILES, &record.files, view, |row| {
        let mut cells = vec![named(page, &row.name)];
        cells.extend(pair(row, "read_calls", count));
        cells.extend(pair(row, "read_bytes", size));
        cells.extend(pair(row, "write_calls", count));
        cells.extend(pair(row, "write_bytes", size));
        cells.extend(pair(row, "mapped_bytes", size));
        (cells, remarks(row))
    })
}

pub(super) fn peers(page: &Page<'_>, record: &Diff, view: DiffView) -> Grid {
    grid("peers", "peers, by difference of bytes", PEERS, &record.peers, view, |row| {
        let mut cells = vec![named(page, &row.name)];
        cells.extend(pair(row, "connections", count));
        cells.extend(pair(row, "opened", count));
        cells.extend(pair(row, "connect_mean_ns", |ns| figure(ns / 1e3)));
        cells.extend(pair(row, "read_calls", count));
        cells.extend(pair(row, "read_bytes", size));
        cells.extend(pair(row, "write_calls", count));
        cells.extend(pair(row, "write_bytes", size));
        let mut told = remarks(row);
        told.extend(error_remarks(page, row));
        let counts = [("unfinished", "unfinished"), ("retransmits", "retransmitted")];
        told.extend(counts.iter().filter_map(|(measure, what)| changed(row, measure, what)));
        (cells, told)
    })
}

pub(super) fn groups(page: &Page<'_>, record: &Diff, view: DiffView) -> Grid {
    let decimals = decimals(&record.groups, &["wall_ns"]);
    let by: Vec<String> = record.by.iter().map(|by| page.name(by, 20)).collect();
    let title = format!("calls by {}, by difference of time", by.join(", "));
    grid("groups", &title, GROUPS, &record.groups, view, |row| {
        let mut cells = vec![named(page, &row.name)];
        cells.extend(pair(row, "calls", three_digits));
        cells.extend(pair(row, "errors", count));
        cells.extend(pair(row, "bytes", size));
        cells.extend(pair(row, "wall_ns", |ns| ms(ns, decimals)));
        cells.extend(pair(row, "mean_ns", |ns| figure(ns / 1e3)));
        (cells, remarks(row))
    })
}

pub(super) fn threads(page: &Page<'_>, record: &Diff, view: DiffView) -> Grid {
    let names = ["on_cpu_ns", "blocked_ns", "runnable_ns"];
    let decimals = decimals(&record.threads, &names[..1]);
    let title = "threads, by difference of time on a CPU";
    grid("threads", title, THREADS, &record.threads, view, |row| {
        let name = page.name(&row.name, 28);
        // The first thread has the name of its process, unless it chose another.
        let mut cells = vec![match row.program == row.name || record.programs.len() < 2 {
            true => name,
            false => format!("{}: {name}", page.name(&row.program, 24)),
        }];
        cells.extend(pair(row, "threads", three_digits));
        for name in names {
            cells.extend(pair(row, name, |ns| ms(ns, decimals)));
        }
        cells.extend(pair(row, "calls", three_digits));
        (cells, remarks(row))
    })
}

pub(super) fn paths(page: &Page<'_>, record: &Diff, view: DiffView) -> Grid {
    let rows = with_changed_outcomes(&record.paths);
    let decimals = decimals(&rows, &["wall_ns"]);
    let title = "paths, by difference of time";
    let mut grid = grid("paths", title, PATHS, &rows, view, |row| {
        let mut cells = vec![named(page, &row.name), named(page, &row.of)];
        cells.extend(pair(row, "calls", three_digits));
        cells.push(signed(row.delta("wall_ns"), |ns| ms(ns, decimals)));
        (cells, remarks(row))
    });
    grid.lead = Some(summary(&rows));
    grid
}

/// How many paths are only in A, and so on.
fn summary(rows: &[DiffRow]) -> String {
    let is = |row: &&DiffRow| row.verdict.is_shown();
    let in_side =
        |side: DiffSideName| rows.iter().filter(is).filter(|row| row.only_in == Some(side)).count();
    let others = || rows.iter().filter(is).filter(|row| row.only_in.is_none());
    let changed = others().filter(|row| has_changed(row)).count();
    let often = others().filter(|row| !has_changed(row)).count();
    let parts = [
        (in_side(DiffSideName::A), "only in A"),
        (in_side(DiffSideName::B), "only in B"),
        (changed, "with another outcome"),
        (often, "on both sides"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let text = |(count, what)| format!("{} {what}", three_digits(count as f64));
    parts.map(text).collect::<Vec<_>>().join(", ")
}

/// What is between the outcomes of a path that has another on each side.
const CHANGED: &str = " → ";

fn has_changed(row: &DiffRow) -> bool {
    row.of.contains(CHANGED)
}

/// The rows, those of a path and a call that have one outcome in A and another in B put together:
/// `openat ok → ENOENT`.
fn with_changed_outcomes(rows: &[DiffRow]) -> Vec<DiffRow> {
    let call = |row: &DiffRow| row.of.rsplit_once(' ').map(|(call, _)| call.to_owned());
    let mut outcomes: BTreeMap<(&str, Option<String>), Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        outcomes.entry((&row.name, call(row))).or_default().push(at);
    }
    // The row that goes into another, which comes before it.
    let mut into: BTreeMap<usize, usize> = BTreeMap::new();
    for places in outcomes.into_values() {
        let [first, second] = places[..] else { continue };
        let sides = [first, second].map(|at| rows[at].only_in);
        if sides.iter().all(Option::is_some) && sides[0] != sides[1] {
            into.insert(second, first);
        }
    }
    let with: BTreeMap<usize, usize> = into.iter().map(|(other, first)| (*first, *other)).collect();
    let each = rows.iter().enumerate().filter(|(at, _)| !into.contains_key(at));
    let each = each.map(|(at, row)| match with.get(&at).map(|other| &rows[*other]) {
        None => row.clone(),
        Some(other) if row.only_in == Some(DiffSideName::A) => with_both_outcomes(row, other),
        Some(other) => with_both_outcomes(other, row),
    });
    each.collect()
}

/// A path whose calls in A had one outcome, and in B another.
fn with_both_outcomes(a: &DiffRow, b: &DiffRow) -> DiffRow {
    let outcome = b.of.rsplit_once(' ').map_or("", |(_, outcome)| outcome);
    let measure = |name: &'static str| Delta {
        measure: name,
        a: a.measure(name).and_then(|delta| delta.a),
        b: b.measure(name).and_then(|delta| delta.b),
        ..Delta::default()
    };
    let shown = if a.verdict.is_shown() { a.verdict } else { b.verdict };
    DiffRow {
        name: a.name.clone(),
        of: format!("{}{CHANGED}{outcome}", a.of),
        verdict: shown,
        measures: vec![measure("calls"), measure("wall_ns")],
        names: a.names.or(b.names),
        ..DiffRow::default()
    }
}
