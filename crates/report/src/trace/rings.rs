//! What io_uring did, by operation, summed over the images that submitted it.
//!
//! Computed by `submit` in `crates/observe/src/bpf/rings.bpf.h` and
//! `complete` in `crates/observe/src/bpf/rings.bpf.h`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::calls::{ALL_RINGS, RING_PREFIX};
use iotomy_record::{RingOperation, Trace};

use super::images::{Image, Names};
use super::{USUAL_ROWS, print_hidden, rows};
use crate::numbers::{bytes, counted, figure, fixed, thousands};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet};
use crate::table::{Column, Row, Table};

/// The remark where ring operations were chosen, and not watched.
const UNSEEN_THOUGH_CHOSEN: &str = "io_uring: ring operations were not watched: the observer does \
    not see them, or not on this kernel, or the condition can hold for none of them";

/// The remark where a ring was used, and not watched.
const UNSEEN: &str = "io_uring: what its rings did was not watched; the table of calls has \
    io_uring_enter only, without their bytes and errors";

const COLUMNS: [Column; 13] = [
    Column::text("ring operation", 13),
    Column::number("requests", "", 12),
    Column::number("failed", "", 11),
    Column::number("bytes", "", 10),
    Column::number("results", "", 4),
    Column::number("inline", "", 6),
    Column::number("polled", "", 6),
    Column::number("worker", "", 6),
    Column::number("sqpoll", "", 6),
    Column::number("p50", "µs", 8),
    Column::number("p99", "µs", 9),
    Column::number("max", "µs", 7),
    Column::text("by", 1),
];

/// The remark where classic asynchronous I/O was used.
const AIO: &str = "io_submit: what classic asynchronous I/O read and wrote is not seen; its bytes are in no table";

/// An operation of all images, and who submitted it.
type Sum<'r> = (RingOperation, BTreeSet<(u32, &'r str)>);

/// By operation, most requests first.
fn by_operation(record: &Trace) -> Vec<Sum<'_>> {
    let mut sums: BTreeMap<&str, Sum<'_>> = BTreeMap::new();
    for row in &record.ring_operations {
        let (sum, by) = sums.entry(&row.op).or_default();
        sum.merge(row);
        by.insert((row.pid, &row.exec));
    }
    let mut sums: Vec<(&str, Sum<'_>)> = sums.into_iter().collect();
    // Stable: equals stay in the order of their names.
    sums.sort_by_key(|(_, (sum, _))| Reverse(sum.submitted));
    let named =
        sums.into_iter().map(|(op, (sum, by))| (RingOperation { op: op.to_owned(), ..sum }, by));
    named.collect()
}

/// How many requests there were, and their bytes: for the headline. `None` without any.
pub(crate) fn requests(record: &Trace) -> Option<String> {
    let sum = |part: fn(&RingOperation) -> u64| {
        record.ring_operations.iter().map(|row| u128::from(part(row))).sum::<u128>()
    };
    let (submitted, moved) = (sum(|row| row.submitted), sum(|row| row.bytes));
    let requests = counted(submitted, "ring operation", "ring operations");
    match moved {
        _ if submitted == 0 => None,
        0 => Some(requests),
        moved => Some(format!("{requests}, {}", bytes(moved))),
    }
}

/// The remark on a record that has no ring operations because they were not observed, where a ring was used or
/// they were chosen.
fn unseen(record: &Trace) -> Option<&'static str> {
    let is_of_rings = |word: &String| word == ALL_RINGS || word.starts_with(RING_PREFIX);
    let named = [ALL_RINGS.to_owned(), format!("\"{RING_PREFIX}")];
    let asks = |condition: &String| named.iter().any(|name| condition.contains(name));
    if record.observer.sees_rings == Some(true) {
        None
    } else if record.view.calls.iter().any(is_of_rings)
        || [&record.view.r#where, &record.view.until].into_iter().any(asks)
    {
        Some(UNSEEN_THOUGH_CHOSEN)
    } else {
        let mut calls = record.calls.iter();
        calls.any(|call| call.syscall.starts_with("io_uring_")).then_some(UNSEEN)
    }
}

