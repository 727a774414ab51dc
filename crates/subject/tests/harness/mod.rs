//! What the truth tests have in common: turns, skips, and sums over a record's rows.

#![allow(dead_code, reason = "no test file needs all of it")]
#![expect(clippy::unwrap_used, reason = "a test ends at what goes wrong")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

pub(crate) use iotomy_needs::{Need, skip};
use iotomy_observe::{OBSERVERS, Observation, Observer, Probe, Request, Target};
use iotomy_record::{Call, Exit};
use iotomy_sys::launch::Command;

static TURN: Mutex<()> = Mutex::new(());

/// Runs `test` with every observer that works here, and says which do not.
pub(crate) fn each_observer(test: impl Fn(&dyn Observer)) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(!OBSERVERS.is_empty());
    for observer in OBSERVERS {
        match observer.probe() {
            Probe::Ready => test(*observer),
            Probe::Unsupported { reason, .. } => {
                let need =
                    if observer.declaration().name == "bpf" { Need::Bpf } else { Need::Ptrace };
                skip(need, &reason);
            }
        }
    }
}

/// Watches the subject and looks at what every observer makes of it.
pub(crate) fn truth(arguments: &[&str], check: impl Fn(&Watched)) {
    each_observer(|observer| {
        let watched = watch(observer, &command(subject(), arguments));
        assert_eq!(watched.exit, Some(Exit::Code(0)), "{watched:?}");
        assert!(watched.still_running.is_empty());
        check(&watched);
    });
}

pub(crate) fn subject() -> &'static str {
    env!("CARGO_BIN_EXE_iotomy-subject")
}

/// cargo sets a path along which the loader would look for every library in vain.
const NO_LIBRARY_PATH: (&str, &str) = ("LD_LIBRARY_PATH", "");

/// A request to watch a program with everything on.
pub(crate) fn command(program: impl AsRef<Path>, arguments: &[&str]) -> Request {
    let program = program.as_ref().to_owned();
    let argv = std::iter::once(program.clone().into_os_string())
        .chain(arguments.iter().map(Into::into))
        .collect();
    let environment = vec![(NO_LIBRARY_PATH.0.into(), NO_LIBRARY_PATH.1.into())];
    let command = Command { program, argv, environment, ..Command::default() };
    Request {
        target: Target::Command(command),
        wait: false,
        duration: None,
        files: true,
        calls: None,
        rows: Request::ROWS,
    }
}

pub(crate) fn watch(observer: &dyn Observer, request: &Request) -> Watched {
    Watched(observer.watch(request).unwrap())
}

/// An observation with sums over its rows.
#[derive(Debug)]
pub(crate) struct Watched(pub(crate) Observation);

impl Deref for Watched {
    type Target = Observation;

    fn deref(&self) -> &Observation {
        &self.0
    }
}

impl Watched {
    fn rows<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a Call> + use<'a, 'n> {
        self.0.calls.iter().filter(move |row| row.syscall == name)
    }

    /// The only row of call `name`.
    pub(crate) fn row(&self, name: &str) -> &Call {
        let mut rows = self.rows(name);
        let row = rows.next().unwrap_or_else(|| panic!("no {name} in {:#?}", self.counts()));
        assert!(rows.next().is_none(), "more than one image called {name}");
        row
    }

    pub(crate) fn calls(&self, name: &str) -> u64 {
        self.rows(name).map(|row| row.calls).sum()
    }

    pub(crate) fn calls_of(&self, pid: u32, name: &str) -> u64 {
        self.rows(name).filter(|row| row.pid == pid).map(|row| row.calls).sum()
    }

    pub(crate) fn in_flight(&self, name: &str) -> u64 {
        self.rows(name).map(|row| row.in_flight).sum()
    }

    pub(crate) fn errors(&self, name: &str, error: &str) -> u64 {
        self.rows(name).filter_map(|row| row.error_kinds.get(error)).sum()
    }

    /// Calls and errors by name, as [`strace`] gives them.
    pub(crate) fn counts(&self) -> BTreeMap<String, (u64, u64)> {
        let mut counts = BTreeMap::new();
        for row in self.0.calls.iter().filter(|row| row.calls > 0) {
            let entry: &mut (u64, u64) = counts.entry(row.syscall.clone()).or_default();
            *entry = (entry.0 + row.calls, entry.1 + row.errors);
        }
        counts
    }
}

