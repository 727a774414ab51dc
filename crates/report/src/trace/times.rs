//! How long calls took: quantiles of their wall, on-CPU and blocked times.
//!
//! Computed by `quantile` in `crates/record/src/times.rs` from the buckets that
//! `count_return` in `crates/observe/src/bpf/calls.bpf.h` counts.

use std::collections::BTreeMap;

use iotomy_record::{QUANTILES, Times, Trace};

use super::call_sum::CallSum;
use super::rows;
use crate::numbers::{figure, thousands};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet};
use crate::table::{Column, Row, Table};

/// The times of a call, over all images.
#[derive(Default)]
struct CallTimes {
    wall: Times,
    on_cpu: Times,
    blocked: Times,
}

impl CallTimes {
    /// The rows for it: one, where on-CPU time is wall time, or is not known.
    fn rows(&self) -> Vec<(&'static str, &Times)> {
        let mut rows = vec![("wall", &self.wall)];
        if !self.on_cpu.is_empty() && self.on_cpu != self.wall {
            rows.push(("on-CPU", &self.on_cpu));
        }
        if !self.blocked.is_empty() {
            rows.push(("blocked", &self.blocked));
        }
        rows
    }
}

/// By call, in the order of the calls.
fn by_call(record: &Trace) -> Vec<(&str, CallTimes)> {
    let mut times: BTreeMap<&str, CallTimes> = BTreeMap::new();
    for call in record.calls.iter().filter(|call| !call.wall_times.is_empty()) {
        let sum = times.entry(&call.syscall).or_default();
        sum.wall.merge(&call.wall_times);
        call.on_cpu_times().into_iter().for_each(|times| sum.on_cpu.merge(times));
        sum.blocked.merge(&call.blocked_times);
    }
    let order = CallSum::by_name(&record.calls, record.view.sort).into_iter();
    order.filter_map(|sum| Some((sum.name, times.remove(sum.name)?))).collect()
}

/// Calls of which there are quantiles in the text: a p99 of fewer is their maximum.
const ENOUGH: u64 = 100;

/// How many calls are shown unless a number was requested.
const USUAL: usize = 5;

const COLUMNS: [Column; 8] = [
    Column::text("call", 11),
    Column::text("time", 10),
    Column::number("calls", "", 4),
    Column::number("p50", "µs", 9),
    Column::number("p90", "µs", 5),
    Column::number("p99", "µs", 8),
    Column::number("p99.9", "µs", 6),
    Column::number("max", "µs", 7),
];

pub(super) fn print(page: &mut Page<'_>, record: &Trace) {
    let mut calls = by_call(record);
    calls.retain(|(_, times)| times.wall.total() >= ENOUGH);
    calls.truncate(rows(record, USUAL));
    if calls.is_empty() {
        return;
    }
    page.blank();
    page.line(&[(Ink::Plain, "  "), (Ink::Bold, "how long a call took")]);
    let mut table = Table::new(&COLUMNS);
    for (name, times) in &calls {
        for (at, (kind, times)) in times.rows().into_iter().enumerate() {
            let name = if at == 0 { page.name(name, 28) } else { String::new() };
            let mut cells = vec![name, kind.to_owned(), thousands(times.total().into())];
            cells.extend(figures(times).map(|ns| figure(ns as f64 / 1e3)));
            table.push(Row { cells, ..Row::default() });
        }
    }
    table.print(page);
}

/// The quantiles and the maximum, in ns.
fn figures(times: &Times) -> impl Iterator<Item = u64> {
    QUANTILES.map(|(_, share)| times.quantile(share)).into_iter().chain([times.max_ns])
}

/// All of them, for a page; nothing for records of before there were any.
pub(super) fn sheet(page: &Page<'_>, record: &Trace) -> Option<Sheet> {
    let calls = by_call(record);
    if calls.is_empty() {
        return None;
    }
    let fields = vec![
        Field::text("call", "call"),
        Field::text("time", "time"),
        Field::number("calls", "calls", ""),
        Field::number("p50_ns", "p50", "µs"),
        Field::number("p90_ns", "p90", "µs"),
        Field::number("p99_ns", "p99", "µs"),
        Field::number("p99_9_ns", "p99.9", "µs"),
        Field::number("max_ns", "max", "µs"),
    ];
    let mut sheet = Sheet::new("times", "How long a call took", fields);
    for (name, times) in &calls {
        for (kind, times) in times.rows() {
            let mut cells =
                vec![Cell::text(page.name(name, 60)), Cell::text(kind), Cell::count(times.total())];
            cells.extend(figures(times).map(|ns| Cell::whole(ns, figure(ns as f64 / 1e3))));
            sheet.push(cells);
        }
    }
    Some(sheet)
}
