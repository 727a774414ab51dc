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
        totals.add(&counts, 1, By::Image, 10);
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
        totals.add(&counts, 1, By::Image, 10);
    }
    assert_eq!(service(&totals, "dd").calls["read"].calls, 6);
    assert_eq!(totals.lost, 10);
}

#[test]
fn a_call_that_has_not_returned_has_no_row() {
    let mut totals = Totals::default();
    let waits = Call { syscall: "pause".into(), in_flight: 1, wall_ns: 9, ..Call::default() };
    let images = vec![image(1, "dd", vec![waits, call("read", &[1])])];
    totals.add(&Intervals::default().since_last(&snapshot(1, images)), 1, By::Image, 10);
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
    totals.add(&counts, 1, By::Image, 10);
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
        totals.add(&intervals.since_last(&snapshot(last.into(), images)), 1, By::Image, 2);
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
        let LedgerRow { thread_ns, user_ns, calls_on_cpu_ns, .. } = one.ledger;
        let ledger = vec![thread_ns, user_ns, calls_on_cpu_ns];
        all.insert((service.to_owned(), String::new()), ledger);
        for (name, call) in &one.calls {
            let numbers = [call.calls, call.bytes, call.wall_ns].into_iter().chain(call.durations);
            all.insert((service.to_owned(), name.clone()), numbers.collect());
        }
    }
    all
}

/// Of calls of 10 bytes and 700 ns.
#[test]
fn counts_stand_for_as_many_as_the_factor_of_their_interval_says() {
    let mut totals = Totals::default();
    let mut intervals = Intervals::default();
    let mut made = 0;
    for (at, (more, factor)) in [(3, 1), (5, 4), (0, 4), (1, 128), (2, 1)].into_iter().enumerate() {
        made += more;
        let mut reads = call("read", &vec![700; made]);
        reads.bytes = 10 * made as u64;
        reads.error_kinds.insert("EIO".into(), made as u64);
        let now = snapshot(at as u64, vec![image(1, "dd", vec![reads])]);
        totals.add(&intervals.since_last(&now), factor, By::Image, 1);
    }
    let read = &service(&totals, "dd").calls["read"];
    let all = 3 + 5 * 4 + 128 + 2;
    assert_eq!((read.calls, read.bytes, read.wall_ns), (all, 10 * all, 700 * all));
    assert_eq!((read.timed(), read.errors["EIO"]), (all, all));
}

#[test]
fn time_on_a_cpu_is_exact_and_calls_have_of_it_what_is_estimated() {
    let mut of_service = OfService::default();
    let row = |user_ns, calls_on_cpu_ns| LedgerRow { user_ns, calls_on_cpu_ns, ..<_>::default() };
    let mut add = |row: LedgerRow, factor| {
        of_service.add(&row, factor);
        (of_service.ledger.user_ns, of_service.ledger.calls_on_cpu_ns)
    };
    assert_eq!(add(row(70, 30), 1), (70, 30));
    // A window saw 5: for 40, of 100 in all.
    assert_eq!(add(row(95, 5), 8), (130, 70));
    // It saw 20 for 160: 60 more than there were, which the next interval has.
    assert_eq!(add(row(80, 20), 8), (130, 170));
    assert_eq!(add(row(100, 0), 8), (170, 230));
    assert_eq!(add(row(100, 0), 8), (270, 230));
}

#[test]
fn variances_are_of_a_call_over_all_services_and_0_where_all_of_it_counted() {
    let mut totals = Totals::default();
    let images = ["a", "b"].map(|exec| {
        let calls = ["read", "write", "syscall_600"].map(|name| call(name, &[1]));
        image(u32::from(exec.as_bytes()[0]), exec, calls.into())
    });
    let counts = Intervals::default().since_last(&snapshot(1, images.into()));
    totals.add(&counts, 4, By::Image, 5);
    for (name, more) in [("read", 3.0), ("read", 4.0), ("", 5.0), ("syscall_511", 6.0)] {
        totals.add_variance(name, more);
    }
    let variances: Vec<_> = totals.variances().collect();
    assert_eq!(variances, [("read", 7.0), (UNNAMED, 11.0), ("write", 0.0)]);
}

proptest! {
    /// Whatever the factors were: the parts of a sum add up to it, and time on a CPU is exact.
    #[test]
    fn scaled_counts_stay_consistent(
        looks in prop::collection::vec((0u64..9, 0u64..9, 0u32..8, 0u64..99, 0u64..99), 1..20),
    ) {
        let mut totals = Totals::default();
        let mut intervals = Intervals::default();
        let (mut made, mut estimate, mut on_cpu_ns) = ([0; 2], 0, [0; 2]);
        for (at, (short, long, power, user_ns, in_calls_ns)) in looks.into_iter().enumerate() {
            made = [made[0] + short, made[1] + long];
            estimate += (short + long) << power;
            on_cpu_ns = [on_cpu_ns[0] + user_ns, on_cpu_ns[1] + in_calls_ns];
            let times = [vec![700; made[0] as usize], vec![70_000; made[1] as usize]].concat();
            let mut reads = call("read", &times);
            reads.bytes = 10 * reads.calls;
            let mut one = image(1, "a", vec![reads]);
            let thread_ns = at as u64 + 1;
            let [user_ns, calls_on_cpu_ns] = on_cpu_ns;
            one.ledger =
                Some(LedgerRow { thread_ns, user_ns, calls_on_cpu_ns, ..LedgerRow::default() });
            let now = snapshot(at as u64, vec![one]);
            totals.add(&intervals.since_last(&now), 1 << power, By::Image, 1);
            let of_service = &totals.of_services[0];
            let ledger = &of_service.ledger;
            prop_assert_eq!(ledger.user_ns + ledger.calls_on_cpu_ns, on_cpu_ns.iter().sum::<u64>());
            if let Some(read) = of_service.calls.get("read") {
                prop_assert_eq!([read.calls, read.timed(), read.bytes / 10], [estimate; 3]);
            }
        }
    }

    /// Also where a look saw less than the one before, as it does where a thread ends while it is read.
    #[test]
    fn no_number_ever_goes_back(
        looks in prop::collection::vec((0u64..9, 0u64..9, 0u64..9, 0u32..8), 1..20),
    ) {
        let mut totals = Totals::default();
        let mut intervals = Intervals::default();
        let mut before = BTreeMap::new();
        for (at, (a, b, lost, power)) in looks.into_iter().enumerate() {
            let calls = |count: u64| vec![call("read", &vec![700; count as usize])];
            let images = vec![image(1, "a", calls(a)), image(2, "b", calls(b))];
            let now = Snapshot { lost, ..snapshot(at as u64, images) };
            totals.add(&intervals.since_last(&now), 1 << power, By::Image, 1);
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