/// Calls and errors by name, as `strace -f -c` counts them; those of calls that return.
pub(crate) fn strace(program: &str, arguments: &[&str]) -> Option<BTreeMap<String, (u64, u64)>> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let report = tempfile::NamedTempFile::new().unwrap();
    let mut strace = std::process::Command::new("strace");
    strace.env(NO_LIBRARY_PATH.0, NO_LIBRARY_PATH.1);
    strace.args(["-f", "-c", "-o"]).arg(report.path()).arg(program).args(arguments);
    match strace.status() {
        Err(error) => {
            skip(Need::Programs, &format!("strace: {error}"));
            return None;
        }
        Ok(status) => assert!(status.success(), "strace: {status}"),
    }
    let mut counts = BTreeMap::new();
    for line in std::fs::read_to_string(report.path()).unwrap().lines() {
        // % time, seconds, usecs/call, calls, errors (blank for none), name.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (calls, errors, name) = match fields[..] {
            [_, _, _, calls, name] => (calls, "0", name),
            [_, _, _, calls, errors, name] => (calls, errors, name),
            _ => continue,
        };
        let (Ok(calls), Ok(errors)) = (calls.parse(), errors.parse()) else { continue };
        if !matches!(name, "total" | "exit" | "exit_group") {
            counts.insert(name.to_owned(), (calls, errors));
        }
    }
    assert!(!counts.is_empty());
    Some(counts)
}

/// Time that interrupts and a hypervisor have taken of all CPUs so far.
pub(crate) fn taken_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let all = stat.lines().next().unwrap().split_whitespace().skip(1);
    // user nice system idle iowait irq softirq steal, in hundredths of a second.
    let ticks: u64 = all.skip(5).take(3).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    ticks * 10_000_000
}

/// The user this process runs as.
pub(crate) fn user() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// The processes whose parent this one is, ended or not.
pub(crate) fn children() -> Vec<u32> {
    let wanted = format!("PPid:\t{}\n", std::process::id());
    let is_child = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|s| s.contains(&wanted))
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}

/// Ends a process that is nobody's child any more.
pub(crate) fn kill(pid: u32) {
    let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
}

/// Writes a script, while nobody forks: who has it open for writing, as a child has until it executes its
/// own program, keeps everybody from executing it.
pub(crate) fn write_program(path: &Path, text: &str) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The subject running by itself, until it is let go and waited for. It is the child of a shell: a
/// child of this process would be waited for by the watch.
pub(crate) struct Running {
    shell: Child,
    said: BufReader<ChildStdout>,
    pid: u32,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let running = Self::until_ready(arguments);
        running.wait_until_in_calls();
        running
    }

    /// The same for one that is in no call once it has said that it is ready.
    pub(crate) fn until_ready(arguments: &[&str]) -> Self {
        let mut shell = std::process::Command::new("/bin/sh")
            .args(["-c", "\"$0\" \"$@\"; echo \"status $?\"", subject()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(shell.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let pid = line.strip_prefix("ready ").unwrap().trim_end().parse().unwrap();
        Self { shell, said, pid }
    }

    /// Returns when one thread is in `read` and the other in `futex`.
    fn wait_until_in_calls(&self) {
        loop {
            let mut calls: Vec<String> = std::fs::read_dir(format!("/proc/{}/task", self.pid))
                .unwrap()
                .flatten()
                .filter_map(|task| std::fs::read_to_string(task.path().join("syscall")).ok())
                .filter_map(|line| line.split(' ').next().map(Into::into))
                .collect();
            calls.sort();
            if calls == ["0", "202"] {
                return;
            }
            std::thread::yield_now();
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn let_go(&mut self) {
        self.shell.stdin.take().unwrap().write_all(b"x").unwrap();
    }

    /// Lets it go once all its threads are traced, or, by an observer that leaves no trace of itself
    /// in `/proc`, once the watch is in the poll it waits in.
    pub(crate) fn let_go_once_watched(&mut self, observer: &str) {
        self.wait_until_watched(observer);
        self.let_go();
    }

    pub(crate) fn wait_until_watched(&self, observer: &str) {
        let is_watched = || if observer == "bpf" { a_thread_polls() } else { self.is_traced() };
        while !is_watched() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn is_traced(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        tasks.flatten().all(|task| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap();
            !status.contains("TracerPid:\t0\n")
        })
    }

    /// Its exit status.
    pub(crate) fn wait(mut self) -> i32 {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        self.shell.wait().unwrap();
        line.strip_prefix("status ").unwrap().trim_end().parse().unwrap()
    }
}

/// Whether a thread of this process waits in poll or ppoll, or in one that was disturbed and goes on as
/// restart_syscall (numbers of x86-64).
fn a_thread_polls() -> bool {
    std::fs::read_dir("/proc/self/task").unwrap().flatten().any(|task| {
        let call = std::fs::read_to_string(task.path().join("syscall")).unwrap_or_default();
        ["7 ", "271 ", "219 "].iter().any(|number| call.starts_with(number))
    })
}
