//! Whatever ends a race, nothing of it is left.

use crate::support;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};

use nix::sys::signal::Signal;
use support::races::{FinishedRace, raced, racing};
use support::{doubled_until, send, send_if_there, state, until, until_ended};

/// The process ids a script has written to a file, one a line, once there are `count`.
fn pids(folder: &Path, count: usize) -> Vec<u32> {
    until("the command says who it is", || {
        let text = fs::read_to_string(folder.join("pids")).ok()?;
        let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (pids.len() >= count && text.ends_with('\n')).then_some(pids)
    })
}

/// The process ids that scripts have written until a race was over: whether they had the time for it is a matter of
/// the machine.
fn pids_of(race: &FinishedRace) -> Vec<u32> {
    let text = fs::read_to_string(race.folder.path().join("pids")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Runs a race that its `--max-time` ends: as many seconds as let the scripts write `count` process ids before.
fn raced_until_told(
    count: usize,
    options: &[&str],
    is_it: impl Fn(&FinishedRace) -> bool,
) -> FinishedRace {
    let race = |seconds: u32| raced(&[&["--max-time", &seconds.to_string()], options].concat());
    doubled_until(1, |race: &FinishedRace| pids_of(race).len() >= count && is_it(race), race)
}

/// A child in the background, one in the foreground, and one in a session of its own.
const FAMILY: &str = "sleep 1000 & echo $! >> pids; setsid sh -c 'echo $$ >> pids; exec sleep 1000' & \
                      echo $$ >> pids; sleep 1000; true";

fn start(folder: &tempfile::TempDir, options: &[&str]) -> Child {
    let mut command = racing(folder, options);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a_command_that_never_ends_is_killed_with_all_it_made() {
    let raced = raced_until_told(3, &["--no-trace", FAMILY], |_| true);
    assert_eq!(raced.code(), 2);
    assert!(
        raced.stderr().contains("still running at the end of --max-time"),
        "{}",
        raced.stderr()
    );
    pids_of(&raced).into_iter().for_each(until_ended);
}

#[test]
fn an_interrupt_ends_everything_and_cleans_up() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let folder = tempfile::tempdir().unwrap();
        let options = ["--no-trace", "--cleanup", "echo x > cleaned", FAMILY];
        let race = start(&folder, &options);
        let family = pids(folder.path(), 3);
        send(race.id(), signal);
        let output = race.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(128 + signal as i32));
        family.into_iter().for_each(until_ended);
        assert!(folder.path().join("cleaned").exists());
    }
}

/// A process that has left its group, its session and its parent, as daemons do, and the endless
/// command that made it.
const DAEMON: &str = "setsid sh -c 'sh -c \"echo \\$\\$ >> pids; exec sleep 1000\" &'; \
                      echo $$ >> pids; sleep 1000; true";

/// The processes of `iotomy race` besides the one that was started: its only child, the guard, and the
/// only child of that, which does the work.
fn others(race: &Child) -> [u32; 2] {
    let child = |of: u32| {
        let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap();
        children.trim().parse().unwrap()
    };
    let guard = child(race.id());
    [guard, child(guard)]
}

#[test]
fn a_kill_of_iotomy_ends_everything() {
    for script in [FAMILY, DAEMON] {
        let folder = tempfile::tempdir().unwrap();
        let mut race = start(&folder, &["--no-trace", "--cleanup", "echo x > cleaned", script]);
        let mut family = pids(folder.path(), if script == FAMILY { 3 } else { 2 });
        family.extend(others(&race));
        race.kill().unwrap();
        race.wait().unwrap();
        family.into_iter().for_each(until_ended);
        // The process that raced was not killed, and has done what was to be done last.
        assert!(folder.path().join("cleaned").exists());
    }
}

#[test]
fn a_kill_of_the_process_that_races_or_of_its_guard_ends_everything() {
    for script in [FAMILY, DAEMON] {
        for at in [0, 1] {
            let folder = tempfile::tempdir().unwrap();
            let mut race = start(&folder, &["--no-trace", script]);
            let mut family = pids(folder.path(), if script == FAMILY { 3 } else { 2 });
            family.extend(others(&race));
            send(others(&race)[at], Signal::SIGKILL);
            assert_eq!(race.wait().unwrap().signal(), Some(9));
            family.into_iter().for_each(until_ended);
        }
    }
}

/// Two at once: all three are stopped first, so that none hears of another's end before its own.
#[test]
fn a_kill_of_two_of_its_processes_at_once_ends_everything() {
    for spared in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let mut race = start(&folder, &["--no-trace", DAEMON]);
        let mut family = pids(folder.path(), 2);
        let [guard, worker] = others(&race);
        family.extend([guard, worker]);
        let all = [race.id(), guard, worker];
        for pid in all {
            send(pid, Signal::SIGSTOP);
            until("it has stopped", || (support::state(pid) == Some('T')).then_some(()));
        }
        let killed = all.iter().enumerate().filter(|(at, _)| *at != spared);
        // The kernel wakes a stopped group when it loses its parent: the next may have ended by then.
        killed.for_each(|(_, pid)| send_if_there(*pid, Signal::SIGKILL));
        send_if_there(all[spared], Signal::SIGCONT);
        race.wait().unwrap();
        family.into_iter().for_each(until_ended);
    }
}

