//! Tests of the sums.

use iotomy_record::{ImageCounts, Intervals, Process, Snapshot};
use proptest::prelude::*;

use super::*;

/// A row with these wall times in ns.
fn call(syscall: &str, times_ns: &[u64]) -> Call {
    let mut call = Call { syscall: syscall.into(), ..Call::default() };
    times_ns.iter().for_each(|ns| call.wall_times.add(*ns));
    call.calls = times_ns.len() as u64;
    call.wall_ns = times_ns.iter().sum();
    call
}

fn image(id: u32, exec: &str, calls: Vec<Call>) -> ImageCounts {
    let ledger = LedgerRow { thread_ns: 10 * u64::from(id), ..LedgerRow::default() };
    let exec = exec.to_owned();
    ImageCounts { id, pid: id, exec, calls, threads: 1, ledger: Some(ledger), ..<_>::default() }
}

fn snapshot(elapsed_ns: u64, images: Vec<ImageCounts>) -> Snapshot {
    Snapshot { elapsed_ns, images, ..Snapshot::default() }
}

fn service<'t>(totals: &'t Totals, name: &str) -> &'t OfService {
    totals.iter().find(|(service, _)| *service == name).unwrap().1
}

#[test]
fn a_time_counts_below_the_bound_that_it_does_not_exceed() {
    let mut times = Times::default();
    for ns in BOUNDS_NS {
        times.add(ns);
        times.add(ns + 1);
    }
    times.add(0);
    let counts = by_bound(&times);
    // The first has 0 too; every other one has the time above the bound before, and its own bound.
    assert_eq!(counts.iter().sum::<u64>(), times.total());
    assert_eq!(counts[0], 2);
    assert_eq!(counts[1..BOUNDS_NS.len()], [2; BOUNDS_NS.len() - 1]);
    assert_eq!(counts[BOUNDS_NS.len()], 1);
}

#[test]
fn what_several_processes_of_a_service_do_is_added_up() {
    let mut totals = Totals::default();
    let mut intervals = Intervals::default();
    let images = |reads: u64| {
        let of = |ns| vec![call("read", &vec![ns; usize::try_from(reads).unwrap()])];
        vec![image(1, "dd", of(100)), image(2, "dd", of(2_000)), image(3, "cat", of(5))]
    };
    for (elapsed_ns, reads) in [(1, 3), (2, 3), (3, 7)] {
        let counts = intervals.since_last(&snapshot(elapsed_ns, images(reads)));
        totals.add(&counts, By::Image, 10);
    }
    let dd = &service(&totals, "dd").calls["read"];
    assert_eq!((dd.calls, dd.wall_ns), (14, 7 * 100 + 7 * 2_000));
    assert_eq!(dd.durations[..2], [7, 7]);
    assert_eq!(service(&totals, "cat").calls["read"].calls, 7);
    assert_eq!(service(&totals, "dd").ledger.thread_ns, 30);
}

#[test]
fn a_second_watch_adds_to_the_first() {
    let mut totals = Totals::default();
    for reads in [4, 2] {
        let mut intervals = Intervals::default();
        let images = vec![image(1, "dd", vec![call("read", &vec![1; reads])])];
        let counts = intervals.since_last(&Snapshot { lost: 5, ..snapshot(1, images) });
        totals.add(&counts, By::Image, 10);
    }
    assert_eq!(service(&totals, "dd").calls["read"].calls, 6);
    assert_eq!(totals.lost, 10);
}

#[test]
fn a_call_that_has_not_returned_has_no_row() {
    let mut totals = Totals::default();
    let waits = Call { syscall: "pause".into(), in_flight: 1, wall_ns: 9, ..Call::default() };
    let images = vec![image(1, "dd", vec![waits, call("read", &[1])])];
    totals.add(&Intervals::default().since_last(&snapshot(1, images)), By::Image, 10);
    assert_eq!(service(&totals, "dd").calls.keys().collect::<Vec<_>>(), ["read"]);
}

