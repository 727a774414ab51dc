//! One row a thread, when threads were requested.
//!
//! Computed by `settle_thread_row` in `crates/observe/src/bpf/books.bpf.h` and
//! `crates/observe/src/threads.rs`.

use std::cmp::Reverse;

use iotomy_record::{SortKey, Thread, Trace};

use super::images::{Image, Names, label as label_one, times};
use super::{USUAL_ROWS, print_hidden, rows};
use crate::numbers::{decimals_for, fixed, share, thousands};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet};
use crate::table::{Column, Row, Table};

const COLUMNS: [Column; 11] = [
    // Names of threads differ at their ends, and their ids stand behind these.
    Column::text("thread", 9).no_less_than(24),
    Column::text("process", 4),
    Column::number("calls", "", 6),
    Column::number("errors", "", 2),
    Column::number("on-CPU", "ms", 9),
    Column::number("CPU", "%", 8),
    Column::number("blocked", "ms", 5),
    Column::number("runq", "ms", 3),
    Column::number("switches", "vol.", 1),
    Column::number("", "invol.", 1),
    Column::text("most time in", 7),
];

pub(super) fn print(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    if !record.view.threads {
        return;
    }
    page.blank();
    if record.threads.is_empty() {
        page.line(&[(Ink::Dim, "  no thread was watched")]);
        return;
    }
    let threads = sorted(record);
    let names = Names::from_record(record);
    let shown = rows(record, USUAL_ROWS).min(threads.len());
    let total = Sum::new(&record.threads);
    let decimals = decimals_for(total.on_cpu as f64 / 1e6);
    let mut table = Table::new(&COLUMNS);
    for thread in &threads[..shown] {
        let label = label(page, thread);
        let process = names.label(page, &thread.exec, thread.pid);
        // The first thread has the name of its process, unless it chose another.
        let process = if images.len() > 1 && process != label { process } else { String::new() };
        let sum = Sum::new([*thread]);
        let cells = cells(label, process, &sum, record, decimals, longest(page, thread));
        table.push(Row { cells, ..Row::default() });
    }
    if threads.len() > 1 {
        let cells = cells("all".into(), String::new(), &total, record, decimals, String::new());
        table.push(Row { cells, ink: Ink::Bold, ..Row::default() });
    }
    table.print(page);
    print_hidden(page, shown, threads.len(), "");
}

/// `redis-server (812)`, or `worker × 1,204` for several threads.
fn label(page: &Page<'_>, thread: &Thread) -> String {
    match thread.count() {
        1 => label_one(page, &thread.name, thread.tid),
        // Of several without a name, these are the ones for whose names there was no room.
        n if thread.name.is_empty() => times(page, "(other names)", n),
        n => times(page, &thread.name, n),
    }
}

/// `futex 98 %`, or `user 71 %`: of its own time, where that is known. An `execve` may outlast its
/// image.
fn longest(page: &Page<'_>, thread: &Thread) -> String {
    let (name, ns) = match thread.user_ns {
        Some(user) if user > thread.longest_ns => ("user".to_owned(), user),
        _ => (page.name(&thread.longest_call, 24), thread.longest_ns),
    };
    match thread.thread_ns {
        Some(whole) if whole > 0 && !name.is_empty() => {
            format!("{name} {}", share(ns.min(whole).into(), whole.into()))
        }
        _ => name,
    }
}

/// The busiest first, unless another order was requested.
fn sorted(record: &Trace) -> Vec<&Thread> {
    let mut threads: Vec<&Thread> = record.threads.iter().collect();
    let value = |thread: &&Thread| match record.view.sort {
        SortKey::BLOCKED => thread.blocked_ns.unwrap_or(0),
        SortKey::CALLS => thread.calls,
        SortKey::ERRORS => thread.errors,
        _ => thread.on_cpu_ns,
    };
    match record.view.sort {
        SortKey::NAME => threads.sort_by(|a, b| (&a.name, a.tid).cmp(&(&b.name, b.tid))),
        _ => threads.sort_by_key(|thread| (Reverse(value(thread)), thread.pid, thread.tid)),
    }
    threads
}

/// Figures of a thread, or of several, wide enough for any.
struct Sum {
    threads: u128,
    calls: u128,
    errors: u128,
    on_cpu: u128,
    blocked: Option<u128>,
    runnable: Option<u128>,
    voluntary: u128,
    involuntary: u128,
}

