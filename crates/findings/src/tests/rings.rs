//! Findings about io_uring, each with the nearest run that must not have it.

use iotomy_record::{Histogram, RingOperation};

use super::*;

fn requests(op: &str, submitted: u64) -> RingOperation {
    let row = RingOperation { submitted, completed: submitted, inline: submitted, ..row(op) };
    RingOperation { bytes: 4096 * submitted, ..row }
}

fn row(op: &str) -> RingOperation {
    RingOperation { pid: 1, exec: "prog".into(), op: op.into(), ..RingOperation::default() }
}

/// Of these requests, so many by workers.
fn by_workers(op: &str, submitted: u64, worker: u64) -> RingOperation {
    RingOperation { worker, inline: submitted - worker, ..requests(op, submitted) }
}

/// A run whose threads of io_uring used this much CPU time.
fn run(rings: Vec<RingOperation>, threads_ns: u64) -> Trace {
    let mut run = Trace { ring_operations: rings, ..trace() };
    run.ledger[0].worker_ns = threads_ns;
    run
}

fn text(run: &Trace, id: &str) -> Option<String> {
    judged(run.clone()).into_iter().find(|(one, _)| one == id).map(|(_, text)| text)
}

#[test]
fn requests_that_workers_carry_out_are_told_where_they_are_many_and_cost_something() {
    let found = |row, threads_ns| text(&run(vec![row], threads_ns), "ring-workers");
    let said = found(by_workers("write", 2_000, 1_000), MS).unwrap();
    assert!(said.starts_with(
        "io_uring's worker threads carried out 1,000 of 2,000 requests of write by prog; its threads used 1 ms"
    ));
    assert!(said.ends_with("(1.0 % of the run's time)"), "{said}");
    assert_eq!(found(by_workers("write", 2_000, 999), MS), None);
    assert_eq!(found(by_workers("write", 2_001, 1_000), MS), None);
    assert_eq!(found(by_workers("write", 2_000, 1_000), MS - 1), None);
    // What others do there may have to wait.
    assert_eq!(found(by_workers("openat", 2_000, 2_000), MS), None);
}

#[test]
fn the_advice_about_workers_is_for_what_they_do() {
    let advice = |op: &str, forced_async| {
        let row = RingOperation { forced_async, ..by_workers(op, 2_000, 2_000) };
        let findings = crate::trace(&run(vec![row], 9 * MS), Some(&limits())).findings;
        let found = findings.into_iter().find(|one| one.id == "ring-workers").unwrap();
        (found.advice.unwrap_or_default(), found.text.contains("2,000 were submitted for a worker"))
    };
    assert_eq!(advice("read", 0), (String::new(), false));
    assert_eq!(advice("read", 2_000), ("submit without IOSQE_ASYNC".into(), true));
    assert!(advice("write", 0).0.contains("O_DIRECT"));
    assert_eq!(advice("write_fixed", 2_000).0, "submit without IOSQE_ASYNC");
    let (sync, is_asked) = advice("fsync", 2_000);
    assert!(sync.starts_with("sync once") && !is_asked, "{sync}");
}

/// Requests that calls submitted: how many calls submitted one, how many sixteen.
fn submitted(requests: Vec<RingOperation>, ones: u64, sixteens: u64) -> Trace {
    let mut enter = call("io_uring_enter", ones + sixteens);
    enter.return_log2 = Histogram::default();
    (enter.return_log2.buckets[0], enter.return_log2.buckets[4]) = (ones, sixteens);
    Trace { calls: vec![enter], ..run(requests, 0) }
}

#[test]
fn a_call_for_each_request_is_told_where_it_costs_something() {
    let found = |all, ones| {
        text(&submitted(vec![requests("read", all)], ones, (all - ones) / 16), "ring-unbatched")
    };
    // 10,000 calls of 100 ns are 1 of 100 ms.
    let said = found(10_000, 10_000).unwrap();
    assert!(
        said.contains(
            "cost about 1 ms (1.0 % of the time without run queue delay), at 100 ns a call"
        ),
        "{said}"
    );
    assert!(said.ends_with("on average 0 of its requests were in flight"), "{said}");
    assert_eq!(found(9_999, 9_999), None);
    assert!(found(20_000, 18_000).is_some());
    assert_eq!(found(20_000, 17_999), None);
    // With a submission thread, the call returns what it was given.
    let polled = RingOperation { sqpoll: 1, ..requests("read", 10_000) };
    assert_eq!(text(&submitted(vec![polled], 10_000, 0), "ring-unbatched"), None);
}

#[test]
fn requests_that_wait_for_each_other_cannot_share_a_call() {
    let advice = |wall_ns| {
        let row = RingOperation { wall_ns, ..requests("read", 20_000) };
        let findings =
            crate::trace(&submitted(vec![row], 20_000, 0), Some(&limits())).findings.into_iter();
        findings.filter(|one| one.id == "ring-unbatched").find_map(|one| one.advice).unwrap()
    };
    assert!(advice(200 * MS).starts_with("queue several requests"));
    assert!(advice(199 * MS).starts_with("keep several requests in flight"));
}

