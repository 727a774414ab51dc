use iotomy_record::arbitrary;
use iotomy_record::{Call, LedgerRow, Process, RingOperation, Spread};
use proptest::prelude::*;

use super::*;

/// A trace at 100 ns a call, of one thread.
fn trace(calls: Vec<Call>, user_ns: u64) -> Trace {
    let on_cpu: u64 = calls.iter().filter_map(|call| call.on_cpu_ns).sum();
    let blocked: u64 = calls.iter().filter_map(|call| call.blocked_ns).sum();
    let text = include_str!("trace.json");
    let mut trace = iotomy_record::store::parse_trace(text.as_bytes()).unwrap();
    trace.wall_ns = user_ns + on_cpu + blocked;
    trace.processes = vec![Process { pid: 1, threads: 1, ..Process::default() }];
    trace.ledger = vec![LedgerRow {
        pid: 1,
        thread_ns: trace.wall_ns,
        user_ns,
        calls_on_cpu_ns: on_cpu,
        blocked_ns: blocked,
        ..LedgerRow::default()
    }];
    trace.calls = calls;
    trace
}

fn call(name: &str, calls: u64, on_cpu_ns: u64, blocked_ns: u64) -> Call {
    Call {
        pid: 1,
        syscall: name.into(),
        calls,
        wall_ns: on_cpu_ns + blocked_ns,
        on_cpu_ns: Some(on_cpu_ns),
        blocked_ns: Some(blocked_ns),
        ..Call::default()
    }
}

fn command(label: &str, wall_ns: f64, trace: Option<Trace>) -> RaceCommand {
    RaceCommand {
        label: label.into(),
        trace,
        wall: Spread { median_ns: wall_ns, ..Spread::default() },
        cpu: Spread { median_ns: wall_ns / 2.0, ..Spread::default() },
        ..RaceCommand::default()
    }
}

fn race(commands: Vec<RaceCommand>) -> Race {
    let comparisons = commands.get(1).map(|_| iotomy_record::Comparison {
        base: "A".into(),
        other: "B".into(),
        metric: Metric::Wall,
        ratio: 1.0,
        ci95: [0.0, 0.0],
        verdict: iotomy_record::RaceVerdict::Undecided,
        runs: 0,
        more_runs: None,
        mean_ratio: None,
        mean_ci95: None,
    });
    Race {
        schema: Race::SCHEMA.into(),
        started: "2025-03-01T10:20:30Z".into(),
        commands,
        comparisons: comparisons.into_iter().collect(),
        ..Race::default()
    }
}

fn sum(attribution: &Attribution) -> i64 {
    attribution.terms.iter().map(|term| term.delta_ns).sum::<i64>() + attribution.residual_ns
}

fn term<'a>(attribution: &'a Attribution, kind: TermKind, name: &str) -> &'a Term {
    attribution.terms.iter().find(|term| term.kind == kind && term.name == name).unwrap()
}

#[test]
fn a_thousand_more_calls_are_what_differs() {
    let a = trace(vec![call("getppid", 0, 0, 0), call("read", 10, 20_000, 0)], 50_000);
    let b = trace(vec![call("getppid", 1_000, 1_050_000, 0), call("read", 10, 20_000, 0)], 100_000);
    let race = race(vec![command("A", 70_000.0, Some(a)), command("B", 1_070_000.0, Some(b))]);
    let found = attributions(&race);
    assert_eq!(found.len(), 2);
    let wall = &found[0];
    assert_eq!((wall.metric, wall.delta_ns), (Metric::Wall, 1_000_000));
    assert_eq!(sum(wall), wall.delta_ns);
    let getppid = term(wall, TermKind::Syscall, "getppid");
    // 1,050 ns a call, of which 50 are the observer's.
    assert_eq!((getppid.delta_ns, getppid.calls_base, getppid.calls_other), (1_000_000, 0, 1_000));
    assert_eq!(getppid.price_ns, 100_000);
    assert_eq!(wall.terms[0].name, "getppid");
    assert_eq!(term(wall, TermKind::User, "user").delta_ns, 0);
}

