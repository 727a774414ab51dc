//! Why a watch saw nothing: no call of those that it was to count returned, and no ring operation ended.
//!
//! Only what the record tells is said. Where other calls were left out, and their number is not known, that is nothing.

use iotomy_record::{Call, Trace};

use crate::numbers::{counted, duration};
use crate::page::Page;

/// The reason in a line; none where something was seen, or may have been.
pub(super) fn reason(page: &Page<'_>, record: &Trace) -> Option<String> {
    // Where a part of the time was counted, nothing is known of the rest.
    if is_something(record) || record.sample.is_some() {
        return None;
    }
    let is_filtered = !record.view.calls.is_empty() || !record.view.r#where.is_empty();
    let left_out = record.observer.calls_left_out;
    Some(match left_out.filter(|_| is_filtered) {
        None if is_filtered => return None,
        _ if record.processes.is_empty() => "there was no process to watch".to_owned(),
        Some(1..) => {
            let calls = counted(left_out.unwrap_or(0).into(), "call", "calls");
            format!("the filter left out {calls}")
        }
        _ => match (longest(record), is_filtered) {
            (Some(call), _) => inside(page, record, call),
            (None, true) => {
                "no call returned, of those that the filter leaves out neither".to_owned()
            }
            (None, false) => no_calls(record),
        },
    })
}

/// Whether something was seen, or lost.
fn is_something(record: &Trace) -> bool {
    let ended = |call: &Call| {
        // These end with their thread.
        let has_exited = call.syscall.starts_with("exit") && call.in_flight > 0;
        call.calls > 0 || call.entered_before > 0 || has_exited
    };
    let observer = &record.observer;
    let is_lost = [observer.lost_events, observer.lost_requests, observer.incomplete_calls];
    let is_lost = is_lost.iter().any(|count| *count > 0);
    let rings = &record.ring_operations;
    record.calls.iter().any(ended) || rings.iter().any(|one| one.completed > 0) || is_lost
}

/// The call that most threads are in.
fn longest(record: &Trace) -> Option<&Call> {
    let open = record.calls.iter().filter(|call| call.in_flight > 0);
    // Of equals the first.
    open.rev().max_by_key(|call| threads_in(record, &call.syscall))
}

/// How many threads are in a call of this name.
fn threads_in(record: &Trace, name: &str) -> u64 {
    let of_name = record.calls.iter().filter(|call| call.syscall == name);
    of_name.map(|call| call.in_flight).fold(0, u64::saturating_add)
}

fn inside(page: &Page<'_>, record: &Trace, call: &Call) -> String {
    let inside = threads_in(record, &call.syscall);
    let threads = record.thread_count().max(inside);
    let of_name = || record.calls.iter().filter(|one| one.syscall == call.syscall);
    let sum = |of: fn(&Call) -> u64| of_name().map(of).fold(0, u64::saturating_add);
    let (wall_ns, blocked_ns) = (sum(|one| one.wall_ns), sum(|one| one.blocked_ns.unwrap_or(0)));
    let blocked = if is_most(blocked_ns, wall_ns) { "blocked in" } else { "in" };
    let times = u64::try_from(u128::from(record.wall_ns) * u128::from(inside)).unwrap_or(u64::MAX);
    let goes_on = record.still_running.iter().any(|one| one.pid == call.pid);
    let how_long = match is_most(wall_ns, times) {
        true => "all the time",
        false if goes_on => "when the watch ended",
        false => "and never returned",
    };
    let was = if inside == 1 { "was" } else { "were" };
    let of = counted(threads.into(), "thread", "threads");
    format!("{inside} of {of} {was} {blocked} {} {how_long}", page.name(&call.syscall, 40))
}

/// Whether a time is another one but for a tenth.
fn is_most(part: u64, whole: u64) -> bool {
    u128::from(part) * 10 >= u128::from(whole) * 9
}

fn no_calls(record: &Trace) -> String {
    let on_cpu: u64 = record.ledger.iter().map(|row| row.user_ns).fold(0, u64::saturating_add);
    let who = match record.process_count() {
        1 => "the process".to_owned(),
        n => format!("the {}", counted(n.into(), "process", "processes")),
    };
    let ran = duration(on_cpu as f64);
    // The last stretch of a watch lacks the calls that are still under way.
    match (record.ring.is_some(), on_cpu) {
        (true, 0) => "no call returned in the stretch".to_owned(),
        (true, _) => {
            format!("no call returned in the stretch, and {who} ran for {ran} outside of calls")
        }
        (false, 0) => format!("{who} made no calls"),
        (false, _) => format!("{who} made no calls, and ran for {ran} outside of them"),
    }
}
