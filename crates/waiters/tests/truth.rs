//! The calls a waiter declares are the calls it makes, and as often: watched from outside, with
//! exactly 23 of each operation, and compared with a run that does none of them.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use iotomy_waiters::{Call, Probe, RING, Times, Trigger, WaiterDeclaration};

use support::{missing, waiters};

/// How often everything is done.
const TIMES: u64 = 23;

/// What is watched; no fewer, so that each run has as many.
const DESCRIPTORS: u64 = TIMES;

/// What of it is ready.
const EVENTS: u64 = 3;

/// Calls of the allocator, of the first hash map of a thread, and for a thread's id, which it asks for once.
const RUNTIME: [&str; 7] = ["brk", "mmap", "munmap", "mremap", "madvise", "getrandom", "gettid"];

type Counts = BTreeMap<String, u64>;

/// The example that does it.
fn watch() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.ancestors().nth(2).unwrap().join("examples/watch")
}

/// The calls of one run, by name.
fn calls(waiter: &WaiterDeclaration, operation: &str, times: u64, log: &Path) -> Counts {
    let output = Command::new("strace")
        .args(["-f", "-qq", "-e", "signal=none", "-o"])
        .arg(log)
        .arg(watch())
        .args([waiter.name, operation])
        .args([times, DESCRIPTORS, EVENTS].map(|number| number.to_string()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("done"), "{} {operation} {times}: {stderr}", waiter.name);
    let mut counts = Counts::new();
    for line in std::fs::read_to_string(log).unwrap().lines() {
        let Some((_, call)) = line.split_once(' ') else { continue };
        let Some((call, _)) = call.trim_start().split_once('(') else { continue };
        if call.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            *counts.entry(call.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// What must be seen more often in a run that does the operation so many times than in one that does
/// none: what is declared, and what the example itself does with events.
fn expected(waiter: &WaiterDeclaration, operation: &str, times: u64, declared: &[Call]) -> Counts {
    let mut expected = Counts::new();
    let mut add = |name: &str, count| *expected.entry(name.to_owned()).or_default() += count;
    let events = if operation == "wait" { EVENTS * times } else { 0 };
    // Those of rings are no calls: the suite of the command counts them.
    for call in declared.iter().filter(|call| !call.name.starts_with(RING)) {
        add(call.name, call.times.expected(times, DESCRIPTORS, events));
    }
    add("write", events);
    if !waiter.capabilities.receives {
        add("read", events);
    }
    if waiter.capabilities.trigger == Trigger::OneShot {
        for call in waiter.calls.modify {
            add(call.name, call.times.expected(events, DESCRIPTORS, 0));
        }
    }
    expected
}

/// Compares what a waiter declares of an operation with what it does.
fn compare(waiter: &WaiterDeclaration, operation: &str, declared: &[Call], log: &Path) {
    // A thread can have one of some of them.
    let times = if operation == "open" { 1 } else { TIMES };
    let none = calls(waiter, operation, 0, log);
    let some = calls(waiter, operation, times, log);
    let expected = expected(waiter, operation, times, declared);
    for name in some.keys().chain(expected.keys()) {
        let count = |counts: &Counts| counts.get(name).copied().unwrap_or(0);
        let more = count(&some).saturating_sub(count(&none));
        if !RUNTIME.contains(&name.as_str()) {
            let wanted = count(&expected);
            assert_eq!(more, wanted, "{}: {times} times {operation}: {name}", waiter.name);
        }
    }
}

#[test]
fn waiters_make_the_calls_they_declare_as_often_as_they_declare() {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        return iotomy_test_requirements::skip(
            iotomy_test_requirements::Need::Programs,
            "no strace",
        );
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let log = folder.join(format!("waiters-truth-{}", std::process::id()));
    for waiter in iotomy_waiters::WAITERS {
        if let Probe::Unsupported(reason) = (waiter.probe)() {
            missing(waiter.name, &reason);
            continue;
        }
        compare(waiter, "open", waiter.calls.open, &log);
        compare(waiter, "add", waiter.calls.add, &log);
        compare(waiter, "modify", waiter.calls.modify, &log);
        compare(waiter, "remove", waiter.calls.remove, &log);
        if !waiter.calls.wait.is_empty() {
            compare(waiter, "wait", waiter.calls.wait, &log);
        }
        println!("{}: as declared", waiter.name);
    }
    let _ = std::fs::remove_file(log);
}

#[test]
fn every_waiter_is_declared_whole_and_once() {
    let mut names = BTreeSet::new();
    for waiter in iotomy_waiters::WAITERS {
        assert!(names.insert(waiter.name), "{} stands twice", waiter.name);
        assert!(std::ptr::eq(iotomy_waiters::waiter(waiter.name).unwrap(), *waiter));
        assert!(waiter.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
        assert!(waiter.summary.len() <= 80 && !waiter.summary.ends_with('.'), "{}", waiter.summary);
        assert!(waiter.description.ends_with('.') && waiter.description.len() > 60);
        let calls = waiter.calls;
        let all = [calls.open, calls.add, calls.modify, calls.remove, calls.wait].concat();
        for Call { name, .. } in all.iter().filter(|call| !call.name.starts_with(RING)) {
            let number = iotomy_sys::syscalls::number(iotomy_sys::syscalls::Abi::X86_64, name);
            assert!(number.is_some(), "{}: no call {name}", waiter.name);
        }
        assert_eq!(all.is_empty(), waiter.man.is_empty(), "{}", waiter.name);
        let page = |page: &&str| page.ends_with(')') && page.contains('(');
        assert!(waiter.man.iter().all(page), "{}", waiter.name);
        assert!(!waiter.capabilities.serves.is_empty());
        assert!(calls.wait.iter().all(|call| call.times != Times::Exactly(0)));
        // What is sent again by another thread is nobody's to receive.
        assert!(!(waiter.capabilities.shared && waiter.capabilities.receives));
    }
    assert!(iotomy_waiters::waiter("no-such-waiter").is_none());
}

#[test]
fn a_full_queue_of_signals_loses_nothing_and_is_counted() {
    let all = waiters();
    // Where it does not work, that has been said.
    let Some(waiter) = all.iter().find(|waiter| waiter.name == "sigio") else { return };
    let output = Command::new(watch()).args([waiter.name, "overflow", "0", "40"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    let counted = stderr.lines().find_map(|line| line.strip_prefix("overflows ")).unwrap();
    let (overflows, sweeps) = counted.split_once(" sweeps ").unwrap();
    let (overflows, sweeps): (u64, u64) = (overflows.parse().unwrap(), sweeps.parse().unwrap());
    assert!(overflows >= 1 && sweeps == overflows, "{stderr}");
}
