//! What holds for every record, whatever was run.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{Call, LedgerRow, Trace};

/// Fails where a record contradicts itself.
pub(crate) fn check(record: &Trace) {
    assert_eq!(record.schema, "iotomy.trace/1");
    assert!(record.observer.cost_ns_per_call.is_finite());
    assert!(record.observer.cost_ns_per_call >= 0.0);
    // What found no room in a table is missing from some sums and not from others.
    if record.observer.lost_events == 0 {
        record.calls.iter().for_each(call);
        calls_and_ledger_agree(record);
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
    record.ledger.iter().for_each(ledger);
    if record.observer.name == "bpf" {
        assert_eq!(record.ledger.len(), record.processes.len());
    } else {
        assert!(record.ledger.is_empty());
    }
}

fn call(call: &Call) {
    assert_eq!(call.wall_log2.total(), call.calls, "{call:?}");
    assert_eq!(call.return_log2.total() + call.errors, call.calls, "{call:?}");
    assert_eq!(call.error_kinds.values().sum::<u64>(), call.errors, "{call:?}");
    assert!(call.calls + call.in_flight > 0, "{call:?}");
    assert!(call.max_ns <= call.wall_ns, "{call:?}");
    let parts = [call.on_cpu_ns, call.blocked_ns, call.runnable_ns];
    if let [Some(on_cpu), Some(blocked), Some(runnable)] = parts {
        assert_eq!(on_cpu + blocked + runnable, call.wall_ns, "{call:?}");
        assert_eq!(call.on_cpu_log2.as_ref().unwrap().total(), call.calls, "{call:?}");
        assert!(call.blocked_log2.as_ref().unwrap().total() <= call.calls, "{call:?}");
    } else {
        assert_eq!(parts, [None; 3]);
        assert!(call.on_cpu_log2.is_none() && call.blocked_log2.is_none());
    }
}

fn ledger(row: &LedgerRow) {
    let booked = row.user_ns + row.calls_on_cpu_ns + row.blocked_ns + row.runnable_ns;
    assert_eq!(
        i128::from(row.thread_ns),
        i128::from(booked) + i128::from(row.residual_ns),
        "{row:?}"
    );
    assert!(row.residual_ns.unsigned_abs() <= row.thread_ns / 50, "{row:?}");
}

/// Time on a CPU in calls is kept twice, by call and by image. They agree by process: an execve is
/// the old image's call, and ends as time of the new one.
fn calls_and_ledger_agree(record: &Trace) {
    if !record.view.calls.is_empty() {
        return;
    }
    let mut by_process: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for row in &record.ledger {
        by_process.entry(row.pid).or_default().0 += row.calls_on_cpu_ns;
    }
    for call in &record.calls {
        let Some(on_cpu) = call.on_cpu_ns else { return };
        by_process.entry(call.pid).or_default().1 += on_cpu;
    }
    for (pid, (ledger, calls)) in by_process {
        // A call that was entered before the watch is in the ledger only. In a watch of the
        // machine it may be anybody's, and as long as it likes.
        let open = record.observer.incomplete_calls * 1_000_000;
        let begins: u64 = record
            .processes
            .iter()
            .filter(|process| process.pid == pid)
            .map(|process| u64::from(process.threads) * 500_000)
            .sum();
        let apart = ledger.abs_diff(calls);
        if record.view.machine && ledger > calls {
            continue;
        }
        assert!(apart <= ledger / 50 + begins + open, "{pid}: {ledger} and {calls}");
    }
}
