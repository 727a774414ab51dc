//! Requests over connections that differ: their latency, and the parts of it.

use iotomy_record::statistic::Statistics;
use iotomy_record::{Delta, Diff, DiffRow, Exchange};

use super::grid::{Grid, GridRow};
use super::headline::signed;
use super::rows::{changed, grid, named, noise, pair, remarks};
use super::{DiffView, shown};
use crate::numbers::{figure, three_digits};
use crate::page::{Ink, Page};
use crate::table::Column;

const LATENCY: &[Column<'static>] = &[
    Column::text("peer of requests", 13).usually(38).no_less_than(31),
    Column::text("role", 12),
    Column::text("by", 10),
    Column::number("requests", "A", 6),
    Column::number("requests", "B", 7),
    Column::number("mean", "A µs", 9),
    Column::number("mean", "B µs", 10),
    Column::number("p50", "A µs", 3),
    Column::number("p50", "B µs", 4),
    Column::number("p99", "A µs", 8),
    Column::number("p99", "B µs", 9),
    Column::number("max", "A µs", 1),
    Column::number("max", "B µs", 2),
];

const PARTS: &[Column<'static>] = &[
    Column::text("peer of requests", 13).usually(38).no_less_than(31),
    Column::text("role", 12),
    Column::text("by", 8),
    Column::text("part", 11),
    Column::number("mean", "A µs", 10),
    Column::number("mean", "B µs", 10),
    Column::number("B − A", "µs", 9),
    Column::text("", 2),
];

/// The measures whose noise has a word.
const JUDGED: [(&str, &str); 6] = [
    ("mean_ns", "mean"),
    ("wall_p50_ns", "p50"),
    ("wall_p99_ns", "p99"),
    ("wall_max_ns", "max"),
    ("requests", "requests"),
    ("unanswered", "without an answer"),
];

/// The counts that are remarks, where they differ.
const COUNTS: [(&str, &str); 4] = [
    ("unanswered", "without an answer"),
    ("pipelined", "sent before the answer to the one before"),
    ("moved", "moved between threads"),
    ("unseen_arrivals", "timed from the first read"),
];

pub(super) fn latency(page: &Page<'_>, record: &Diff, view: DiffView) -> Grid {
    let title = "requests, by difference of time";
    grid("requests", title, LATENCY, &record.requests, view, |row| {
        let mut cells = ends(page, record, row).to_vec();
        cells.extend(pair(row, "requests", three_digits));
        for measure in ["mean_ns", "wall_p50_ns", "wall_p99_ns", "wall_max_ns"] {
            cells.extend(pair(row, measure, us));
        }
        let mut notes = remarks(row);
        notes.extend(COUNTS.iter().filter_map(|(measure, what)| changed(row, measure, what)));
        let beyond = noise(row, &JUDGED, "parts or counts");
        notes.extend((!beyond.is_empty()).then(|| format!("beyond noise: {beyond}")));
        (cells, notes)
    })
}

/// The parts of the latency that differ, of the requests that both sides had.
pub(super) fn parts(page: &Page<'_>, record: &Diff, view: DiffView) -> Grid {
    let mut rows = Vec::new();
    for row in shown(&record.requests, view).into_iter().take(view.rows()) {
        let mut parts: Vec<(&str, &Delta)> = Exchange::shown()
            .filter_map(|(part, column)| Some((column.head, row.measure(part.shape.mean?)?)))
            .filter(|(_, delta)| is_shown(delta, view))
            .collect();
        parts.sort_by(|(_, one), (_, other)| other.delta().abs().total_cmp(&one.delta().abs()));
        let mut of = ends(page, record, row);
        for (part, delta) in parts {
            // The first row of several has the names.
            let mut cells = std::mem::take(&mut of).to_vec();
            cells.push(part.to_owned());
            cells.extend([delta.a, delta.b].map(|ns| ns.map_or_else(String::new, us)));
            cells.push(signed(delta.delta(), us));
            let is_beyond = delta.beyond_noise == Some(true);
            cells.push(if is_beyond { "beyond noise".to_owned() } else { String::new() });
            rows.push(GridRow { cells, remarks: Vec::new(), ink: Ink::Plain });
        }
    }
    let title = "the parts of the latency, means of a request".to_owned();
    Grid { id: "request_parts", title, lead: None, columns: PARTS, rows, more: None }
}

/// Whether both sides know the part, and it differs by more than is printed, and by more than noise.
fn is_shown(delta: &Delta, view: DiffView) -> bool {
    let (Some(a), Some(b)) = (delta.a, delta.b) else { return false };
    let differs = us(a) != us(b) && delta.beyond_noise != Some(false);
    differs || view.all && a.max(b) > 0.0
}

/// The peer, the role, and the program where there are several.
fn ends(page: &Page<'_>, record: &Diff, row: &DiffRow) -> [String; 3] {
    let by = match record.programs.len() < 2 {
        true => String::new(),
        false => page.name(&row.program, 24),
    };
    [named(page, &row.name), row.of.clone(), by]
}

fn us(ns: f64) -> String {
    figure(ns / 1e3)
}
