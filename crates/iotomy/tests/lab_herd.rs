//! Herds of the built command: what one connection wakes, and that nobody is left of them.

use crate::support;

use std::fs;
use std::process::{Child, Command, Stdio};

use iotomy_lab::{FreeRoom, Needs};
use iotomy_record::{AxisValue, Case, Sweep, store};
use nix::sys::signal::Signal;
use support::labs::ENOUGH;
use support::{Need, doubled_until, iotomy, send, skip, until, until_ended, while_it_runs};

fn running(state: &tempfile::TempDir, arguments: &[&str]) -> Command {
    let mut command = iotomy(&["lab", "run"]);
    command.args(arguments).env("XDG_STATE_HOME", state.path());
    command
}

fn record(arguments: &[&str]) -> Sweep {
    let state = tempfile::tempdir().unwrap();
    let all = [arguments, &["-q", "--json", "-"]].concat();
    let output = running(&state, &all).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    store::parse_sweep(&output.stdout).unwrap()
}

fn case<'a>(sweep: &'a Sweep, of: &str, n: u64) -> &'a Case {
    let has = |case: &Case, text: &str| case.params.values().any(|one| one.to_string() == text);
    let found = sweep.cases.iter().find(|case| has(case, of) && has(case, &n.to_string()));
    found.unwrap_or_else(|| panic!("no case {of} {n}"))
}

/// Who waits and is woken again before `/proc` was looked at, or is still on its way to sleep, is a matter of the
/// machine: a run is repeated until it has not got in the way.
const FIRST: u32 = 1;

#[test]
fn one_connection_wakes_all_or_one_as_they_wait() {
    let woken = |sweep: &Sweep, waiter: &str| Some(*case(sweep, waiter, 32).extra.get("woken")?);
    const EACH: [&str; 3] = ["select", "poll", "epoll"];
    let tells = |sweep: &Sweep| {
        EACH.into_iter().filter_map(|waiter| woken(sweep, waiter)).all(|all| {
            let few = ["accept", "epoll-exclusive", "io-uring", "reuseport"];
            all > 24.0 && few.iter().filter_map(|one| woken(sweep, one)).all(|one| one < all / 2.0)
        })
    };
    let sweep = doubled_until(FIRST, tells, |_| {
        record(&["herd", "-L", "processes=1,32", "-L", "duplicates=0,9", ENOUGH])
    });
    // Duplicates with select, poll and epoll only.
    assert_eq!(sweep.cases.len(), 7 * 2 + 3 * 2);
    for one in sweep.cases.iter().filter(|one| one.skipped.is_some()) {
        skip(Need::Machine, &format!("{:?}: {:?}", one.params, one.skipped));
    }
    for waiter in EACH {
        let case = case(&sweep, waiter, 32);
        let all = case.extra.get("woken");
        assert!(case.skipped.is_some() || all.is_some_and(|all| *all <= 32.0), "{case:?}");
    }
    for one in sweep.cases.iter().filter(|one| !one.samples.is_empty()) {
        let extra = |name: &str| one.extra[name];
        assert!(one.samples.len() >= 16 || sweep.run.loose > 0, "{one:?}");
        assert!(extra("empty") <= extra("woken"), "{one:?}");
        assert!(extra("quiet_ns") >= one.min.unwrap(), "{one:?}");
        // A stack in the kernel and a page table of each process at least.
        if let Some(memory) = one.extra.get("memory_bytes") {
            let AxisValue::Number(processes) = one.params["processes"] else { panic!("{one:?}") };
            assert!(*memory >= processes as f64 * 20_480.0, "{one:?}");
        }
    }
}

#[test]
fn the_kernel_counts_as_many_wake_ups_as_there_are_processes_to_wake() {
    if !support::bpf() {
        return;
    }
    let axes = ["-L", "waiter=epoll,reuseport", "-L", "processes=32", "-L", "duplicates=0"];
    let wakeups = |sweep: &Sweep, waiter: &str| case(sweep, waiter, 32).extra["wakeups"];
    // A process may be woken once more by what it does behind the connection.
    let tells =
        |sweep: &Sweep| wakeups(sweep, "epoll") >= 24.0 && wakeups(sweep, "reuseport") < 4.0;
    let run = |_| record(&[&["herd"], &axes[..], &[ENOUGH]].concat());
    let sweep = doubled_until(FIRST, tells, run);
    let (all, one) = (case(&sweep, "epoll", 32), case(&sweep, "reuseport", 32));
    for case in [all, one] {
        let [wakeups, in_vain] = ["wakeups", "in_vain"].map(|name| case.extra[name]);
        // One process accepted the connection. Both are means, rounded each by itself.
        assert!((wakeups - in_vain - 1.0).abs() < 1e-9, "{case:?}");
    }
    assert!(one.extra["wakeups"] >= 1.0, "{one:?}");
    let said = &sweep.claims.iter().find(|claim| claim.id == "herd-exclusive").unwrap().because;
    assert!(said.contains("needs epoll and epoll-exclusive"), "{said}");
}