#[test]
fn calls_without_a_name_are_one_and_errors_have_a_bound() {
    let mut totals = Totals::default();
    let mut counts = Intervals::default().since_last(&Snapshot::default());
    counts.processes = vec![Process { pid: 1, exec: "x".into(), ..Process::default() }];
    let of = |name: String, error_kinds: BTreeMap<String, u64>| Call {
        pid: 1,
        exec: "x".into(),
        syscall: name,
        calls: 1,
        error_kinds,
        ..Call::default()
    };
    counts.calls = (500..600).map(|at| of(format!("syscall_{at}"), BTreeMap::new())).collect();
    counts.calls.push(of("syscall_9(i386)".into(), BTreeMap::new()));
    let errors = |first: u64| (0..30).map(|at| (format!("E{:02}", first + at), 1)).collect();
    counts.calls.push(of("read".into(), errors(0)));
    counts.calls.push(of("read".into(), errors(10)));
    totals.add(&counts, By::Image, 10);
    let calls = &service(&totals, "x").calls;
    assert_eq!(calls.keys().collect::<Vec<_>>(), ["read", UNNAMED]);
    assert_eq!(calls[UNNAMED].calls, 101);
    let errors = &calls["read"].errors;
    assert_eq!(errors.len(), MOST_ERRORS + 1);
    // E00 to E15 have labels: E10 to E15 came twice.
    assert_eq!((errors["E09"], errors["E10"], errors[OTHER]), (1, 2, 14 + 24));
}

#[test]
fn a_service_beyond_the_bound_is_added_to_the_others() {
    let mut totals = Totals::default();
    let mut intervals = Intervals::default();
    let image = |id| image(id, &format!("p{id}"), vec![call("read", &[1])]);
    for last in [3, 6] {
        let images = (1..=last).map(image).collect();
        totals.add(&intervals.since_last(&snapshot(last.into(), images)), By::Image, 2);
    }
    let services: Vec<_> =
        totals.iter().map(|(name, one)| (name, one.calls["read"].calls)).collect();
    assert_eq!(services, [("p1", 1), ("p2", 1), (OTHER, 4)]);
    assert_eq!((totals.services.own(), totals.services.others()), (2, 4));
}

#[test]
fn bytes_have_the_direction_that_their_call_moves_them_in() {
    for (call, way) in [
        ("read", "read"),
        ("recvmmsg", "read"),
        ("getdents64", "read"),
        ("process_vm_readv", "read"),
        ("write", "write"),
        ("write(i386)", "write"),
        ("sendmsg", "write"),
        ("vmsplice", "write"),
        ("process_vm_writev", "write"),
        ("copy_file_range", "copy"),
        ("sendfile", "copy"),
        ("tee", "copy"),
    ] {
        assert_eq!(direction(call), way, "{call}");
    }
}

/// The numbers of each service and call, and of each service.
fn numbers(totals: &Totals) -> BTreeMap<(String, String), Vec<u64>> {
    let mut all = BTreeMap::from([(<_>::default(), vec![totals.lost])]);
    for (service, one) in totals.iter() {
        all.insert((service.to_owned(), String::new()), vec![one.ledger.thread_ns]);
        for (name, call) in &one.calls {
            let numbers = [call.calls, call.bytes, call.wall_ns].into_iter().chain(call.durations);
            all.insert((service.to_owned(), name.clone()), numbers.collect());
        }
    }
    all
}

proptest! {
    /// Also where a look saw less than the one before, as it does where a thread ends while it is read.
    #[test]
    fn no_number_ever_goes_back(looks in prop::collection::vec((0u64..9, 0u64..9, 0u64..9), 1..20)) {
        let mut totals = Totals::default();
        let mut intervals = Intervals::default();
        let mut before = BTreeMap::new();
        for (at, (a, b, lost)) in looks.into_iter().enumerate() {
            let calls = |count: u64| vec![call("read", &vec![700; count as usize])];
            let images = vec![image(1, "a", calls(a)), image(2, "b", calls(b))];
            let now = Snapshot { lost, ..snapshot(at as u64, images) };
            totals.add(&intervals.since_last(&now), By::Image, 1);
            let after = numbers(&totals);
            for (of, before) in &before {
                let now = after.get(of);
                let stays = now.is_some_and(|now| now.iter().zip(before).all(|(now, old)| now >= old));
                prop_assert!(stays, "{of:?}: {before:?}, then {now:?}");
            }
            before = after;
        }
    }
}
