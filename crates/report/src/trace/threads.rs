//! One row a thread, when threads were requested.
//!
//! Computed by `settle_thread_row` in `crates/observe/src/bpf/books.bpf.h` and
//! `crates/observe/src/threads.rs`.

use iotomy_record::{SortKey, Thread, Trace, statistic};

use super::extent;
use super::images::{Image, Names, label as label_one, times};
use crate::columns::{self, Columns, Extent};
use crate::numbers::{decimals_for, fixed, share};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet};

pub(super) fn print(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    if !record.view.threads {
        return;
    }
    page.blank();
    if record.threads.is_empty() {
        page.line(&[(Ink::Dim, "  no thread was watched")]);
        return;
    }
    sheet(page, record, images, extent(record, NAME)).print(page, "");
}

/// Columns of a name.
const NAME: usize = 24;

pub(super) fn sheet(
    page: &Page<'_>,
    record: &Trace,
    images: &[Image<'_>],
    extent: Extent,
) -> Sheet {
    let names = Names::from_record(record);
    let mut total: Thread = statistic::total(&record.threads);
    let counts = record.threads.iter().map(Thread::count);
    total.instances = counts.fold(0, u32::saturating_add);
    // What is not known of each has no sum.
    let is_known =
        |of: fn(&Thread) -> Option<u64>| record.threads.iter().all(|one| of(one).is_some());
    total.thread_ns = total.thread_ns.filter(|_| is_known(|one| one.thread_ns));
    total.user_ns = total.user_ns.filter(|_| is_known(|one| one.user_ns));
    total.blocked_ns = total.blocked_ns.filter(|_| is_known(|one| one.blocked_ns));
    total.runnable_ns = total.runnable_ns.filter(|_| is_known(|one| one.runnable_ns));
    // The first thread has the name of its process, unless it chose another.
    let process = |thread: &&Thread| {
        let process = names.label(page, &thread.exec, thread.pid);
        let is_new = images.len() > 1 && process != label(page, thread);
        if is_new || extent.is_page() { process } else { String::new() }
    };
    let cpu = |thread: &&Thread| {
        Cell::from_option(of_a_cpu(thread, record), |share| Cell::real(share, fixed(share, 1)))
    };
    // Names of threads differ at their ends, and their ids stand behind these.
    let name = Field::text("thread", "thread").worth(9);
    Columns::new()
        .text(name.on_terminal(|column| column.no_less_than(NAME)), |thread: &&Thread| {
            label(page, thread)
        })
        .text(Field::text("process", "process").worth(4), process)
        .declared(decimals_for(total.on_cpu_ns as f64 / 1e6), |thread: &&Thread| Some(*thread))
        .behind("on_cpu_ns", Field::number("cpu_percent", "CPU", "%").worth(8), cpu)
        .text(Field::text("longest_call", "most time in").worth(7), |thread| longest(page, thread))
        .sheet("threads", "Threads", &sorted(record), Some(&&total), extent)
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
    threads.sort_by_key(|thread| (thread.pid, thread.tid));
    match record.view.sort {
        SortKey::NAME => threads.sort_by_key(|thread| (&thread.name, thread.tid)),
        key => columns::sort(&mut threads, key, |thread| *thread, |thread| thread.on_cpu_ns),
    }
    threads
}

/// Of one CPU during the watch; nothing where that took no time. The kernel's clock of CPU time and
/// that of the watch differ by a little; a thread uses no more than one CPU.
fn of_a_cpu(thread: &Thread, record: &Trace) -> Option<f64> {
    let share = thread.on_cpu_ns as f64 / record.wall_ns as f64 * 100.0;
    (record.wall_ns > 0).then(|| share.min(f64::from(thread.count()) * 100.0))
}
