//! What holds for every record, whatever was run.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{Call, Exchange, LedgerRow, RingOperation, Times, Trace};
use iotomy_sys::syscalls;

/// Fails where a record contradicts itself.
pub(crate) fn check(record: &Trace) {
    assert_eq!(record.schema, "iotomy.trace/1");
    assert!(record.observer.cost_ns_per_call.is_finite());
    assert!(record.observer.cost_ns_per_call >= 0.0);
    // What found no room in a table is missing from some sums and not from others.
    if record.observer.lost_events == 0 {
        record.calls.iter().for_each(call);
    }
    let images: BTreeSet<(u32, &str)> =
        record.processes.iter().map(|process| (process.pid, process.exec.as_str())).collect();
    for call in &record.calls {
        assert!(images.contains(&(call.pid, &call.exec)), "calls of nobody: {call:?}");
    }
    for file in &record.files {
        assert!(images.contains(&(file.pid, &file.exec)), "files of nobody: {file:?}");
        assert!(file.read_calls + file.write_calls + file.map_calls > 0, "{file:?}");
    }
    for row in &record.ring_operations {
        assert!(images.contains(&(row.pid, &row.exec)), "requests of nobody: {row:?}");
        ring_operation(row);
    }
    for row in &record.requests {
        assert!(images.contains(&(row.pid, &row.exec)), "requests of nobody: {row:?}");
        exchange(row);
    }
    slowest(record);
    if record.view.paths && record.observer.lost_events + record.observer.lost_paths == 0 {
        calls_and_paths_agree(record);
    }
    record.ledger.iter().for_each(adds_up);
    if record.observer.name == "bpf" {
        assert_eq!(record.ledger.len(), record.processes.len());
    } else {
        assert!(record.ledger.is_empty());
    }
}

fn ring_operation(row: &RingOperation) {
    assert_eq!(row.submitted, row.completed + row.in_flight, "{row:?}");
    assert_eq!(row.completed, row.inline + row.polled + row.worker + row.sqpoll, "{row:?}");
    assert_eq!(row.errors, row.error_kinds.values().sum::<u64>(), "{row:?}");
    assert_eq!(row.wall_times.log2(), row.wall_log2, "{row:?}");
    let results = row.completed + row.multishot_completions;
    assert!(row.result_log2.total() + row.errors <= results, "{row:?}");
    assert_eq!(row.bytes > 0, row.result_log2.total() > row.result_log2.zero, "{row:?}");
    assert!(row.wall_times.total() <= row.completed && row.max_ns <= row.wall_ns, "{row:?}");
}

fn exchange(row: &Exchange) {
    assert_eq!(row.wall_times.total(), row.requests, "{row:?}");
    assert!(row.requests + row.unanswered + row.in_flight > 0, "{row:?}");
    assert!(row.pipelined.max(row.moved).max(row.unseen_arrivals) <= row.requests, "{row:?}");
    let on_way = [row.unread_ns, row.on_cpu_ns, row.runnable_ns, row.elsewhere_ns];
    let blocked = [row.disk_ns, row.peer_ns, row.lock_ns, row.other_ns];
    assert_eq!(on_way.iter().chain(&blocked).sum::<u64>(), row.wall_ns, "{row:?}");
    let (least, most) = row.wall_times.sum_bounds();
    assert!(least <= row.wall_ns.into() && most >= row.wall_ns.into(), "{row:?}");
}

fn call(call: &Call) {
    assert_eq!(call.wall_log2.total(), call.calls, "{call:?}");
    assert_eq!(call.wall_times.log2(), call.wall_log2, "{call:?}");
    assert!(call.wall_times.max_ns <= call.max_ns, "{call:?}");
    sums_agree(call, &call.wall_times, call.wall_ns);
    assert_eq!(call.return_log2.total() + call.errors, call.calls, "{call:?}");
    assert_eq!(call.error_kinds.values().sum::<u64>(), call.errors, "{call:?}");
    assert!(call.calls + call.in_flight > 0, "{call:?}");
    assert!(call.max_ns <= call.wall_ns, "{call:?}");
    let parts = [call.on_cpu_ns, call.blocked_ns, call.runnable_ns];
    if let [Some(on_cpu), Some(blocked), Some(runnable)] = parts {
        assert_eq!(on_cpu + blocked + runnable, call.wall_ns, "{call:?}");
        assert_eq!(call.on_cpu_log2.as_ref().unwrap().total(), call.calls, "{call:?}");
        assert_eq!(call.on_cpu_times().unwrap().total(), call.calls, "{call:?}");
        assert_eq!(&call.blocked_times.log2(), call.blocked_log2.as_ref().unwrap(), "{call:?}");
        sums_agree(call, call.on_cpu_times().unwrap(), on_cpu);
        sums_agree(call, &call.blocked_times, blocked);
        assert!(call.blocked_log2.as_ref().unwrap().total() <= call.calls, "{call:?}");
    } else {
        assert_eq!(parts, [None; 3]);
        assert!(call.on_cpu_log2.is_none() && call.blocked_log2.is_none());
    }
}

