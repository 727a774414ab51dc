//! What io_uring did, by operation, summed over the images that submitted it.
//!
//! Computed by `submit` in `crates/observe/src/bpf/rings.bpf.h` and
//! `complete` in `crates/observe/src/bpf/rings.bpf.h`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::calls::{ALL_RINGS, RING_PREFIX};
use iotomy_record::{RingOperation, Trace};

use super::images::{Image, Names};
use super::{USUAL_ROWS, rows};
use crate::columns::{self, Columns, Extent};
use crate::numbers::{bytes, counted, figure, fixed, thousands};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet};

/// The remark where ring operations were chosen, and not watched.
const UNSEEN_THOUGH_CHOSEN: &str = "io_uring: ring operations were not watched: the observer does \
    not see them, or not on this kernel, or the condition can hold for none of them";

/// The remark where a ring was used, and not watched.
const UNSEEN: &str = "io_uring: what its rings did was not watched; the table of calls has \
    io_uring_enter only, without their bytes and errors";

/// The remark where a submission thread took requests.
const QUEUED_UNSEEN: &str = "sqpoll: the time of a request begins when the submission thread takes it; how long it \
    was in the ring before is not seen";

/// The remark where classic asynchronous I/O was used.
const AIO: &str = "io_submit: what classic asynchronous I/O read and wrote is not seen; its bytes are in no table";

/// An operation of all images, and who submitted it.
#[derive(Default)]
struct Sum<'r> {
    of: RingOperation,
    by: BTreeSet<(u32, &'r str)>,
}

/// By operation, most requests first, unless another order was requested.
fn by_operation(record: &Trace) -> Vec<Sum<'_>> {
    let mut sums: BTreeMap<&str, Sum<'_>> = BTreeMap::new();
    for row in &record.ring_operations {
        let sum = sums.entry(&row.op).or_insert_with(|| Sum {
            of: RingOperation { op: row.op.clone(), ..RingOperation::default() },
            by: BTreeSet::new(),
        });
        sum.of.merge(row);
        sum.by.insert((row.pid, &row.exec));
    }
    let mut sums: Vec<Sum<'_>> = sums.into_values().collect();
    columns::sort(&mut sums, record.view.sort, |sum| &sum.of, |row| row.submitted);
    sums
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

/// Whether a submission thread took requests.
fn has_submission_thread(record: &Trace) -> bool {
    record.ring_operations.iter().any(|row| row.sqpoll > 0)
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
    if !record.ring_operations.is_empty() {
        page.blank();
        print_table(page, record, images.len(), USUAL_ROWS);
    }
}

/// Those of an interval, without who submitted them.
pub(crate) fn print_in_interval(page: &mut Page<'_>, record: &Trace, usual_rows: usize) {
    if !record.ring_operations.is_empty() {
        print_table(page, record, 0, usual_rows);
    }
}

fn print_table(page: &mut Page<'_>, record: &Trace, images: usize, usual_rows: usize) {
    let extent = Extent { rows: rows(record, usual_rows), name: 28 };
    table(page, record, images, extent).print(page, "");
    if let Some(batches) = batches(record) {
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &batches);
    }
    if has_submission_thread(record) {
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, QUEUED_UNSEEN);
    }
}

/// With who submitted them, where there are several images.
fn table(page: &Page<'_>, record: &Trace, images: usize, extent: Extent) -> Sheet {
    let names = Names::from_record(record);
    let us = |key: &str, head: &str, worth: u8| Field::number(key, head, "µs").worth(worth);
    let known = |sum: &Sum<'_>, ns: u64| {
        let known = (!sum.of.wall_times.is_empty()).then_some(ns);
        Cell::from_option(known, |ns| Cell::whole(ns, figure(ns as f64 / 1e3)))
    };
    let quantile = |share| move |sum: &Sum<'_>| known(sum, sum.of.wall_times.quantile(share));
    Columns::new()
        .text(Field::text("op", "ring operation").worth(13), |sum: &Sum<'_>| {
            page.name(&sum.of.op, extent.name)
        })
        .declared(0, |sum: &Sum<'_>| Some(&sum.of))
        .number(us("p50_ns", "p50", 8), quantile(0.5))
        .number(us("p99_ns", "p99", 9), quantile(0.99))
        .number(us("max_ns", "max", 7), |sum| {
            let cell = known(sum, sum.of.max_ns);
            let at_most = if sum.of.max_is_bound { page.at_most() } else { "" };
            Cell { text: format!("{at_most}{}", cell.text), ..cell }
        })
        .text(Field::text("by", "by").worth(1), |sum| match images {
            0 | 1 => String::new(),
            _ => names.label_all(page, &sum.by),
        })
        .text(Field::remarks(), |sum| remarks(page, &sum.of).join(", "))
        .sheet("ring_operations", "Ring operations (io_uring)", &by_operation(record), None, extent)
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
pub(super) fn sheet(page: &Page<'_>, record: &Trace, images: &[Image<'_>]) -> Option<Sheet> {
    let remark = unseen(record);
    if record.ring_operations.is_empty() && remark.is_none() && !has_aio(record) {
        return None;
    }
    let mut sheet = table(page, record, images.len(), Extent::PAGE);
    sheet.notes.extend(remark.map(str::to_owned));
    if has_aio(record) {
        sheet.notes.push(AIO.to_owned());
    }
    sheet.notes.extend(batches(record));
    if has_submission_thread(record) {
        sheet.notes.push(QUEUED_UNSEEN.to_owned());
    }
    Some(sheet.without_empty_columns())
}
