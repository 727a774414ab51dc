//! The overhead that a trace states: the ranges there are, and whose calls are in them. None of this rests on speed.

use crate::support;

use iotomy_record::Trace;
use support::{bpf, each_observer, traced};

const READS: [&str; 6] =
    ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=3000", "status=none"];

fn counted(record: &Trace) -> u64 {
    record.calls.iter().map(|row| row.calls).sum()
}

#[test]
fn the_overhead_of_a_call_is_a_range_of_two_numbers() {
    each_observer(|observer| {
        let observer = traced(observer, &[], &READS).whole_record().observer;
        let [low, high] = observer.cost_range_ns();
        assert!(0.0 < low && low < high, "{observer:?}");
        assert!(low <= observer.cost_ns_per_call && observer.cost_ns_per_call <= high);
        assert_eq!(observer.calls_passed, 0);
        let of_left_out = (observer.cost_left_out_ns_low, observer.cost_left_out_ns_high);
        assert_eq!(of_left_out, (0.0, 0.0));
    });
}

#[test]
fn a_trace_by_bpf_states_what_unwatched_processes_pay() {
    let observer = "bpf";
    if !bpf() {
        return;
    }
    let traced = traced(observer, &[], &READS);
    let record = traced.whole_record();
    let [low, high] = record.observer.unwatched_range_ns().unwrap();
    assert!(0.0 <= low && low < high, "{:?}", record.observer);
    let screen = traced.stderr().to_string();
    assert!(screen.contains("to each call of every other process"), "{screen}");
}

#[test]
fn calls_that_are_let_pass_are_counted_exactly_and_have_an_overhead() {
    let observer = "bpf";
    if !bpf() {
        return;
    }
    let whole = traced(observer, &[], &READS).whole_record();
    for (options, passes) in [
        (&["--call", "read"][..], true),
        (&["--call", "mount"], true),
        (&["--where", "call == \"read\" && duration >= 1ns"], true),
        (&["--call", "read", "--where", "bytes == 1"], true),
        (&["--call", "read", "--threads"], true),
        (&["--call", "read", "--files"], true),
        (&["--call", "read", "--peers"], false),
        (&["--call", "read", "--paths"], false),
        (&["--call", "read", "--slowest", "3"], false),
        (&["--call", "read", "--until", "call == \"read\" && bytes > 1M"], false),
        (&["--where", "errno != 0"], false),
    ] {
        let traced = traced(observer, options, &READS);
        let record = traced.whole_record();
        let seen = &record.observer;
        let left_out = seen.calls_left_out.unwrap();
        assert_eq!(counted(&record) + left_out, counted(&whole), "{options:?}");
        assert_eq!(seen.calls_passed > 0, passes, "{options:?}: {seen:?}");
        assert!(seen.calls_passed <= left_out, "{options:?}: {seen:?}");
        if passes {
            assert!(seen.calls_passed >= 3000, "{options:?}: {seen:?}");
        }
        let (low, high) = (seen.cost_left_out_ns_low, seen.cost_left_out_ns_high);
        assert!(0.0 <= low && low < high, "{options:?}: {seen:?}");
        let screen = traced.stderr().to_string();
        let has_counted = record.calls.iter().any(|row| row.calls > 0);
        let words = if has_counted { "a call left out" } else { "calls left out" };
        assert!(screen.contains(words), "{options:?}: {screen}");
        for row in &record.ledger {
            let parts = row.user_ns + row.calls_on_cpu_ns + row.blocked_ns + row.runnable_ns;
            let sum = parts.cast_signed() + row.residual_ns;
            assert_eq!(sum, row.thread_ns.cast_signed(), "{options:?}: {row:?}");
        }
    }
}

#[test]
fn a_call_that_is_let_pass_belongs_to_no_image_but_its_own() {
    let observer = "bpf";
    if !bpf() {
        return;
    }
    // Threads, forks, execs and handlers of signals, all of whose calls but one kind are left out.
    let script = "trap : USR1; kill -USR1 $$; (true); cat /dev/null; exec sh -c 'echo | cat'";
    let command = ["sh", "-c", script];
    let images = |record: &Trace| {
        let mut names: Vec<_> = record.processes.iter().map(|one| one.exec.clone()).collect();
        names.sort();
        names
    };
    let calls = |record: &Trace, name: &str| {
        record.calls.iter().filter(|row| row.syscall == name).map(|row| row.calls).sum::<u64>()
    };
    let whole = traced(observer, &[], &command).whole_record();
    let some = traced(observer, &["--call", "execve"], &command).whole_record();
    assert_eq!(images(&some), images(&whole));
    assert_eq!(calls(&some, "execve"), calls(&whole, "execve"));
    assert_eq!(some.observer.incomplete_calls, 0, "{:?}", some.observer);
    assert_eq!(some.observer.lost_events, 0, "{:?}", some.observer);
}
