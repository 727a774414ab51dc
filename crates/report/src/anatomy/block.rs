//! Requests to devices by cause, their durations, and the benefit of read-ahead.
//!
//! Computed by `block_rq_complete` in `crates/observe/src/bpf/requests.bpf.h`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{BlockIo, BlockPath, Histogram, ReadAhead, Requests};

use crate::numbers::{bytes, counted, figure, share, thousands};
use crate::page::{Ink, Page};
use crate::quantize;
use crate::table::{Column, Row, Table};

const COLUMNS: [Column; 9] = [
    Column::text("caused by", 9),
    Column::text("device", 7),
    Column::text("does", 8),
    Column::number("requests", "", 6),
    Column::number("bytes", "", 5),
    Column::number("merged", "", 2),
    Column::number("mean size", "", 1),
    Column::number("queued", "mean µs", 3),
    Column::number("device", "mean µs", 4),
];

/// The default number of rows.
const ROWS: usize = 12;

/// Requests from which on a distribution is more informative than a mean.
const OFTEN: u128 = 16;

/// Devices and operations whose distributions are shown.
const DISTRIBUTIONS: usize = 2;

/// Prints the work of the block layer; nothing if there was none. `rows` is the requested number; 0
/// is all.
pub(crate) fn print(page: &mut Page<'_>, block: &BlockIo, rows: Option<usize>) {
    print_headline(page, block);
    print_requests(page, &by_cause(&block.requests), rows);
    print_distributions(page, block);
    print_read_ahead(page, &block.read_ahead);
}

fn sum<'r>(rows: impl IntoIterator<Item = &'r Requests>, of: fn(&Requests) -> u64) -> u128 {
    rows.into_iter().map(|row| u128::from(of(row))).sum()
}

/// How much went to devices, and how much of others was not counted; none where nothing did.
pub(super) fn headline(block: &BlockIo) -> Option<String> {
    if block.requests.is_empty() && block.others_requests == 0 {
        return None;
    }
    let rows = &block.requests;
    let own = sum(rows, |row| row.requests);
    let (given_up, moved): (Vec<&Requests>, Vec<&Requests>) =
        rows.iter().partition(|row| row.operation == "discard");
    let mut text =
        format!("{}, {}", counted(own, "request", "requests"), bytes(sum(moved, |row| row.bytes)));
    if !given_up.is_empty() {
        text += &format!(" and discards of {}", bytes(sum(given_up, |row| row.bytes)));
    }
    if block.others_requests > 0 {
        text += &format!(
            " · not counted: {} of others, {}",
            thousands(block.others_requests.into()),
            bytes(block.others_bytes.into())
        );
    }
    Some(text)
}

/// Rows that found no room, in words.
pub(super) fn lost(block: &BlockIo) -> Vec<String> {
    let lost = [
        (block.lost, "of the block layer's events did not fit into a bounded table"),
        (block.lost_pages, "pages read ahead did not fit into a bounded table"),
    ];
    let lost = lost.into_iter().filter(|(n, _)| *n > 0);
    lost.map(|(n, what)| format!("{} {what}", thousands(n.into()))).collect()
}

fn print_headline(page: &mut Page<'_>, block: &BlockIo) {
    let Some(text) = headline(block) else { return };
    page.blank();
    let lead = [(Ink::Plain, "  "), (Ink::Bold, "block I/O"), (Ink::Plain, "  ")];
    page.wrapped(&lead, Ink::Plain, &text);
    for text in lost(block) {
        page.wrapped(&[(Ink::Plain, "  "), (Ink::Red, "lost  ")], Ink::Plain, &text);
    }
}

/// Rows of one program and cause, all its processes together, and how many these are.
pub(super) type Cause<'r> = (Requests, BTreeSet<u32>, &'r str);