#[test]
fn the_middle_of_the_overhead_is_taken_off_and_a_term_is_held_against_its_upper_end() {
    let of = |ns| trace(vec![call("getppid", 1_000, ns, 0)], 50_000);
    let mut b = of(1_050_000);
    // Of which 50 of 100 are inside the call still.
    (b.observer.cost_ns_low, b.observer.cost_ns_high) = (60.0, 140.0);
    let race = race(vec![command("A", 0.0, Some(of(50_000))), command("B", 1e6, Some(b))]);
    let found = attributions(&race);
    let getppid = term(&found[0], TermKind::Syscall, "getppid");
    assert_eq!((getppid.delta_ns, getppid.price_ns), (1_000_000, 140_000));
}

#[test]
fn the_way_into_the_kernel_is_the_calls() {
    let a = trace(vec![call("getppid", 0, 0, 0)], 50_000);
    let b = trace(vec![call("getppid", 1_000, 60_000, 0)], 190_000);
    let mut race = race(vec![command("A", 5e4, Some(a)), command("B", 15e4, Some(b))]);
    race.harness.call_ns = Some(80.0);
    let wall = &attributions(&race)[0];
    // 60 ns less the observer's 50 inside, and 80 of the 140 between calls, 50 the observer's.
    assert_eq!(term(wall, TermKind::Syscall, "getppid").delta_ns, 90_000);
    assert_eq!(term(wall, TermKind::User, "user").delta_ns, 10_000);
    assert_eq!(sum(wall), 100_000);
}

#[test]
fn waits_are_apart_from_work_and_those_for_children_are_left_out() {
    let mut a = trace(vec![call("nanosleep", 1, 1_000, 5_000_000)], 0);
    let b = trace(vec![call("nanosleep", 1, 1_000, 9_000_000)], 0);
    let found = attributions(&race(vec![
        command("A", 5e6, Some(a.clone())),
        command("B", 9e6, Some(b.clone())),
    ]));
    assert_eq!(term(&found[0], TermKind::Blocked, "nanosleep").delta_ns, 4_000_000);
    assert!(found[1].terms.iter().all(|term| term.kind != TermKind::Blocked));
    // A shell in front of it that waits: the same difference, and no wait for children.
    a.processes.push(Process { pid: 2, threads: 1, ..Process::default() });
    a.calls.push(call("wait4", 1, 1_000, 5_000_000));
    a.ledger.push(LedgerRow { pid: 2, blocked_ns: 5_000_000, ..LedgerRow::default() });
    let found = attributions(&race(vec![command("A", 5e6, Some(a)), command("B", 9e6, Some(b))]));
    assert!(
        found[0].terms.iter().all(|term| term.kind != TermKind::Blocked || term.name != "wait4")
    );
    assert_eq!(sum(&found[0]), 4_000_000);
}

#[test]
fn an_observer_that_inflates_times_tells_counts_only() {
    let mut a = trace(vec![call("read", 7, 1_000_000, 0)], 0);
    a.observer.times_inflated = true;
    let mut b = trace(vec![call("write", 9, 1_000_000, 0)], 0);
    b.observer.times_inflated = true;
    let race = race(vec![command("A", 1e6, Some(a)), command("B", 3e6, Some(b))]);
    let found = &attributions(&race)[0];
    assert_eq!(found.residual_ns, 2_000_000);
    let counts: Vec<_> =
        found.terms.iter().map(|t| (t.calls_base, t.calls_other, t.delta_ns)).collect();
    assert_eq!(counts, [(7, 0, 0), (0, 9, 0)]);
}

#[test]
fn a_command_alone_is_accounted_for_whole_and_an_untraced_one_not_at_all() {
    let a = trace(vec![call("read", 10, 20_000, 0)], 50_000);
    let found = attributions(&race(vec![command("A", 70_000.0, Some(a.clone()))]));
    assert_eq!((found[0].base.as_str(), found[0].other.as_str()), ("A", "A"));
    assert_eq!((found[0].delta_ns, sum(&found[0])), (70_000, 70_000));
    let race = race(vec![command("A", 1.0, Some(a)), command("B", 1.0, None)]);
    assert!(attributions(&race).is_empty());
}

