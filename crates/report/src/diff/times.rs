//! Quantiles that differ: how long a call took.

use iotomy_record::{Delta, Diff, DiffRow};

use super::grid::{Grid, GridRow};
use super::rows::{call_name, pair};
use super::{DiffView, shown};
use crate::numbers::figure;
use crate::page::{Ink, Page};
use crate::table::Column;

/// Calls of either side that a quantile takes: with fewer, it is the maximum.
const ENOUGH: [(&str, f64); 3] = [("p50", 100.0), ("p99", 100.0), ("p999", 1_000.0)];

/// Quantiles whose ratio is within this may be of equal times: each is within 2.6 % of the truth.
const SAME_BUCKET: f64 = 1.052;

const TIMES: &[Column<'static>] = &[
    Column::text("call", 11),
    Column::text("time", 10),
    Column::number("p50", "A µs", 8),
    Column::number("p50", "B µs", 8),
    Column::number("p99", "A µs", 9),
    Column::number("p99", "B µs", 9),
    Column::number("p99.9", "A µs", 6),
    Column::number("p99.9", "B µs", 6),
    Column::number("max", "A µs", 7),
    Column::number("max", "B µs", 7),
];

/// Of the calls that were made often enough, those of which a quantile differs, in the order of the calls.
pub(super) fn times(page: &Page<'_>, record: &Diff, view: DiffView) -> Option<Grid> {
    let mut rows = Vec::new();
    let (mut calls, mut hidden) = (0, 0);
    for row in shown(&record.calls, view) {
        let known = |name: &str| is_known(record, row, name);
        let apart: Vec<Kind> = KINDS.into_iter().filter(|kind| kind.is_apart(row, known)).collect();
        // All time was on a CPU: one row says it.
        let is_all_on_cpu = apart.len() == 2 && apart[0].is_same(row, &apart[1]);
        let apart = if is_all_on_cpu { &apart[..1] } else { &apart[..] };
        if apart.is_empty() {
            continue;
        }
        if calls == view.rows() {
            hidden += 1;
            continue;
        }
        calls += 1;
        let mut name = call_name(page, record, row);
        for kind in apart {
            let mut cells = vec![std::mem::take(&mut name), kind.title.to_owned()];
            for (quantile, measure) in kind.measures {
                cells.extend(match known(quantile) {
                    true => pair(row, measure, |ns| figure(ns / 1e3)),
                    false => [String::new(), String::new()],
                });
            }
            cells.extend(pair(row, kind.max, |ns| figure(ns / 1e3)));
            rows.push(GridRow { cells, remarks: Vec::new(), ink: Ink::Plain });
        }
    }
    let more = (hidden > 0).then(|| format!("{hidden} more calls (--top {})", calls + hidden));
    let title = "how long a call took".to_owned();
    Some(Grid { id: "times", title, lead: None, columns: TIMES, rows, more })
}

/// A time of a call, and its measures.
#[derive(Clone, Copy)]
struct Kind {
    title: &'static str,
    measures: [(&'static str, &'static str); 3],
    max: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind {
        title: "wall",
        measures: [("p50", "wall_p50_ns"), ("p99", "wall_p99_ns"), ("p999", "wall_p999_ns")],
        max: "wall_max_ns",
    },
    Kind {
        title: "on-CPU",
        measures: [("p50", "on_cpu_p50_ns"), ("p99", "on_cpu_p99_ns"), ("p999", "on_cpu_p999_ns")],
        max: "on_cpu_max_ns",
    },
    Kind {
        title: "blocked",
        measures: [
            ("p50", "blocked_p50_ns"),
            ("p99", "blocked_p99_ns"),
            ("p999", "blocked_p999_ns"),
        ],
        max: "blocked_max_ns",
    },
];

impl Kind {
    fn is_apart(&self, row: &DiffRow, known: impl Fn(&str) -> bool) -> bool {
        let mut measures = self.measures.iter().filter(|(quantile, _)| known(quantile));
        measures.any(|(_, measure)| row.measure(measure).is_some_and(is_apart))
    }

    fn is_same(&self, row: &DiffRow, other: &Self) -> bool {
        let ends = |name: &str| row.measure(name).map(|delta| (delta.a, delta.b));
        self.measures
            .iter()
            .zip(other.measures)
            .all(|((_, one), (_, other))| ends(one) == ends(other))
    }
}

/// Whether there were enough calls on either side for the quantile.
fn is_known(record: &Diff, row: &DiffRow, quantile: &str) -> bool {
    // Sums of a watch are per second of it.
    let seconds = |walls: &[u64]| match record.per_second {
        true => walls.iter().copied().min().unwrap_or(0) as f64 / 1e9,
        false => 1.0,
    };
    let least = ENOUGH.iter().find(|(name, _)| *name == quantile).map_or(0.0, |(_, least)| *least);
    let of = |calls: Option<f64>, walls: &[u64]| calls.unwrap_or(0.0) * seconds(walls) >= least;
    row.measure("calls")
        .is_some_and(|delta| of(delta.a, &record.a.wall_ns) && of(delta.b, &record.b.wall_ns))
}

/// Whether two quantiles differ by more than their buckets are wide.
fn is_apart(delta: &Delta) -> bool {
    let (Some(a), Some(b)) = (delta.a, delta.b) else { return false };
    let (low, high) = (a.min(b), a.max(b));
    delta.beyond_noise != Some(false) && high > low * SAME_BUCKET
}