pub(super) fn by_cause(rows: &[Requests]) -> Vec<Cause<'_>> {
    let mut causes: BTreeMap<_, Cause<'_>> = BTreeMap::new();
    for row in rows {
        let key = (&row.exec, row.via, &row.syscall, &row.device, &row.operation);
        match causes.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert((row.clone(), BTreeSet::from([row.pid]), &row.exec));
            }
            Entry::Occupied(mut entry) => {
                let (sum, pids, _) = entry.get_mut();
                pids.insert(row.pid);
                add(sum, row);
            }
        }
    }
    let mut causes: Vec<Cause<'_>> = causes.into_values().collect();
    causes.sort_by_key(|(row, ..)| std::cmp::Reverse((row.device_ns, row.bio_bytes)));
    causes
}

/// Adds the figures of a row.
fn add(sum: &mut Requests, row: &Requests) {
    let shown: [fn(&mut Requests) -> &mut u64; 13] = [
        |row| &mut row.bios,
        |row| &mut row.bio_bytes,
        |row| &mut row.merged_bios,
        |row| &mut row.merged_requests,
        |row| &mut row.requests,
        |row| &mut row.bytes,
        |row| &mut row.finished,
        |row| &mut row.errors,
        |row| &mut row.requeued,
        |row| &mut row.meta,
        |row| &mut row.fua,
        |row| &mut row.queue_ns,
        |row| &mut row.device_ns,
    ];
    let mut more = row.clone();
    for of in shown {
        *of(sum) = of(sum).saturating_add(*of(&mut more));
    }
}

fn print_requests(page: &mut Page<'_>, causes: &[Cause<'_>], rows: Option<usize>) {
    let all = causes.len();
    if all == 0 {
        return;
    }
    let shown = match rows {
        None => ROWS.min(all),
        Some(0) => all,
        Some(rows) => rows.min(all),
    };
    let mut table = Table::new(&COLUMNS);
    for (row, pids, exec) in &causes[..shown] {
        let whose = whose(page, pids, exec);
        table.push(Row { cells: cells(page, row, &whose), remarks: remarks(row), ink: ink(row) });
    }
    table.print(page);
    if shown < all {
        let text = format!("  … {} more (--top {all})", all - shown);
        page.line(&[(Ink::Dim, &text)]);
    }
}

/// A program, and of how many processes.
pub(super) fn whose(page: &Page<'_>, pids: &BTreeSet<u32>, exec: &str) -> String {
    match pids.len() {
        1 => page.name(exec, 20),
        n => format!("{n} × {}", page.name(exec, 20)),
    }
}

fn cells(page: &Page<'_>, row: &Requests, whose: &str) -> Vec<String> {
    let mean = |ns: u64, of: u64| match of {
        0 => String::new(),
        of => figure(ns as f64 / of as f64 / 1000.0),
    };
    let merged = u128::from(row.merged_bios) + u128::from(row.merged_requests);
    vec![
        format!("{whose}: {}", cause(page, row)),
        page.name(&row.device, 20),
        page.name(&row.operation, 20),
        thousands(row.requests.into()),
        if row.bytes > 0 { bytes(row.bytes.into()) } else { String::new() },
        if merged > 0 { thousands(merged) } else { String::new() },
        match row.bytes.checked_div(row.requests) {
            Some(mean) if row.bytes > 0 => bytes(mean.into()),
            _ => String::new(),
        },
        mean(row.queue_ns, row.requests),
        mean(row.device_ns, row.finished),
    ]
}

/// The cause of the requests, in words.
pub(super) fn cause(page: &Page<'_>, row: &Requests) -> String {
    let call = row.syscall.as_ref().map(|name| page.name(name, 24));
    let what = match row.via {
        BlockPath::Call => return call.unwrap_or_else(|| "a call".to_owned()),
        BlockPath::Fault => "page faults",
        BlockPath::WriteBack => "write-back",
        BlockPath::Journal => "journal",
        BlockPath::OtherProcess => "write-back by others",
        BlockPath::IoUring if call.is_some() => "io_uring thread",
        BlockPath::IoUring => "io_uring",
    };
    match call {
        Some(call) => format!("{call}, {what}"),
        None => what.to_owned(),
    }
}

