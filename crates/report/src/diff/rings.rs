//! Operations of io_uring that differ.

use iotomy_record::Diff;

use super::DiffView;
use super::grid::Grid;
use super::rows::{changed, error_remarks, grid, pair, remarks};
use crate::numbers::{bytes, figure, three_digits};
use crate::page::Page;
use crate::table::Column;

const OPERATIONS: &[Column<'static>] = &[
    Column::text("ring operation", 11),
    Column::number("requests", "A", 8),
    Column::number("requests", "B", 9),
    Column::number("bytes", "A", 5),
    Column::number("bytes", "B", 6),
    Column::number("mean", "A µs", 7),
    Column::number("mean", "B µs", 8),
    Column::number("p99", "A µs", 4),
    Column::number("p99", "B µs", 5),
    Column::number("max", "A µs", 2),
    Column::number("max", "B µs", 3),
];

/// What is said beside a row where it differs.
const COUNTS: [(&str, &str); 6] = [
    ("inline", "inline"),
    ("polled", "polled"),
    ("worker", "by workers"),
    ("sqpoll", "by the submission thread"),
    ("multishot_completions", "results"),
    ("overflows", "without room in the queue"),
];

pub(super) fn ring_operations(page: &Page<'_>, record: &Diff, view: DiffView) -> Grid {
    let title = "ring operations (io_uring), by difference of time in flight";
    grid("ring_operations", title, OPERATIONS, &record.ring_operations, view, |row| {
        let name = page.name(&row.name, 28);
        let mut cells = vec![match record.programs.len() < 2 {
            true => name,
            false => format!("{}: {name}", page.name(&row.program, 24)),
        }];
        cells.extend(pair(row, "submitted", three_digits));
        cells.extend(pair(row, "bytes", |n| match n > 0.0 {
            true => bytes(n as u128),
            false => String::new(),
        }));
        for measure in ["mean_ns", "wall_p99_ns", "wall_max_ns"] {
            cells.extend(pair(row, measure, |ns| figure(ns / 1e3)));
        }
        let mut told = remarks(row);
        told.extend(error_remarks(page, row));
        told.extend(COUNTS.iter().filter_map(|(measure, what)| changed(row, measure, what)));
        (cells, told)
    })
}