/// The buckets of times hold the sum that is kept apart, where all calls returned.
fn sums_agree(call: &Call, times: &Times, sum: u64) {
    let (least, most) = times.sum_bounds();
    assert!(least <= sum.into(), "{least} {sum}: {call:?}");
    assert!(call.in_flight > 0 || most >= sum.into(), "{most} {sum}: {call:?}");
}

/// As many as there was room for, the longest first, and none longer than its call's longest.
fn slowest(record: &Trace) {
    let calls: u64 = record.calls.iter().map(|call| call.calls).sum();
    if record.observer.lost_events == 0 {
        assert_eq!(record.slowest.len() as u64, calls.min(record.view.slowest.into()));
    }
    assert!(record.slowest.is_sorted_by_key(|call| std::cmp::Reverse(call.wall_ns)));
    for slow in &record.slowest {
        let of = |call: &&Call| (&call.exec, &call.syscall) == (&slow.exec, &slow.syscall);
        let longest = record.calls.iter().filter(of).map(|call| call.max_ns).max();
        assert!(longest >= Some(slow.wall_ns), "{slow:?}");
        if let [Some(on_cpu), Some(blocked), Some(runnable)] =
            [slow.on_cpu_ns, slow.blocked_ns, slow.runnable_ns]
        {
            assert_eq!(on_cpu + blocked + runnable, slow.wall_ns, "{slow:?}");
        }
    }
}

/// Every call that takes a path has its paths, by outcome.
fn calls_and_paths_agree(record: &Trace) {
    for call in &record.calls {
        let name = call.syscall.trim_end_matches("(i386)");
        let taken = syscalls::paths(name);
        for second in (0..taken.len()).map(|at| at > 0) {
            let rows = record.paths.iter().filter(|row| {
                (row.pid, &row.exec, row.image) == (call.pid, &call.exec, call.image)
                    && (&row.syscall, row.second) == (&call.syscall, second)
            });
            let mut counts: BTreeMap<Option<&str>, u64> = BTreeMap::new();
            for row in rows {
                *counts.entry(row.error.as_deref()).or_default() += row.calls;
            }
            for (error, count) in &call.error_kinds {
                assert_eq!(counts.remove(&Some(error)), Some(*count), "{error}: {call:?}");
            }
            assert_eq!(counts.remove(&None).unwrap_or(0), call.calls - call.errors, "{call:?}");
            assert!(counts.is_empty(), "{counts:?}: {call:?}");
        }
    }
}

/// How far the residual and the two counts of one time are from zero is a matter of the machine: [`closes`] tells.
fn adds_up(row: &LedgerRow) {
    let booked = row.user_ns + row.calls_on_cpu_ns + row.blocked_ns + row.runnable_ns;
    assert_eq!(
        i128::from(row.thread_ns),
        i128::from(booked) + i128::from(row.residual_ns),
        "{row:?}"
    );
}

/// Whether no more than a fiftieth of any image's time has no place in its ledger, and of its time in calls in one of
/// its two counts.
pub(crate) fn closes(record: &Trace) -> bool {
    let is_closed = |row: &LedgerRow| row.residual_ns.unsigned_abs() <= row.thread_ns / 50;
    record.ledger.iter().all(is_closed) && calls_and_ledger_agree(record)
}

/// Time on a CPU in calls is kept twice, by call and by image. They agree by process: an execve is
/// the old image's call, and ends as time of the new one. Where images of several processes are summed
/// up, under the id of one, an execve's ends may be in rows of two: then the whole agrees.
fn calls_and_ledger_agree(record: &Trace) -> bool {
    let is_summed = record.processes.iter().any(|process| process.instances > 0);
    let group = |pid: u32| if is_summed { 0 } else { pid };
    let mut by_process: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for row in &record.ledger {
        by_process.entry(group(row.pid)).or_default().0 += row.calls_on_cpu_ns;
    }
    for call in &record.calls {
        let Some(on_cpu) = call.on_cpu_ns else { return true };
        by_process.entry(group(call.pid)).or_default().1 += on_cpu;
    }
    by_process.values().all(|(ledger, calls)| ledger.abs_diff(*calls) <= ledger / 50)
}