impl Sum {
    fn new<'r>(threads: impl IntoIterator<Item = &'r Thread> + Clone) -> Self {
        let sum = |part: fn(&Thread) -> u64| -> u128 {
            threads.clone().into_iter().map(|thread| u128::from(part(thread))).sum()
        };
        let known = |part: fn(&Thread) -> Option<u64>| -> Option<u128> {
            threads.clone().into_iter().map(|thread| part(thread).map(u128::from)).sum()
        };
        Self {
            threads: threads.clone().into_iter().map(|thread| u128::from(thread.count())).sum(),
            calls: sum(|thread| thread.calls),
            errors: sum(|thread| thread.errors),
            on_cpu: sum(|thread| thread.on_cpu_ns),
            blocked: known(|thread| thread.blocked_ns),
            runnable: known(|thread| thread.runnable_ns),
            voluntary: sum(|thread| thread.voluntary_switches),
            involuntary: sum(|thread| thread.involuntary_switches),
        }
    }

    /// Of one CPU during the watch; nothing where that took no time. The kernel's clock of CPU time and
    /// that of the watch differ by a little; a thread uses no more than one CPU.
    fn of_a_cpu(&self, record: &Trace) -> Option<f64> {
        let share = self.on_cpu as f64 / record.wall_ns as f64 * 100.0;
        (record.wall_ns > 0).then(|| share.min(self.threads as f64 * 100.0))
    }
}

fn cells(
    label: String,
    process: String,
    sum: &Sum,
    record: &Trace,
    decimals: usize,
    longest: String,
) -> Vec<String> {
    let ms = |ns: u128| fixed(ns as f64 / 1e6, decimals);
    let few = |n: u128| if n > 0 { thousands(n) } else { String::new() };
    vec![
        label,
        process,
        thousands(sum.calls),
        few(sum.errors),
        ms(sum.on_cpu),
        sum.of_a_cpu(record).map(|share| fixed(share, 1)).unwrap_or_default(),
        sum.blocked.map(ms).unwrap_or_default(),
        sum.runnable.map(ms).unwrap_or_default(),
        few(sum.voluntary),
        few(sum.involuntary),
        longest,
    ]
}

/// All threads as a table of a page.
pub(super) fn sheet(page: &Page<'_>, record: &Trace) -> Option<Sheet> {
    if record.threads.is_empty() {
        return None;
    }
    let names = Names::from_record(record);
    let total = Sum::new(&record.threads);
    let decimals = decimals_for(total.on_cpu as f64 / 1e6);
    let mut sheet = Sheet::new(
        "threads",
        "Threads",
        vec![
            Field::text("thread", "thread"),
            Field::text("process", "process"),
            Field::number("calls", "calls", ""),
            Field::number("errors", "errors", ""),
            Field::number("on_cpu_ns", "on-CPU", "ms"),
            Field::number("cpu_percent", "CPU", "%"),
            Field::number("blocked_ns", "blocked", "ms"),
            Field::number("runnable_ns", "runq", "ms"),
            Field::number("voluntary_switches", "voluntary switches", ""),
            Field::number("involuntary_switches", "involuntary switches", ""),
            Field::text("longest_call", "most time in"),
        ],
    );
    let row = |name: String, process: String, sum: &Sum, longest: String| {
        let ms = |ns: u128| Cell::whole(ns, fixed(ns as f64 / 1e6, decimals));
        let cpu = sum.of_a_cpu(record);
        vec![
            Cell::text(name),
            Cell::text(process),
            Cell::count(sum.calls),
            Cell::count(sum.errors).if_any(),
            ms(sum.on_cpu),
            Cell::from_option(cpu, |cpu| Cell::real(cpu, fixed(cpu, 1))),
            Cell::from_option(sum.blocked, ms),
            Cell::from_option(sum.runnable, ms),
            Cell::count(sum.voluntary),
            Cell::count(sum.involuntary),
            Cell::text(longest),
        ]
    };
    for thread in sorted(record) {
        let process = names.label(page, &thread.exec, thread.pid);
        sheet.push(row(label(page, thread), process, &Sum::new([thread]), longest(page, thread)));
    }
    if record.threads.len() > 1 {
        sheet.total = Some(row("all".into(), String::new(), &total, String::new()));
    }
    Some(sheet.without_empty_columns())
}
