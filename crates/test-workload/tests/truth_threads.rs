//! Truth of threads: which there were, by which names, and what each did. Every test runs every observer.

use crate::harness;

use std::collections::BTreeSet;

use harness::{
    Need, Running, Watched, command, each_observer, skip, subject, watch, watch_running,
};
use iotomy_observe::{Observer, Request, Target};
use iotomy_record::Thread;

/// The subject watched by thread, with only these calls reported, if any.
fn by_thread(observer: &dyn Observer, arguments: &[&str], calls: &[&str]) -> Watched {
    let calls: BTreeSet<String> = calls.iter().map(|&call| call.to_owned()).collect();
    let calls = (!calls.is_empty()).then_some(calls);
    watch(observer, &Request { threads: true, calls, ..command(subject(), arguments) })
}

fn sum(watched: &Watched, part: fn(&Thread) -> u64) -> u64 {
    watched.threads.iter().map(part).sum()
}

#[test]
fn every_thread_has_its_name_and_its_own_calls() {
    each_observer(|observer| {
        let watched = by_thread(observer, &["named-threads", "5"], &["getppid"]);
        let mut rows: Vec<&Thread> = watched.threads.iter().collect();
        rows.sort_by_key(|row| row.calls);
        let of = |row: &&Thread| (row.name.clone(), row.calls, row.count());
        let workers = (1..=5).map(|at| (format!("worker-{at}"), 23 * at, 1));
        let main = ("iotomy-workload".to_owned(), 0, 1);
        let all: Vec<_> = std::iter::once(main).chain(workers).collect();
        assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), all);
        assert!(rows[0].is_first() && rows[1..].iter().all(|row| !row.is_first()));
        assert!(rows[1..].iter().all(|row| row.longest_call == "getppid" && row.longest_ns > 0));
        let tids: BTreeSet<u32> = rows.iter().map(|row| row.tid).collect();
        assert_eq!(tids.len(), 6);
    });
}

#[test]
fn threads_add_up_to_their_process() {
    each_observer(|observer| {
        for arguments in [&["threads", "23", "23"][..], &["execs", "5"], &["children", "23"]] {
            let watched = by_thread(observer, arguments, &[]);
            assert_adds_up(&watched);
        }
    });
}

fn assert_adds_up(watched: &Watched) {
    let of_calls =
        |part: fn(&iotomy_record::Call) -> u64| watched.calls.iter().map(part).sum::<u64>();
    assert_eq!(sum(watched, |row| row.calls), of_calls(|row| row.calls));
    assert_eq!(sum(watched, |row| row.errors), of_calls(|row| row.errors));
    for process in &watched.processes {
        let of_it = || {
            let own = |row: &&Thread| {
                (row.pid, &row.exec, row.image) == (process.pid, &process.exec, process.image)
            };
            watched.threads.iter().filter(own)
        };
        assert_eq!(of_it().map(Thread::count).sum::<u32>(), process.threads);
        let voluntary: u64 = of_it().map(|row| row.voluntary_switches).sum();
        assert_eq!(voluntary, process.voluntary_switches);
    }
    // An observer without a ledger knows no blocked time.
    let booked =
        |part: fn(&iotomy_record::LedgerRow) -> u64| watched.ledger.iter().map(part).sum::<u64>();
    if !watched.ledger.is_empty() {
        let on_cpu = booked(|row| row.user_ns) + booked(|row| row.calls_on_cpu_ns);
        assert_eq!(sum(watched, |row| row.on_cpu_ns), on_cpu);
        assert_eq!(sum(watched, |row| row.blocked_ns.unwrap()), booked(|row| row.blocked_ns));
        assert_eq!(sum(watched, |row| row.runnable_ns.unwrap()), booked(|row| row.runnable_ns));
        assert_eq!(sum(watched, |row| row.thread_ns.unwrap()), booked(|row| row.thread_ns));
    } else {
        assert!(watched.threads.iter().all(|row| row.blocked_ns.is_none()));
    }
}

#[test]
fn many_threads_of_one_name_that_came_and_went_are_one_entry() {
    each_observer(|observer| {
        let watched = by_thread(observer, &["threads", "300", "23"], &["getppid"]);
        assert_eq!(watched.threads.len(), 2, "{:?}", watched.threads);
        let counts: BTreeSet<(u32, u64)> =
            watched.threads.iter().map(|row| (row.instances, row.calls)).collect();
        assert_eq!(counts, [(0, 0), (300, 300 * 23)].into());
    });
}

#[test]
fn an_execve_is_of_the_thread_that_made_it() {
    each_observer(|observer| {
        let watched = by_thread(observer, &["exec-from-thread"], &["execve"]);
        // The first image: its launch, and the other thread's call. Its first thread is in pause.
        let counts: Vec<_> =
            watched.threads.iter().map(|row| (row.is_first(), row.calls)).collect();
        let mut images = counts.clone();
        images.sort_unstable();
        assert_eq!(images, [(false, 1), (true, 0), (true, 1)], "{:?}", watched.threads);
    });
}

#[test]
fn of_ten_thousand_threads_no_call_is_lost() {
    each_observer(|observer| {
        let name = observer.declaration().name;
        // ptrace stops each thread at each call, one after the other.
        let threads: usize = if name == "bpf" { 10_000 } else { 200 };
        let mut running = Running::until_ready(&["many-on-demand", &threads.to_string(), "23"]);
        let there = std::fs::read_dir(format!("/proc/{}/task", running.pid())).unwrap().count();
        if there != threads + 1 {
            running.let_go();
            return skip(Need::Machine, &format!("no more than {there} threads can be made here"));
        }
        let target = Target::process(running.pid());
        let calls = Some(BTreeSet::from(["getppid".to_owned()]));
        let request = Request { target, threads: true, calls, ..command("", &[]) };
        let watched = watch_running(observer, &request, &mut running, Running::let_go);
        assert_eq!(watched.calls("getppid"), threads as u64 * 23, "{name}");
        assert_eq!(sum(&watched, |row| row.calls), threads as u64 * 23, "{name}");
        let counted: u32 = watched.threads.iter().map(Thread::count).sum();
        assert_eq!(counted as usize, there, "{name}");
        assert_eq!(watched.observer.lost_events, 0, "{name}");
        assert_eq!(running.wait(), 0);
    });
}

#[test]
fn threads_that_ran_before_the_watch_are_listed_each() {
    each_observer(|observer| {
        let mut running = Running::start(&["on-demand", "23"]);
        let target = Target::process(running.pid());
        let calls = Some(BTreeSet::from(["getppid".to_owned()]));
        let request = Request { target, threads: true, calls, ..command("", &[]) };
        let watched = watch_running(observer, &request, &mut running, Running::let_go);
        let counts: Vec<_> = watched.threads.iter().map(|row| (row.count(), row.calls)).collect();
        assert_eq!(counts, [(1, 23), (1, 23)], "{:?}", watched.threads);
        assert_eq!(running.wait(), 0);
    });
}