pub(super) fn remarks(row: &Requests) -> Vec<String> {
    let mut remarks = Vec::new();
    if row.errors > 0 {
        remarks.push(counted(row.errors.into(), "error", "errors"));
    }
    let open = row.requests.saturating_sub(row.finished);
    let counts = [
        (open, "not done yet"),
        (row.requeued, "retried"),
        (row.meta, "of metadata"),
        (row.fua, "to the medium"),
    ];
    let counts = counts.into_iter().filter(|(n, _)| *n > 0);
    remarks.extend(counts.map(|(n, what)| format!("{} {what}", thousands(n.into()))));
    if row.requests == 0 && row.bios > row.merged_bios {
        let bios = counted(row.bios.into(), "bio", "bios");
        remarks.push(format!("{bios}, {}: no requests", bytes(row.bio_bytes.into())));
    }
    remarks
}

fn ink(row: &Requests) -> Ink {
    if row.errors > 0 { Ink::Red } else { Ink::Plain }
}

fn print_distributions(page: &mut Page<'_>, block: &BlockIo) {
    let mut by: BTreeMap<(&str, &str), [Histogram; 3]> = BTreeMap::new();
    for row in &block.requests {
        let of = by.entry((&row.device, &row.operation)).or_default();
        of[0].merge(&row.size_log2);
        of[1].merge(&row.queue_log2);
        of[2].merge(&row.device_log2);
    }
    let total = |histograms: &[Histogram; 3]| u128::from(histograms[0].total());
    let mut often: Vec<_> = by.iter().filter(|(_, of)| total(of) >= OFTEN).collect();
    often.sort_by_key(|(_, of)| std::cmp::Reverse(total(of)));
    for ((device, operation), histograms) in often.into_iter().take(DISTRIBUTIONS) {
        let whose = format!("{} {}", page.name(device, 20), page.name(operation, 20));
        let whats = [("size", "bytes"), ("queued", "ns"), ("in the device", "ns")];
        let filled = whats.into_iter().zip(histograms).filter(|(_, of)| of.total() > 0);
        for ((what, unit), histogram) in filled {
            page.blank();
            let text = format!("{whose} — {what}");
            page.line(&[(Ink::Plain, "  "), (Ink::Bold, &text)]);
            quantize::print(page, histogram, unit);
        }
    }
}

/// Pages by program, all its processes together: requested, missed, found read ahead, read ahead.
pub(super) fn read_ahead(rows: &[ReadAhead]) -> BTreeMap<&str, [u128; 4]> {
    let mut by: BTreeMap<&str, [u128; 4]> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.missed_pages > 0 || row.ahead_pages > 0) {
        let pages = [row.asked_pages, row.missed_pages, row.hit_pages, row.ahead_pages];
        let sums = by.entry(&row.exec).or_default();
        sums.iter_mut().zip(pages).for_each(|(sum, pages)| *sum += u128::from(pages));
    }
    by
}

fn print_read_ahead(page: &mut Page<'_>, rows: &[ReadAhead]) {
    let by = read_ahead(rows);
    if !by.is_empty() {
        page.blank();
    }
    for (exec, [asked, missed, hits, ahead]) in by {
        let text = format!(
            "{} requested {}: {} fetched on demand, {} already read ahead{}",
            page.name(exec, 20),
            counted(asked, "page", "pages"),
            thousands(missed),
            thousands(hits),
            match share(hits.cast_signed(), ahead) {
                share if share.is_empty() => String::new(),
                share => format!(", {share} of {}", thousands(ahead)),
            },
        );
        page.wrapped(
            &[(Ink::Plain, "  "), (Ink::Bold, "read-ahead"), (Ink::Plain, "  ")],
            Ink::Plain,
            &text,
        );
    }
}
