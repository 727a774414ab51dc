//! Findings about what threads wait for, each with the nearest run that must not have it.

use super::*;

/// A run of one thread of 100 ms for each of these: on a CPU, in a run queue, blocked in a call, in
/// ms.
fn spent(threads: &[(u64, u64, &str, u64)]) -> Trace {
    let mut run = trace();
    run.ledger.clear();
    for (at, (on_cpu, runnable, name, asleep)) in threads.iter().enumerate() {
        run.ledger.push(LedgerRow {
            pid: 1 + at as u32,
            exec: "prog".into(),
            thread_ns: (on_cpu + runnable + asleep) * MS,
            user_ns: on_cpu * MS,
            runnable_ns: runnable * MS,
            blocked_ns: asleep * MS,
            ..LedgerRow::default()
        });
        run.calls.push(Call { blocked_ns: Some(asleep * MS), ..call(name, 1) });
    }
    run
}

#[test]
fn a_run_all_of_whose_threads_slept_waited_for_something_outside_it() {
    let found_ = judged(spent(&[(10, 0, "clock_nanosleep", 90), (0, 0, "wait4", 100)]));
    assert_eq!(ids(&found_), ["blocked-on"]);
    let text = &found_[0].1;
    assert!(text.contains("at least 90 ms of 100 ms (90.0 %)"), "{text}");
    assert!(text.contains("clock_nanosleep 90 ms") && !text.contains("wait4"), "{text}");
    // A thread without another call to sleep in is identified by this one.
    assert!(judged(spent(&[(10, 0, "futex", 90)]))[0].1.contains("futex 90 ms"));
}

#[test]
fn sleeping_while_another_watched_thread_works_is_no_wait_for_the_outside() {
    // gzip | cat: one of the two works, the other waits in a pipe for it; or for a CPU, as it does.
    let piped = [(60, 0, "write", 40), (40, 0, "read", 60), (0, 0, "wait4", 100)];
    assert_eq!(judged(spent(&piped)), []);
    let queued = [(40, 5, "write", 55), (20, 5, "read", 75)];
    assert_eq!(judged(spent(&queued)), []);
    assert_eq!(judged(spent(&[(60, 0, "clock_nanosleep", 40)])), []);
    // Unknown and lost calls may have been work.
    let mut unknown = spent(&[(10, 0, "read", 40)]);
    unknown.ledger[0].residual_ns = 50 * MS as i64;
    assert_eq!(judged(unknown), []);
    let mut lost = spent(&[(10, 0, "read", 90)]);
    lost.observer.lost_events = 1;
    assert_eq!(judged(lost), []);
}

#[test]
fn threads_that_wait_in_run_queues_are_told_how_many_cpus_they_used() {
    let found_ = judged(spent(&[(90, 110, "read", 0), (100, 90, "read", 0)]));
    assert_eq!(ids(&found_), ["cpu-saturation"]);
    assert!(found_[0].1.contains("without a CPU for 200 ms"), "{found_:?}");
    assert!(found_[0].1.contains("used 1.90 of 2 CPUs"), "{found_:?}");
    assert_eq!(judged(spent(&[(90, 20, "read", 0)])), []);
    assert_eq!(judged(spent(&[(1, 9, "read", 0), (80, 0, "read", 0)])), []);
}
