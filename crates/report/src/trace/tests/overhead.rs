//! The overhead of watching, in numbers that can be added up by hand.

use iotomy_record::Trace;

use super::{records, rendered};

/// 850 calls at 1 … 2 µs, 12,345 left out at 100 … 400 ns, in 100 ms of CPU time.
fn filtered() -> Trace {
    let mut record = records::attached();
    (record.processes[0].user_ns, record.processes[0].system_ns) = (40_000_000, 60_000_000);
    let observer = &mut record.observer;
    (observer.cost_ns_low, observer.cost_ns_high) = (1_000.0, 2_000.0);
    (observer.cost_left_out_ns_low, observer.cost_left_out_ns_high) = (100.0, 400.0);
    record
}

fn first_lines(record: &Trace) -> String {
    let text = rendered(record);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn calls_left_out_are_part_of_the_overhead_with_a_figure_of_their_own() {
    let text = first_lines(&filtered());
    let expected =
        "overhead 1 … 2 µs a call, 100 … 400 ns a call left out (2.1 … 6.6 % of its CPU)";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_watch_without_a_counted_call_has_the_overhead_of_those_left_out() {
    let mut record = filtered();
    record.calls.clear();
    let text = first_lines(&record);
    let expected = "overhead 100 … 400 ns each of 12,345 calls left out (1.2 … 4.9 % of its CPU)";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_record_without_a_figure_for_calls_left_out_has_that_of_the_others_for_them() {
    let mut record = filtered();
    let observer = &mut record.observer;
    (observer.cost_left_out_ns_low, observer.cost_left_out_ns_high) = (0.0, 0.0);
    let text = first_lines(&record);
    assert!(text.contains("overhead 1 … 2 µs a call (13.2 … 26.4 % of its CPU)"), "{text}");
}

#[test]
fn the_overhead_of_unwatched_processes_has_a_line_where_there_are_such() {
    let mut record = filtered();
    assert!(!first_lines(&record).contains("every other process"));
    (record.observer.unwatched_ns_low, record.observer.unwatched_ns_high) = (90.0, 350.0);
    let text = first_lines(&record);
    assert!(text.contains("it added 90 … 350 ns to each call of every other process"), "{text}");
    record.view.machine = true;
    assert!(!first_lines(&record).contains("every other process"));
}

#[test]
fn the_ledger_names_the_calls_whose_time_is_the_users() {
    let mut record = filtered();
    assert!(!rendered(&record).contains("calls left out"), "{}", rendered(&record));
    record.observer.calls_passed = 12_000;
    let text = first_lines(&record);
    assert!(text.contains("user, and calls left out"), "{text}");
    assert!(text.contains("the on-CPU time of 12,000 calls left out is part of user"), "{text}");
}
