//! Findings about what threads wait for, each with the nearest run that must not have it.

use iotomy_record::{CpuCapacity, Throttled};

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
fn an_idle_server_is_told_only_what_it_waits_for_beside_requests() {
    let serving = |name: &str| {
        let mut run = spent(&[(10, 0, name, 90)]);
        run.calls.push(call("accept4", 10));
        judged(run)
    };
    assert_eq!(serving("epoll_wait"), []);
    assert_eq!(serving("clock_nanosleep"), []);
    let found = serving("fdatasync");
    assert_eq!(ids(&found), ["blocked-on"]);
    assert!(found[0].1.contains("fdatasync 90 ms"), "{found:?}");
    // So with every process that ran before.
    let mut attached = spent(&[(10, 0, "read", 90)]);
    assert_eq!(ids(&judged(attached.clone())), ["blocked-on"]);
    attached.command.clear();
    assert_eq!(judged(attached), []);
}

#[test]
fn stopped_threads_wait_for_no_device() {
    let stopped = |ms| {
        let mut run = spent(&[(0, 0, "read", 100)]);
        run.command.clear();
        (run.calls[0].calls, run.calls[0].in_flight) = (0, 1);
        run.ledger[0].stopped_ns = ms * MS;
        run
    };
    let findings = crate::trace(&stopped(50), None).findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].text.contains("had stopped threads for 50 ms"), "{findings:?}");
    assert_eq!(findings[0].advice.as_deref(), Some("kill -CONT 1"));
    assert_eq!(judged(stopped(49)), []);
}

#[test]
fn a_quota_is_told_with_the_periods_in_which_it_was_used_up() {
    let mut run = spent(&[(40, 160, "read", 0)]);
    let text = |run: &Trace| judged(run.clone()).remove(0).1;
    run.cpu_capacity =
        Some(CpuCapacity { cpus: 0.5, affinity: 2, quota: Some(0.5), throttled: None });
    assert!(
        text(&run).ends_with(
            "used 0.40 of the 0.50 that the CPU quota of their control group allows (2 CPUs)"
        ),
        "{}",
        text(&run)
    );
    let throttled = Throttled { periods: 40, throttled: 30, ns: 1_500 * MS };
    run.cpu_capacity =
        run.cpu_capacity.map(|one| CpuCapacity { throttled: Some(throttled), ..one });
    assert!(
        text(&run).ends_with("used it up in 30 of 40 periods and waited 1.50 s, summed over CPUs"),
        "{}",
        text(&run)
    );
    let advice = crate::trace(&run, None).findings.remove(0).advice;
    assert!(advice.unwrap().contains("raise the quota"));
    run.cpu_capacity = Some(CpuCapacity { cpus: 1.0, affinity: 1, quota: None, throttled: None });
    assert!(text(&run).ends_with("of the 1 that they might run on (2 CPUs)"), "{}", text(&run));
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
