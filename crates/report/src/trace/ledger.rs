//! Where the time went, to 100 %.
//!
//! The rows are parts of the time of all threads of all images. What is left is computed from
//! the rows that are printed and is a row itself, so the column adds up whatever the record says.

use iotomy_record::{SortKey, Trace};

use super::images::{CallSum, Image, Ledger};
use crate::numbers::{decimals_for, fixed, share, thousands};
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table, bar};

/// Calls that get a row of their own, at most.
const CALLS: usize = 5;

/// Columns of a bar that stands for 100 %.
const BAR: usize = 20;

/// A part of the time.
pub(crate) struct Part {
    label: String,
    pub(crate) ns: i128,
    remarks: Vec<String>,
}

impl Part {
    fn new(label: impl Into<String>, ns: i128) -> Self {
        Self { label: label.into(), ns, remarks: Vec::new() }
    }
}

pub(super) fn print(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    match Ledger::sum(images) {
        Some(ledger) => print_ledger(page, record, &ledger),
        None => print_wall(page, record),
    }
}

fn print_ledger(page: &mut Page<'_>, record: &Trace, ledger: &Ledger) {
    let thread = ledger.thread.max(0).unsigned_abs();
    let calls = CallSum::by_name(&record.calls, SortKey::OnCpu);
    let blockers = blockers(page, record, decimals_for(thread as f64 / 1e6));
    let parts = parts(page, &calls, ledger, blockers);
    page.blank();
    print_parts(page, "where the time went", "ms", &parts, "thread time", thread);
    print_notes(page, record);
}

/// The parts of the time of all threads, the largest first, and what is left of it; `calls` are
/// sorted by their time on a CPU.
pub(crate) fn parts(
    page: &Page<'_>,
    calls: &[CallSum<'_>],
    ledger: &Ledger,
    blockers: Vec<String>,
) -> Vec<Part> {
    let thread = ledger.thread.max(0).unsigned_abs();
    let shown = worth_a_row(calls, thread, |call| call.on_cpu.unwrap_or(0));
    let mut parts: Vec<_> = calls[..shown]
        .iter()
        .map(|call| Part::new(page.name(call.name, 24), signed(call.on_cpu.unwrap_or(0))))
        .collect();
    let named: i128 = parts.iter().map(|part| part.ns).sum();
    let mut blocked = Part::new("blocked", ledger.blocked);
    blocked.remarks = blockers;
    parts.push(blocked);
    parts.push(Part::new("user (page faults included)", ledger.user));
    parts.push(Part::new("waiting for a CPU", ledger.runnable));
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    if shown < calls.len() || ledger.calls > named {
        // Calls that ran in no row: those not watched, or not returned, are among the others.
        let others = (ledger.calls - named).max(0);
        parts.push(Part::new(other_calls(calls.len() - shown), others));
    }
    let printed: i128 = parts.iter().map(|part| part.ns).sum();
    parts.push(Part::new("residual", ledger.thread - printed));
    parts
}

fn print_notes(page: &mut Page<'_>, record: &Trace) {
    let faults: u128 = record
        .processes
        .iter()
        .map(|p| u128::from(p.minor_faults) + u128::from(p.major_faults))
        .sum();
    let faults = if faults > 0 { format!(" ({})", thousands(faults)) } else { String::new() };
    let note = format!(
        "user is all time on a CPU outside calls: page faults{faults} and interrupts there are part of it"
    );
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &note);
    let threads: u128 = record.processes.iter().map(|p| u128::from(p.threads)).sum();
    if threads > 1 {
        let threads = thousands(threads);
        let note = format!("times add up over {threads} threads, some of them side by side");
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &note);
    }
}

/// Where the observer cannot tell the parts apart: the calls' own time, from entry to return.
fn print_wall(page: &mut Page<'_>, record: &Trace) {
    let calls = CallSum::by_name(&record.calls, SortKey::Wall);
    let total: u128 = calls.iter().map(|call| call.wall).sum();
    if total == 0 {
        return;
    }
    let shown = worth_a_row(&calls, total, |call| call.wall);
    let mut parts: Vec<_> = calls[..shown]
        .iter()
        .map(|call| Part::new(page.name(call.name, 24), signed(call.wall)))
        .collect();
    let rest: u128 = calls[shown..].iter().map(|call| call.wall).sum();
    if shown < calls.len() {
        parts.push(Part::new(other_calls(calls.len() - shown), signed(rest)));
    }
    page.blank();
    print_parts(page, "where calls spent wall time", "ms", &parts, "all calls", total);
    let note = "from entry to return, waiting included; this observer cannot tell time on a CPU \
                from time asleep, nor see the time outside calls";
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, note);
}

pub(crate) fn print_parts(
    page: &mut Page<'_>,
    title: &str,
    unit: &str,
    parts: &[Part],
    sum: &str,
    whole: u128,
) {
    let ms = |ns: i128| ns as f64 / 1e6;
    let largest = parts.iter().map(|part| ms(part.ns).abs()).fold(ms(signed(whole)), f64::max);
    let decimals = decimals_for(largest);
    let mut table = Table::new(&[
        Column::text(title, 9),
        Column::number(unit, "", 8),
        Column::number("share", "", 7),
        Column::text("", 1),
    ]);
    for part in parts {
        table.push(Row {
            cells: vec![
                part.label.clone(),
                fixed(ms(part.ns), decimals),
                share(part.ns, whole),
                bar(part.ns, whole, BAR, page.unicode()),
            ],
            remarks: part.remarks.clone(),
            ink: Ink::Plain,
        });
    }
    table.push(Row {
        cells: vec![
            sum.into(),
            fixed(ms(signed(whole)), decimals),
            share(signed(whole), whole),
            String::new(),
        ],
        ink: Ink::Bold,
        ..Row::default()
    });
    table.print(page);
}

/// How many of the calls, largest first, have 1 % of the whole or more; one at least, and not all
/// but one, since a row "other calls (1)" says less than its name.
fn worth_a_row(calls: &[CallSum<'_>], whole: u128, ns: impl Fn(&CallSum<'_>) -> u128) -> usize {
    let large = calls.iter().take(CALLS).take_while(|call| ns(call) * 100 >= whole && ns(call) > 0);
    let shown = large.count().max(1).min(calls.len());
    if shown + 1 == calls.len() { calls.len() } else { shown }
}

/// The calls that slept most, with their ms.
fn blockers(page: &Page<'_>, record: &Trace, decimals: usize) -> Vec<String> {
    let calls = CallSum::by_name(&record.calls, SortKey::Blocked);
    let total: u128 = calls.iter().filter_map(|call| call.blocked).sum();
    calls
        .iter()
        .filter_map(|call| Some((call.name, call.blocked?)))
        .take_while(|(_, ns)| *ns > 0 && ns * 20 >= total)
        .take(3)
        .map(|(name, ns)| {
            let ms = ns as f64 / 1e6;
            format!("{} {}", page.name(name, 24), fixed(ms, decimals))
        })
        .collect()
}

fn other_calls(n: usize) -> String {
    match n {
        0 => "other calls".into(),
        n => format!("other calls ({})", thousands(n as u128)),
    }
}

/// Sums of 64-bit numbers stay far below the limit.
fn signed(ns: u128) -> i128 {
    i128::try_from(ns).unwrap_or(i128::MAX)
}