#[test]
fn workers_accept_every_connection_whatever_the_strategy() {
    let few = ["-L", "workers=1,4", "-L", "connections=20", ENOUGH];
    let sweep = record(&[&["accept"], &few[..]].concat());
    let strategies = &sweep.axes.iter().find(|axis| axis.name == "strategy").unwrap().values;
    assert_eq!(sweep.cases.len(), strategies.len() * 2);
    for one in &sweep.cases {
        if let Some(reason) = &one.skipped {
            skip(Need::Machine, &format!("{:?}: {reason}", one.params));
            continue;
        }
        let extra = |name: &str| one.extra[name];
        let note = one.note.as_deref().unwrap_or("not watched");
        assert!(one.median.unwrap() > 0.0 && note.starts_with("not watched"), "{one:?}");
        if let Some(wakeups) = one.extra.get("wakeups") {
            // A busy worker finds the next connection without having slept.
            assert!((0.0..20.0).contains(wakeups), "{one:?}");
        }
        assert!((0.0..1.0).contains(&extra("gini")), "{one:?}");
        assert!(extra("wait_p50_ns") > 0.0 && extra("wait_p50_ns") <= extra("wait_p99_ns"));
    }
    assert_eq!(sweep.claims.len(), 1);
}

#[test]
fn more_processes_than_there_can_be_are_skipped_and_the_rest_is_run() {
    let most = FreeRoom::now().processes.map_or(u64::MAX, |bound| bound.free);
    if most >= 65_536 {
        return skip(Need::Machine, "there can be more processes here than an experiment takes");
    }
    let axes = ["-L", "processes=2,65536", "-L", "waiter=epoll", "-L", "duplicates=0"];
    let sweep = record(&[&["herd"], &axes[..], &[ENOUGH]].concat());
    let reason = case(&sweep, "epoll", 65_536).skipped.clone().unwrap();
    assert!(reason.starts_with("needs 65536 processes; "), "{reason}");
    assert!(!case(&sweep, "epoll", 2).samples.is_empty());
}

/// Starts a herd of that many, and waits until there are `count` of it.
fn herd(state: &tempfile::TempDir, processes: u64, count: usize) -> (Child, Vec<u32>) {
    let of = format!("processes={processes}");
    let axes = ["herd", "-L", &of, "-L", "waiter=epoll", "-L", "duplicates=0"];
    let mut command = running(state, &[&axes[..], &["--max-time=600"]].concat());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let list = format!("/proc/{0}/task/{0}/children", child.id());
    let members = while_it_runs("the herd has come together", child.id(), || {
        let text = fs::read_to_string(&list).ok()?;
        let pids: Vec<u32> = text.split(' ').filter_map(|pid| pid.parse().ok()).collect();
        (pids.len() >= count).then_some(pids)
    });
    (child, members)
}

#[test]
fn a_kill_in_the_middle_of_a_herd_of_4096_leaves_no_process() {
    let needs = Needs { processes: 4_096, memory_bytes: 1 << 30, ..Needs::default() };
    if let Err(reason) = FreeRoom::now().check(needs) {
        return skip(Need::Machine, &format!("{reason:?}"));
    }
    // While it is being made, and when it is whole.
    for count in [1_000, 4_096] {
        let state = tempfile::tempdir().unwrap();
        let (mut child, members) = herd(&state, 4_096, count);
        child.kill().unwrap();
        child.wait().unwrap();
        members.into_iter().for_each(until_ended);
        // Nor one that was made meanwhile.
        until("nobody of the herd is left", || (!is_anybody_left(&state)).then_some(()));
    }
}

/// Whether a process that was given this folder, as all of a herd are, lives.
fn is_anybody_left(state: &tempfile::TempDir) -> bool {
    let mark = state.path().to_str().unwrap().as_bytes();
    fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|entry| {
        // Of one that has ended meanwhile, or whose end waits to be heard of, there is nothing to read.
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.windows(mark.len()).any(|part| part == mark)
    })
}

#[test]
fn an_interrupt_ends_a_herd_and_its_processes() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let state = tempfile::tempdir().unwrap();
        let (mut child, members) = herd(&state, 200, 200);
        send(child.id(), signal);
        assert_eq!(child.wait().unwrap().code(), Some(128 + signal as i32));
        members.into_iter().for_each(until_ended);
    }
}

#[test]
fn a_loopback_that_is_down_is_an_error_with_what_brings_it_up() {
    let alone = || support::bare("unshare", &["--net"]);
    if !alone().arg("true").status().is_ok_and(|status| status.success()) {
        return skip(Need::Namespaces, "unshare --net is not allowed here");
    }
    for experiment in ["herd", "accept"] {
        let state = tempfile::tempdir().unwrap();
        let mut command = alone();
        command.arg(support::IOTOMY).args(["lab", "run", experiment, "--quick"]);
        let output = command.env("XDG_STATE_HOME", state.path()).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{error}");
        assert!(error.contains("ENETUNREACH"), "{error}");
        assert!(error.ends_with("; bring the loopback up: ip link set lo up\n"), "{error}");
    }
}
