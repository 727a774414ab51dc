//! Watches in which nothing was seen say why.

use iotomy_record::{Call, Trace};

use super::{records, rendered};

/// A watch of one process whose thread is in a call from its beginning on.
fn idle() -> Trace {
    let mut record = records::attached();
    record.processes.truncate(1);
    record.processes[0].threads = 1;
    let Trace { ring_operations, files, paths, connections, threads, slowest, .. } = &mut record;
    ring_operations.clear();
    files.clear();
    paths.clear();
    connections.clear();
    threads.clear();
    slowest.clear();
    (record.ended_by, record.by) = (None, None);
    record.view.calls.clear();
    record.view.r#where.clear();
    record.observer.calls_left_out = None;
    (record.observer.lost_events, record.observer.lost_requests) = (0, 0);
    record.observer.incomplete_calls = 0;
    let (pid, exec) = (record.processes[0].pid, record.processes[0].exec.clone());
    record.calls = vec![Call {
        pid,
        exec,
        syscall: "epoll_wait".into(),
        in_flight: 1,
        wall_ns: record.wall_ns,
        blocked_ns: Some(record.wall_ns),
        open_ns: Some(record.wall_ns),
        ..Call::default()
    }];
    record.ledger.clear();
    record
}

#[track_caller]
fn says(record: &Trace, expected: &str) {
    let text = rendered(record).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("nothing seen: {expected}")), "{text}");
}

#[track_caller]
fn is_silent(record: &Trace) {
    let text = rendered(record);
    assert!(!text.contains("nothing seen"), "{text}");
}

#[test]
fn a_thread_that_is_blocked_is_told_with_its_call() {
    let mut record = idle();
    says(&record, "1 of 1 thread was blocked in epoll_wait all the time");
    record.processes[0].threads = 3;
    record.calls.push(Call { in_flight: 2, syscall: "futex".into(), ..record.calls[0].clone() });
    says(&record, "2 of 3 threads were blocked in futex when the watch ended");
    record.calls[1].wall_ns = 2 * record.wall_ns;
    record.calls[1].blocked_ns = Some(2 * record.wall_ns);
    says(&record, "2 of 3 threads were blocked in futex all the time");
    record.calls[1].blocked_ns = None;
    says(&record, "2 of 3 threads were in futex all the time");
}

#[test]
fn calls_that_a_filter_left_out_are_counted() {
    let mut record = idle();
    record.view.calls = vec!["read".into()];
    is_silent(&record);
    record.observer.calls_left_out = Some(1_234);
    says(&record, "the filter left out 1,234 calls");
    record.observer.calls_left_out = Some(1);
    says(&record, "the filter left out 1 call ");
    record.observer.calls_left_out = Some(0);
    record.calls.clear();
    says(&record, "no call returned");
}

#[test]
fn processes_that_made_no_call_and_those_that_are_not_there_are_told_apart() {
    let mut record = idle();
    record.calls.clear();
    says(&record, "the process made no calls");
    record.ledger = records::attached().ledger;
    record.ledger.truncate(1);
    record.ledger[0].user_ns = 2_000_000_000;
    says(&record, "the process made no calls, and ran for 2 s outside of them");
    record.processes.clear();
    record.ledger.clear();
    says(&record, "there was no process to watch");
}

#[test]
fn of_the_last_stretch_it_is_not_said_that_no_call_was_made() {
    let mut record = idle();
    record.calls.clear();
    record.ring = Some(iotomy_record::Ring::default());
    says(&record, "no call returned in the stretch");
    let text = rendered(&record);
    assert!(!text.contains("made no calls"), "{text}");
    record.ledger = records::attached().ledger;
    record.ledger.truncate(1);
    record.ledger[0].user_ns = 2_000_000_000;
    says(&record, "no call returned in the stretch, and the process ran for 2 s outside of calls");
}

#[test]
fn a_watch_that_has_seen_something_says_nothing() {
    let record = idle();
    for change in [
        (|record: &mut Trace| record.calls[0].calls = 1) as fn(&mut Trace),
        |record: &mut Trace| record.calls[0].entered_before = 1,
        |record: &mut Trace| record.calls[0].syscall = "exit_group".into(),
        |record: &mut Trace| record.observer.lost_events = 1,
        |record: &mut Trace| record.observer.incomplete_calls = 1,
        |record: &mut Trace| {
            record.ring_operations = records::rings().ring_operations;
            record.ring_operations[0].completed = 1;
        },
    ] {
        let mut changed = record.clone();
        change(&mut changed);
        is_silent(&changed);
    }
}

#[test]
fn a_call_of_a_process_that_has_ended_never_returned() {
    let mut record = idle();
    (record.calls[0].wall_ns, record.calls[0].blocked_ns) = (1, Some(1));
    record.still_running.clear();
    says(&record, "1 of 1 thread was blocked in epoll_wait and never returned");
}

#[test]
fn rows_of_any_numbers_are_told() {
    let mut record = idle();
    record.calls[0].in_flight = u64::MAX;
    record.calls.push(record.calls[0].clone());
    assert!(rendered(&record).contains("nothing seen"));
}