fn requests(op: &str, submitted: u64) -> RingOperation {
    RingOperation {
        pid: 1,
        op: op.into(),
        submitted,
        bytes: 4096 * submitted,
        // Many at once: more than any thread has.
        wall_ns: 9_000_000 * submitted,
        ..RingOperation::default()
    }
}

#[test]
fn requests_to_io_uring_are_counted_and_their_threads_have_cpu_time() {
    let a = trace(vec![call("read", 1_000, 1_000_000, 0)], 50_000);
    let mut b = trace(vec![call("io_uring_enter", 10, 100_000, 900_000)], 50_000);
    b.ring_operations = vec![requests("read", 600), requests("read", 400), requests("fsync", 1)];
    b.ledger[0].worker_ns = 700_000;
    let (mut a, mut b) = (command("A", 1e6, Some(a)), command("B", 1e6, Some(b)));
    // As a process is charged: what its threads run, and those of io_uring.
    (a.cpu.median_ns, b.cpu.median_ns) = (950_000.0, 849_000.0);
    let found = attributions(&race(vec![a, b]));
    let read = term(&found[0], TermKind::Ring, "read");
    assert_eq!((read.calls_base, read.calls_other), (0, 1_000));
    assert_eq!((read.bytes_base, read.bytes_other), (0, 4_096_000));
    assert_eq!((read.base_ns, read.other_ns, read.delta_ns), (0, 0, 0));
    assert_eq!(term(&found[0], TermKind::Ring, "fsync").calls_other, 1);
    // They run while the program waits: no wall time of their own.
    assert!(found[0].terms.iter().all(|term| term.kind != TermKind::Workers));
    assert_eq!(found[0].traced_other_ns, 1_049_000);
    let workers = term(&found[1], TermKind::Workers, "io_uring threads");
    assert_eq!(
        (found[1].metric, workers.other_ns, workers.delta_ns),
        (Metric::Cpu, 700_000, 700_000)
    );
    assert_eq!((found[1].residual_ns, sum(&found[1])), (0, -101_000));
    // Without rings there is nothing to say of them.
    let alone = attributions(&race(vec![command("A", 1e6, Some(trace(vec![], 50_000)))]));
    let is_of_rings = |term: &Term| matches!(term.kind, TermKind::Ring | TermKind::Workers);
    assert!(alone.iter().flat_map(|found| &found.terms).all(|term| !is_of_rings(term)));
}

proptest! {
    #[test]
    fn terms_and_residual_are_the_difference_whatever_the_traces_say(
        a in arbitrary::trace(), b in arbitrary::trace(), walls in [0.0..1e15, 0.0..1e15],
    ) {
        // Sums of times of the whole range saturate; what a run can take does not.
        let sane = |mut trace: Trace| {
            let most = 1 << 50;
            for call in &mut trace.calls {
                call.on_cpu_ns = call.on_cpu_ns.map(|ns| ns.min(most));
                call.blocked_ns = call.blocked_ns.map(|ns| ns.min(most));
                call.calls = call.calls.min(most);
                call.in_flight = call.in_flight.min(most);
            }
            for row in &mut trace.ledger {
                row.user_ns = row.user_ns.min(most);
                row.blocked_ns = row.blocked_ns.min(most);
                row.runnable_ns = row.runnable_ns.min(most);
                row.calls_on_cpu_ns = row.calls_on_cpu_ns.min(most);
                row.worker_ns = row.worker_ns.min(most);
            }
            for process in &mut trace.processes {
                process.minor_faults = process.minor_faults.min(most);
            }
            trace.wall_ns = trace.wall_ns.min(most);
            trace.observer.cost_ns_per_call = trace.observer.cost_ns_per_call.min(1.0);
            trace
        };
        let [x, y] = walls;
        let commands = vec![command("A", x, Some(sane(a))), command("B", y, Some(sane(b)))];
        for found in attributions(&race(commands)) {
            prop_assert_eq!(sum(&found), found.delta_ns);
        }
    }
}
