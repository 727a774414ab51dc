//! A verb in the background of a shell without job control, which has it ignore the keys of the terminal: it ends by
//! `kill -INT`, and what it runs begins as it did itself.

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::Signal;
use support::{bpf, iotomy, send, status, until, until_ended};

/// Bits of SIGINT and SIGQUIT in the sets of signals of `/proc/PID/status`.
const KEYS: u64 = 1 << 1 | 1 << 2;

/// A shell that runs iotomy in the background, says its process id, and then its status.
struct Script {
    shell: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Script {
    fn start(words: &[&str], before: &str) -> (Self, u32) {
        let command = iotomy(words);
        let mut shell = Command::new("sh");
        let script = format!("{before} exec 3<&0; \"$@\" <&3 & echo $!; wait $!; echo status $?");
        shell.args(["-c", &script, "sh"]);
        shell.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = shell.spawn().unwrap();
        let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
        let pid = lines.next().unwrap().unwrap().parse().unwrap();
        (Self { shell, lines }, pid)
    }

    /// The status that the shell says, which is all that it still says.
    fn status(mut self) -> String {
        let rest: Vec<String> = self.lines.by_ref().map(Result::unwrap).collect();
        self.shell.wait().unwrap();
        rest.last().unwrap().strip_prefix("status ").unwrap().to_owned()
    }
}

fn set_of(pid: u32, field: &str) -> Option<u64> {
    u64::from_str_radix(&status(pid, field)?, 16).ok()
}

/// Waits until iotomy heeds the keys: the shell's child ignores them before.
fn until_heeded(pid: u32) {
    until("it heeds the keys", || (set_of(pid, "SigCgt")? & KEYS == KEYS).then_some(()));
}

#[test]
fn every_verb_that_waits_ends_by_an_interrupt_that_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    for words in [
        &["copy", "-", copy.to_str().unwrap()][..],
        &["show", "-"],
        &["report", "-", "--list"],
        &["diff", "-", "x"],
        &["history", "import", "-"],
    ] {
        for (signal, number) in [(Signal::SIGINT, "130"), (Signal::SIGQUIT, "131")] {
            let (script, pid) = Script::start(words, "");
            until_heeded(pid);
            send(pid, signal);
            assert_eq!(script.status(), number, "{words:?}");
        }
    }
}

#[test]
fn what_is_ignored_as_by_nohup_ends_nothing() {
    let (mut script, pid) = Script::start(&["show", "-"], "trap '' HUP;");
    until_heeded(pid);
    send(pid, Signal::SIGHUP);
    drop(script.shell.stdin.take());
    // Of an empty record, not of the signal.
    assert_eq!(script.status(), "2");
}

#[test]
fn a_race_ends_by_an_interrupt_and_its_commands_ignore_what_it_was_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let command = format!(
        "grep SigIgn /proc/self/status > {0}; echo $$ >> {0}; sleep 1000; true",
        told.to_str().unwrap()
    );
    let (script, pid) = Script::start(&["race", "--no-trace", &command], "");
    let lines = until("the command has begun", || {
        let text = fs::read_to_string(&told).ok()?;
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        (lines.len() == 2 && text.ends_with('\n')).then_some(lines)
    });
    let ignored = lines[0].strip_prefix("SigIgn:").unwrap().trim();
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & KEYS, KEYS);
    send(pid, Signal::SIGINT);
    assert_eq!(script.status(), "130");
    until_ended(lines[1].parse().unwrap());
}

#[test]
fn a_program_in_d_ends_by_an_interrupt_and_its_shell_ignores_what_it_was_told_to() {
    if !bpf() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let system = format!("grep SigIgn /proc/self/status > {}", told.to_str().unwrap());
    let program = format!("BEGIN {{ system(\"{system}\"); }}");
    let (script, pid) = Script::start(&["d", "-w", "-n", &program], "");
    let line = until("the shell has said it", || {
        fs::read_to_string(&told).ok().filter(|text| text.ends_with('\n'))
    });
    let ignored = line.strip_prefix("SigIgn:").unwrap().trim();
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & KEYS, KEYS);
    send(pid, Signal::SIGINT);
    assert_eq!(script.status(), "0");
}

#[test]
fn a_program_that_the_lab_runs_ignores_what_iotomy_was_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let program = folder.path().join("wait-peers");
    let text = format!("#!/bin/sh\ngrep SigIgn /proc/self/status > {}\n", told.to_str().unwrap());
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let place = folder.path().to_str().unwrap();
    let axes = ["-L", "waiter=epoll,libevent", "-L", "descriptors=20", "-L", "active=1"];
    let words = [&["lab", "run", "--path", place, "wait"][..], &axes, &["--max-time=30"]].concat();
    let before = format!("PATH={place}:$PATH; export XDG_STATE_HOME={place};");
    let (script, _) = Script::start(&words, &before);
    script.status();
    let line = fs::read_to_string(&told).unwrap();
    let ignored = line.strip_prefix("SigIgn:").unwrap().trim();
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & KEYS, KEYS);
}
