//! The operations of io_uring that a waiter declares are those that `iotomy trace` sees it submit, and as often:
//! of exactly 23 of each thing that it does.

use crate::support;

use std::collections::BTreeMap;
use std::path::PathBuf;

use iotomy_record::{RingOperation, Trace};
use iotomy_waiters::{Call, Probe, RING, WAITERS, WaiterDeclaration};
use support::{Need, bpf, skip, traced};

/// How often everything is done, and on how many descriptors.
const TIMES: u64 = 23;

/// What of them is ready when a wait begins.
const EVENTS: u64 = 3;

/// The example of the waiters that does it.
fn watch() -> Option<PathBuf> {
    let tests = std::env::current_exe().unwrap();
    let example = tests.ancestors().nth(2).unwrap().join("examples/watch");
    if !example.exists() {
        skip(Need::Programs, "no example of the waiters: cargo build -p iotomy-waiters --examples");
        return None;
    }
    Some(example)
}

fn run(waiter: &WaiterDeclaration, operation: &str) -> Option<Trace> {
    let numbers = [TIMES, TIMES, EVENTS].map(|number| number.to_string());
    let [times, descriptors, events] = numbers.each_ref();
    let example = watch()?;
    let words = [example.to_str().unwrap(), waiter.name, operation, times, descriptors, events];
    let traced = traced("bpf", &["-q"], &words);
    assert_eq!(traced.code(), 0, "{}", traced.stderr());
    Some(traced.whole_record())
}

/// How many requests of each operation these make, done so often.
fn declared<'w>(all: &[(&'w [Call], u64)]) -> BTreeMap<&'w str, u64> {
    let mut declared = BTreeMap::new();
    for (calls, times) in all {
        for call in *calls {
            if let Some(operation) = call.name.strip_prefix(RING) {
                *declared.entry(operation).or_default() += call.times.expected(*times, TIMES, 0);
            }
        }
    }
    declared.retain(|_, requests| *requests > 0);
    declared
}

fn compare(waiter: &WaiterDeclaration, operation: &str, of_it: &[Call]) -> Option<Trace> {
    let record = run(waiter, operation)?;
    let seen: BTreeMap<&str, u64> =
        record.ring_operations.iter().map(|row| (&*row.op, row.submitted)).collect();
    let mut all = vec![(of_it, TIMES)];
    if operation != "add" {
        all.push((waiter.calls.add, TIMES));
    }
    assert_eq!(seen, declared(&all), "{}: {TIMES} times {operation}", waiter.name);
    Some(record)
}

#[test]
fn waiters_submit_the_operations_they_declare_as_often_as_they_declare() {
    if !bpf() {
        return;
    }
    let mut rings = 0;
    for waiter in WAITERS.iter().filter(|waiter| !waiter.calls.wait.is_empty()) {
        if let Probe::Unsupported(reason) = (waiter.probe)() {
            skip(Need::IoUring, &format!("{}: {reason}", waiter.name));
            continue;
        }
        let calls = waiter.calls;
        let Some(waits) = compare(waiter, "wait", calls.wait) else { return };
        let names = |operation: &str| calls.add.iter().any(|call| call.name == operation);
        let row = waits.ring_operations.iter().find(|row| names(&format!("{RING}{}", row.op)));
        let Some(row) = row else { continue };
        rings += 1;
        // Each request has as many results as there are events of its descriptor.
        let results = |row: &RingOperation| (row.multishot_completions, row.errors - row.cancelled);
        assert_eq!(results(row), (EVENTS * TIMES, 0), "{}: {row:?}", waiter.name);
        compare(waiter, "add", calls.add);
        compare(waiter, "modify", calls.modify);
        let Some(removes) = compare(waiter, "remove", calls.remove) else { return };
        for row in &removes.ring_operations {
            let cancelled = if row.op == "async_cancel" { 0 } else { TIMES };
            let ends = (row.completed, row.errors, row.cancelled);
            assert_eq!(ends, (TIMES, cancelled, cancelled), "{}: {row:?}", waiter.name);
        }
    }
    if rings == 0 {
        skip(Need::IoUring, "no waiter submits requests here");
    }
}