/// Whether there was classic asynchronous I/O.
fn has_aio(record: &Trace) -> bool {
    record.calls.iter().any(|call| call.syscall.starts_with("io_submit") && call.calls > 0)
}

/// How many requests a call of `io_uring_enter` submitted. `None` where that is not known: of images of which a
/// submission thread took requests, and where calls were left out.
fn batches(record: &Trace) -> Option<String> {
    if !record.view.r#where.is_empty() {
        return None;
    }
    let polled: BTreeSet<_> = record
        .ring_operations
        .iter()
        .filter(|row| row.sqpoll > 0)
        .map(|row| (row.pid, &row.exec, row.image))
        .collect();
    let rows = record.ring_operations.iter();
    let rows = rows.filter(|row| !polled.contains(&(row.pid, &row.exec, row.image)));
    let submitted = rows.map(|row| u128::from(row.submitted)).sum::<u128>();
    let calls = record.calls.iter().filter(|call| call.syscall.starts_with("io_uring_enter"));
    let calls = calls.filter(|call| !polled.contains(&(call.pid, &call.exec, call.image)));
    // The result of a call is how many it submitted.
    let calls = calls.map(|call| call.return_log2.total().saturating_sub(call.return_log2.zero));
    let calls = calls.map(u128::from).sum::<u128>();
    (submitted > 0 && calls > 0).then(|| {
        let each = fixed(submitted as f64 / calls as f64, 1);
        let calls = counted(calls, "call", "calls");
        format!("{each} requests a submission, by {calls} of io_uring_enter")
    })
}

pub(super) fn print(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    if let Some(remark) = unseen(record) {
        page.blank();
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, remark);
    }
    if has_aio(record) {
        page.blank();
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, AIO);
    }
    let sums = by_operation(record);
    if sums.is_empty() {
        return;
    }
    let names = Names::from_record(record);
    page.blank();
    table(page, record, &sums, USUAL_ROWS, |page, by| match by.first() {
        _ if images.len() < 2 => String::new(),
        Some((pid, exec)) if by.len() == 1 => names.label(page, exec, *pid),
        _ => counted(by.len() as u128, "process", "processes"),
    });
}

/// Those of an interval, without who submitted them.
pub(crate) fn print_in_interval(page: &mut Page<'_>, record: &Trace, usual_rows: usize) {
    let sums = by_operation(record);
    if !sums.is_empty() {
        table(page, record, &sums, usual_rows, |_, _| String::new());
    }
}

fn table<'r>(
    page: &mut Page<'_>,
    record: &Trace,
    sums: &[Sum<'r>],
    usual_rows: usize,
    by: impl Fn(&Page<'_>, &BTreeSet<(u32, &'r str)>) -> String,
) {
    let shown = rows(record, usual_rows).min(sums.len());
    let mut table = Table::new(&COLUMNS);
    for (sum, images) in &sums[..shown] {
        table.push(Row {
            cells: cells(page, sum, by(page, images)),
            remarks: remarks(page, sum),
            ..Row::default()
        });
    }
    table.print(page);
    print_hidden(page, shown, sums.len(), "");
    if let Some(batches) = batches(record) {
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &batches);
    }
}

fn cells(page: &Page<'_>, sum: &RingOperation, by: String) -> Vec<String> {
    let some = |n: u64| if n > 0 { thousands(n.into()) } else { String::new() };
    let us = |ns: u64| match sum.wall_times.is_empty() {
        true => String::new(),
        false => figure(ns as f64 / 1e3),
    };
    vec![
        page.name(&sum.op, 28),
        thousands(sum.submitted.into()),
        some(sum.errors),
        if sum.bytes > 0 { bytes(sum.bytes.into()) } else { String::new() },
        some(sum.multishot_completions),
        some(sum.inline),
        some(sum.polled),
        some(sum.worker),
        some(sum.sqpoll),
        us(sum.wall_times.quantile(0.5)),
        us(sum.wall_times.quantile(0.99)),
        format!("{}{}", if sum.max_is_bound { page.at_most() } else { "" }, us(sum.max_ns)),
        by,
    ]
}