#[test]
fn a_submission_thread_that_its_requests_do_not_explain_polled() {
    let polled = |submitted, bytes| RingOperation {
        sqpoll: submitted,
        inline: 0,
        bytes,
        ..requests("read", submitted)
    };
    let found = |row, threads_ns| text(&run(vec![row], threads_ns), "ring-polling");
    // 100 requests explain 5 ms at most, and 5 MB another 5.
    let said = found(polled(100, 5_000_000), 20 * MS).unwrap();
    assert!(said.contains("used 20 ms of CPU time (20.0 % of the run's time) for 100 requests"));
    assert_eq!(found(polled(100, 5_000_001), 20 * MS), None);
    assert_eq!(found(polled(101, 5_000_000), 20 * MS), None);
    assert!(found(polled(1, 0), 10 * MS).is_some());
    assert_eq!(found(polled(1, 0), 10 * MS - 1), None);
    // The time may be a worker's.
    let shared = RingOperation { worker: 1, ..polled(100, 0) };
    assert_eq!(found(shared, 50 * MS), None);
    assert_eq!(found(requests("read", 100), 50 * MS), None);
}

#[test]
fn results_without_room_in_the_queue_are_told() {
    let found = |overflows| {
        text(&run(vec![RingOperation { overflows, ..requests("read", 50) }], 0), "ring-overflow")
    };
    assert_eq!(
        found(1).unwrap(),
        "1 of 50 results of requests by prog found the completion queue of io_uring full"
    );
    assert_eq!(found(0), None);
}

#[test]
fn links_that_failed_are_told_where_they_are_more_than_ends_of_files() {
    let found = |submitted, unlinked| {
        let kinds = [("ECANCELED".to_owned(), unlinked), ("ENOENT".to_owned(), 3)];
        let row = RingOperation {
            unlinked,
            error_kinds: BTreeMap::from(kinds),
            ..requests("read", submitted)
        };
        text(&run(vec![row], 0), "ring-links")
    };
    let said = found(1_000, 10).unwrap();
    assert!(said.starts_with("10 of 1,000 requests of prog to io_uring (1.0 %)"), "{said}");
    assert!(said.ends_with("beside ECANCELED: ENOENT (3)"), "{said}");
    assert_eq!(found(900, 9), None);
    assert_eq!(found(1_001, 10), None);
}

#[test]
fn many_requests_for_few_files_are_told_that_files_can_be_registered() {
    let found = |submitted, registered_files, files: u64| {
        let mut run =
            run(vec![RingOperation { registered_files, ..requests("read", submitted) }], 0);
        let file = |at| FileUse { path: format!("/{at}"), ..source(MIB, 1) };
        run.files = (0..files).map(file).collect();
        run.wall_ns = 500 * MS;
        text(&run, "ring-files")
    };
    let said = found(100_000, 0, 1).unwrap();
    assert!(said.starts_with("100,000 requests of prog to io_uring went to 1 file at most"));
    assert_eq!(found(99_999, 0, 1), None);
    assert_eq!(found(100_000, 1, 1), None);
    assert!(found(100_000, 0, 100).is_some());
    assert_eq!(found(100_000, 0, 101), None);
    // Which files there were is not known.
    assert_eq!(found(100_000, 0, 0), None);
    let mut slow = run(vec![requests("read", 100_000)], 0);
    slow.files = vec![source(MIB, 1)];
    slow.wall_ns = 501 * MS;
    assert_eq!(text(&slow, "ring-files"), None);
}

#[test]
fn the_run_queue_delay_of_a_busy_machine_hides_no_calls() {
    let mut busy = submitted(vec![requests("read", 10_000)], 10_000, 0);
    busy.wall_ns = 1_000 * MS;
    assert_eq!(text(&busy, "ring-unbatched"), None);
    (busy.ledger[0].thread_ns, busy.ledger[0].runnable_ns) = (1_000 * MS, 900 * MS);
    assert!(text(&busy, "ring-unbatched").is_some());
}

#[test]
fn requests_that_fail_are_no_work_either() {
    let failing = |submitted, kind: &str, errors| RingOperation {
        errors,
        error_kinds: [(kind.to_owned(), errors)].into(),
        ..requests("write", submitted)
    };
    let judged = |rows: Vec<RingOperation>, calls: Vec<Call>| {
        let all = judged(Trace { ring_operations: rows, calls, ..trace() });
        all.into_iter().find(|(id, _)| id == "errors-as-work").map(|(_, text)| text)
    };
    let text = judged(vec![failing(2_000, "ENOSPC", 1_500)], vec![]).unwrap();
    assert!(text.contains("1,500 of 2,000 requests of write to io_uring failed"), "{text}");
    assert!(text.contains("ENOSPC"), "{text}");
    assert_eq!(judged(vec![failing(2_000, "ENOSPC", 999)], vec![]), None);
    assert_eq!(judged(vec![failing(2_000, "ECANCELED", 1_500)], vec![]), None);
    // Most of the work was done otherwise, by calls or by requests.
    let failed = || failing(2_000, "ENOSPC", 1_500);
    assert_eq!(judged(vec![failed()], vec![call("write", 1_000)]), None);
    assert_eq!(judged(vec![failed(), requests("read", 1_000)], vec![]), None);
    let calls = Call {
        errors: 1_500,
        error_kinds: [("EBADF".to_owned(), 1_500)].into(),
        ..call("write", 1_500)
    };
    assert!(judged(vec![], vec![calls.clone()]).is_some());
    assert_eq!(judged(vec![requests("write", 1_500)], vec![calls]), None);
}