#[test]
fn a_kill_by_the_name_or_by_the_command_line_ends_everything() {
    for file in ["comm", "cmdline"] {
        let folder = tempfile::tempdir().unwrap();
        let mut race = start(&folder, &["--no-trace", DAEMON]);
        let mut family = pids(folder.path(), 2);
        let [guard, worker] = others(&race);
        let keepers = support::children(worker);
        let ours = [&[race.id(), guard, worker], keepers.as_slice()].concat();
        family.extend(&ours[1..]);
        let is_named = |pid: &&u32| {
            let name = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&name).contains("iotomy")
        };
        let named: Vec<u32> = ours.iter().filter(is_named).copied().collect();
        assert!(named.contains(&race.id()) && named.contains(&worker), "{file}: {named:?}");
        for pid in &named {
            send(*pid, Signal::SIGSTOP);
            until("it has stopped", || (support::state(*pid) == Some('T')).then_some(()));
        }
        named.iter().for_each(|pid| send_if_there(*pid, Signal::SIGKILL));
        race.wait().unwrap();
        family.into_iter().for_each(until_ended);
    }
}

#[test]
fn a_kill_while_tracing_ends_everything() {
    for of_worker in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        // Quick when timed; endless when traced, with a process that has left everything.
        let script = format!("[ -e early ] || {{ touch early; exit; }}; {DAEMON}");
        let mut race = start(&folder, &["-w", "0", "-r", "1", &script]);
        let family = pids(folder.path(), 2);
        if of_worker {
            send(others(&race)[1], Signal::SIGKILL);
        } else {
            race.kill().unwrap();
        }
        race.wait().unwrap();
        family.into_iter().for_each(until_ended);
    }
}

#[test]
fn a_command_that_leaves_its_group_is_ended_too() {
    let script = "echo $$ >> pids; exec setsid sleep 1000";
    let timed = raced_until_told(1, &["--no-trace", script], |_| true);
    assert_eq!(timed.code(), 2, "{}", timed.stderr());
    pids_of(&timed).into_iter().for_each(until_ended);

    let folder = tempfile::tempdir().unwrap();
    let race = start(&folder, &["--no-trace", script]);
    let family = pids(folder.path(), 1);
    send(race.id(), Signal::SIGTERM);
    assert_eq!(race.wait_with_output().unwrap().status.code(), Some(143));
    family.into_iter().for_each(until_ended);

    // The third run is a traced one.
    let traced = format!(
        "[ -e pids ] && [ $(wc -l < pids) -ge 2 ] || exec sh -c 'echo 0 >> pids'; {script}"
    );
    let options = ["-w", "0", "-r", "2", &traced];
    let race = raced_until_told(3, &options, |race| race.code() == 0);
    let members = pids_of(&race).into_iter().filter(|pid| *pid != 0).collect::<Vec<_>>();
    assert!(!members.is_empty());
    members.into_iter().for_each(until_ended);
}

#[test]
fn who_asks_for_the_end_twice_gets_the_clean_up_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; echo $$ >> pids; sleep 1000; true";
    let race = start(&folder, &["--no-trace", "--cleanup", "echo x > cleaned", script]);
    let family = pids(folder.path(), 1);
    // Both have come when it looks for the first.
    send(race.id(), Signal::SIGSTOP);
    until("it is stopped", || (state(race.id()) == Some('T')).then_some(()));
    send(race.id(), Signal::SIGTERM);
    send(race.id(), Signal::SIGHUP);
    send(race.id(), Signal::SIGCONT);
    let code = race.wait_with_output().unwrap().status.code();
    assert!([Some(143), Some(129)].contains(&code), "{code:?}");
    family.into_iter().for_each(until_ended);
    assert!(folder.path().join("cleaned").exists());
}

#[test]
fn what_a_run_leaves_in_the_background_is_ended_before_the_next() {
    let raced = raced(&["--no-trace", "-w", "0", "-r", "2", "sleep 1000 & echo $! >> pids"]);
    let race = raced.record();
    assert!(race.findings.iter().any(|finding| finding.id == "left-behind"));
    let left = pids_of(&raced);
    assert_eq!(left.len(), 2);
    left.into_iter().for_each(until_ended);
}

#[test]
fn a_traced_run_that_never_ends_is_killed_too() {
    // Quick when timed, endless when traced: the third run and those after it.
    let script = "echo $$ >> pids; [ $(wc -l < pids) -lt 3 ] || sleep 1000";
    let raced = raced_until_told(3, &["-w", "0", "-r", "2", script], |race| race.code() == 0);
    let race = iotomy_record::store::load_race(raced.json()).unwrap();
    assert!(race.findings.iter().any(|finding| finding.id == "untraced"), "{:?}", race.findings);
    pids_of(&raced).into_iter().for_each(until_ended);
}

#[test]
fn an_interrupt_while_tracing_ends_everything() {
    let folder = tempfile::tempdir().unwrap();
    // A shell that waits for its child until that ends, whatever signal comes.
    let script = "trap : INT; echo $$ >> pids; [ $(wc -l < pids) -lt 3 ] || sleep 1000";
    let race = start(&folder, &["-w", "0", "-r", "2", script]);
    let family = pids(folder.path(), 3);
    send(race.id(), Signal::SIGINT);
    let output = race.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    family.into_iter().for_each(until_ended);
}

#[test]
fn children_that_were_there_before_the_race_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "sleep 1000 > /dev/null 2>&1 & echo $! > pids; exec {} race --no-trace -r 2 'true | true'",
        support::IOTOMY
    );
    let output = support::bare("sh", &["-c", &script]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let pid = pids(folder.path(), 1)[0];
    assert!(!matches!(support::state(pid), None | Some('Z' | 'X')));
    send(pid, Signal::SIGKILL);
}
