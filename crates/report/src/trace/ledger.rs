//! Where the time went, to 100 %.
//!
//! The rows are parts of the time of all threads of all images. The rest is computed from the
//! printed rows and is a row itself, so the column adds up for any record.
//!
//! Computed by `settle_thread` in `crates/observe/src/bpf/books.bpf.h` and
//! `outcome` in `crates/observe/src/bpf/outcome.rs`.

use iotomy_record::{LedgerRow, SortKey, Trace};

use super::call_sum::CallSum;
use super::images::{self, Image};
use crate::numbers::{counted, decimals_for, duration, fixed, share, thousands};
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table, bar};

/// Calls that get a row of their own, at most.
const CALLS: usize = 5;

/// Columns of a bar of 100 %.
const BAR: usize = 20;

/// A part of the time.
pub(crate) struct LedgerEntry {
    pub(super) label: String,
    pub(crate) ns: i128,
    pub(super) remarks: Vec<String>,
    pub(super) kind: Kind,
}

/// The kind of time of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// In calls.
    Call,
    /// Outside of them.
    User,
    /// Blocked.
    Blocked,
    /// Ready, in a run queue.
    Waiting,
    /// The rest.
    Residual,
}

impl LedgerEntry {
    fn new(label: impl Into<String>, ns: i128, kind: Kind) -> Self {
        Self { label: label.into(), ns, remarks: Vec::new(), kind }
    }
}

/// Where the time went, before it is printed or drawn.
pub(super) struct Account {
    pub(super) title: &'static str,
    pub(super) parts: Vec<LedgerEntry>,
    /// The name of the whole.
    pub(super) sum: &'static str,
    pub(super) whole: u128,
    pub(super) notes: Vec<String>,
}

pub(super) fn print(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    let Some(account) = account(page, record, images) else { return };
    page.blank();
    print_parts(page, account.title, "ms", &account.parts, account.sum, account.whole);
    for note in &account.notes {
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, note);
    }
}

/// The account of a record; none where no call took any time.
pub(super) fn account(page: &Page<'_>, record: &Trace, images: &[Image<'_>]) -> Option<Account> {
    match images::ledger(images) {
        Some(ledger) => Some(of_threads(page, record, &ledger)),
        None => of_calls(page, record),
    }
}

fn of_threads(page: &Page<'_>, record: &Trace, ledger: &LedgerRow) -> Account {
    let thread = u128::from(ledger.thread_ns);
    let calls = CallSum::by_name(&record.calls, SortKey::ON_CPU);
    let blockers = blockers(page, record, decimals_for(thread as f64 / 1e6));
    // Of a part of the time, estimates of single calls do not add up to the exact blocked time.
    let blockers = if record.sample.is_some() { Vec::new() } else { blockers };
    let mut parts = parts(page, &calls, ledger, blockers);
    if record.observer.calls_passed > 0 {
        let user = parts.iter_mut().filter(|part| part.kind == Kind::User);
        user.for_each(|part| part.label = "user, and calls left out".to_owned());
    }
    Account {
        title: "where the time went",
        parts,
        sum: "thread time",
        whole: thread,
        notes: notes(record),
    }
}

