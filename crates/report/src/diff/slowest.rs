//! The slowest calls of either side. They are single calls, and not compared.

use iotomy_record::Diff;

use super::grid::{Grid, GridRow};
use crate::numbers::{decimals_for, fixed};
use crate::page::{Ink, Page};
use crate::table::Column;
use crate::trace::images::label;
use crate::trace::slowest::{process, text, woken};

const COLUMNS: &[Column<'static>] = &[
    Column::text("call", 9),
    Column::text("of", 10),
    Column::number("wall", "ms", 8),
    Column::number("on-CPU", "ms", 3),
    Column::number("blocked", "ms", 6),
    Column::number("runq", "ms", 2),
    Column::text("process", 5),
];

pub(super) fn slowest(page: &Page<'_>, record: &Diff) -> Grid {
    let sides = [("A", &record.slowest.a), ("B", &record.slowest.b)];
    let calls: Vec<_> = sides
        .iter()
        .flat_map(|(side, calls)| calls.iter().map(move |call| (*side, call)))
        .collect();
    let most = calls.iter().map(|(_, call)| call.wall_ns).max().unwrap_or(0);
    let decimals = decimals_for(most as f64 / 1e6);
    let ms = |ns: u64| fixed(ns as f64 / 1e6, decimals);
    let known = |ns: Option<u64>| ns.map_or_else(String::new, ms);
    let rows = calls.into_iter().map(|(side, call)| {
        let cells = vec![
            page.name(&call.syscall, 28),
            side.to_owned(),
            ms(call.wall_ns),
            known(call.on_cpu_ns),
            known(call.blocked_ns),
            known(call.runnable_ns),
            process(page, label(page, &call.exec, call.pid), call),
        ];
        let mut remarks = vec![text(page, call)];
        remarks.extend(call.woken_by.as_ref().map(|waker| woken(page, waker)));
        GridRow { cells, remarks, ink: Ink::Plain }
    });
    Grid {
        id: "slowest",
        title: "the slowest calls of each side, not compared".to_owned(),
        lead: None,
        columns: COLUMNS,
        rows: rows.collect(),
        more: None,
    }
}