/// The requests that had not ended, the completions that found no room, and the errors, the most frequent first.
fn remarks(page: &Page<'_>, sum: &RingOperation) -> Vec<String> {
    let mut remarks = Vec::new();
    if sum.in_flight > 0 {
        remarks.push(format!("{} in flight at the end", thousands(sum.in_flight.into())));
    }
    if sum.before > 0 {
        remarks.push(format!("{} older than the watch ended", thousands(sum.before.into())));
    }
    if sum.worker_unbounded > 0 {
        remarks.push(format!("{} by unbounded workers", thousands(sum.worker_unbounded.into())));
    }
    if sum.overflows > 0 {
        let results = counted(sum.overflows.into(), "result", "results");
        remarks.push(format!("{results} found the completion queue full"));
    }
    let mut kinds: Vec<_> = sum.error_kinds.iter().collect();
    kinds.sort_by_key(|(_, n)| Reverse(**n));
    remarks.extend(
        kinds
            .iter()
            .map(|(kind, n)| format!("{} {}", page.name(kind, 24), thousands((**n).into()))),
    );
    remarks
}

/// All of them, for a page; nothing where there were none, and none were missed.
pub(super) fn sheet(page: &Page<'_>, record: &Trace) -> Option<Sheet> {
    let sums = by_operation(record);
    let remark = unseen(record);
    if sums.is_empty() && remark.is_none() && !has_aio(record) {
        return None;
    }
    let fields = vec![
        Field::text("op", "operation"),
        Field::number("submitted", "requests", ""),
        Field::number("completed", "ended", ""),
        Field::number("errors", "failed", ""),
        Field::number("bytes", "bytes", ""),
        Field::number("multishot_completions", "results", ""),
        Field::number("inline", "inline", ""),
        Field::number("polled", "polled", ""),
        Field::number("worker", "worker", ""),
        Field::number("sqpoll", "sqpoll", ""),
        Field::number("p50_ns", "p50", "µs"),
        Field::number("p99_ns", "p99", "µs"),
        Field::number("max_ns", "max", "µs"),
        Field::text("remarks", "remarks"),
    ];
    let mut sheet = Sheet::new("ring_operations", "Ring operations (io_uring)", fields);
    for (sum, _) in &sums {
        let known = !sum.wall_times.is_empty();
        let us = |ns: u64| {
            Cell::from_option(known.then_some(ns), |ns| Cell::whole(ns, figure(ns as f64 / 1e3)))
        };
        sheet.push(vec![
            Cell::text(page.name(&sum.op, 60)),
            Cell::count(sum.submitted),
            Cell::count(sum.completed),
            Cell::count(sum.errors).if_any(),
            Cell::size(sum.bytes).if_any(),
            Cell::count(sum.multishot_completions).if_any(),
            Cell::count(sum.inline).if_any(),
            Cell::count(sum.polled).if_any(),
            Cell::count(sum.worker).if_any(),
            Cell::count(sum.sqpoll).if_any(),
            us(sum.wall_times.quantile(0.5)),
            us(sum.wall_times.quantile(0.99)),
            us(sum.max_ns),
            Cell::text(remarks(page, sum).join(", ")),
        ]);
    }
    sheet.notes.extend(remark.map(str::to_owned));
    if has_aio(record) {
        sheet.notes.push(AIO.to_owned());
    }
    sheet.notes.extend(batches(record));
    Some(sheet.without_empty_columns())
}