/// The parts of the time of all threads, the largest first, and the rest; `calls` are sorted by
/// their on-CPU time.
pub(crate) fn parts(
    page: &Page<'_>,
    calls: &[CallSum<'_>],
    ledger: &LedgerRow,
    blockers: Vec<String>,
) -> Vec<LedgerEntry> {
    let thread = u128::from(ledger.thread_ns);
    let shown = worth_a_row(calls, thread, |call| call.on_cpu().unwrap_or(0));
    let mut parts: Vec<_> = calls[..shown]
        .iter()
        .map(|call| {
            LedgerEntry::new(
                page.name(call.name, 24),
                signed(call.on_cpu().unwrap_or(0)),
                Kind::Call,
            )
        })
        .collect();
    let named: i128 = parts.iter().map(|part| part.ns).sum();
    let mut blocked = LedgerEntry::new("blocked", ledger.blocked_ns.into(), Kind::Blocked);
    blocked.remarks = blockers;
    parts.push(blocked);
    parts.push(LedgerEntry::new("user (page faults included)", ledger.user_ns.into(), Kind::User));
    parts.push(LedgerEntry::new("run queue delay", ledger.runnable_ns.into(), Kind::Waiting));
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    let in_calls = i128::from(ledger.calls_on_cpu_ns);
    if shown < calls.len() || in_calls > named {
        // Calls that ran in no row: those not watched, or not returned, are among the others.
        let others = (in_calls - named).max(0);
        parts.push(LedgerEntry::new(other_calls(calls.len() - shown), others, Kind::Call));
    }
    let printed: i128 = parts.iter().map(|part| part.ns).sum();
    parts.push(LedgerEntry::new("residual", signed(thread) - printed, Kind::Residual));
    parts
}

fn notes(record: &Trace) -> Vec<String> {
    let faults: u128 = record
        .processes
        .iter()
        .map(|p| u128::from(p.minor_faults) + u128::from(p.major_faults))
        .sum();
    let faults = if faults > 0 { format!(" ({})", thousands(faults)) } else { String::new() };
    let mut notes = Vec::new();
    if record.sample.is_some() {
        notes.push(
            "calls are estimates, and user what they leave of the on-CPU time; thread time, blocked time and run \
             queue delay are exact"
                .to_owned(),
        );
    }
    notes.push(format!(
        "user: on-CPU time outside calls, including page faults{faults} and interrupts"
    ));
    if record.observer.calls_passed > 0 {
        let calls = counted(record.observer.calls_passed.into(), "call", "calls");
        notes.push(format!("the on-CPU time of {calls} left out is part of user"));
    }
    let threads = u128::from(record.thread_count());
    if threads > 1 {
        let threads = thousands(threads);
        notes.push(format!("thread times are summed over {threads} threads"));
    }
    let workers: u128 = record.ledger.iter().map(|row| u128::from(row.worker_ns)).sum();
    if workers > 0 {
        let time = duration(workers as f64);
        notes.push(format!("io_uring's own threads ran for {time} besides, which is in no row"));
    }
    notes
}

/// Where the observer cannot separate the parts: the calls' own time, from entry to return.
fn of_calls(page: &Page<'_>, record: &Trace) -> Option<Account> {
    let calls = CallSum::by_name(&record.calls, SortKey::WALL);
    let total: u128 = calls.iter().map(|call| call.wall()).sum();
    if total == 0 {
        return None;
    }
    let shown = worth_a_row(&calls, total, |call| call.wall());
    let mut parts: Vec<_> = calls[..shown]
        .iter()
        .map(|call| LedgerEntry::new(page.name(call.name, 24), signed(call.wall()), Kind::Call))
        .collect();
    let rest: u128 = calls[shown..].iter().map(|call| call.wall()).sum();
    if shown < calls.len() {
        parts.push(LedgerEntry::new(other_calls(calls.len() - shown), signed(rest), Kind::Call));
    }
    let note = "from entry to return; this observer cannot separate on-CPU time, blocked time and \
        run queue delay, nor see the time outside calls";
    Some(Account {
        title: "where calls spent wall time",
        parts,
        sum: "all calls",
        whole: total,
        notes: vec![note.to_owned()],
    })
}

pub(crate) fn print_parts(
    page: &mut Page<'_>,
    title: &str,
    unit: &str,
    parts: &[LedgerEntry],
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

/// The number of calls, largest first, with 1 % of the whole or more; at least one, and not all but
/// one, since a row "other calls (1)" is less informative than its name.
fn worth_a_row(calls: &[CallSum<'_>], whole: u128, ns: impl Fn(&CallSum<'_>) -> u128) -> usize {
    let large = calls.iter().take(CALLS).take_while(|call| ns(call) * 100 >= whole && ns(call) > 0);
    let shown = large.count().max(1).min(calls.len());
    if shown + 1 == calls.len() { calls.len() } else { shown }
}

/// The calls with the most blocked time, and other sleeps, with their ms.
fn blockers(page: &Page<'_>, record: &Trace, decimals: usize) -> Vec<String> {
    let calls = CallSum::by_name(&record.calls, SortKey::BLOCKED);
    let sum = |part: fn(&LedgerRow) -> u64| -> u128 {
        record.ledger.iter().map(|row| u128::from(part(row))).sum()
    };
    let major: u128 = record.processes.iter().map(|p| u128::from(p.major_faults)).sum();
    let faults = match major {
        0 => String::new(),
        n => format!(" ({} major)", thousands(n)),
    };
    let mut sleeps: Vec<(String, u128, String)> = calls
        .iter()
        .filter_map(|call| Some((page.name(call.name, 24), call.blocked()?, String::new())))
        .collect();
    sleeps.push(("page faults".into(), sum(|row| row.fault_ns.unwrap_or(0)), faults));
    sleeps.push(("stopped".into(), sum(|row| row.stopped_ns), String::new()));
    sleeps.sort_by_key(|(_, ns, _)| std::cmp::Reverse(*ns));
    let total: u128 = sleeps.iter().map(|(_, ns, _)| ns).sum();
    sleeps
        .iter()
        .take_while(|(_, ns, _)| *ns > 0 && ns * 20 >= total)
        .take(3)
        .map(|(name, ns, more)| format!("{name} {}{more}", fixed(*ns as f64 / 1e6, decimals)))
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
