//! Shared parts of the truth tests: skips, and sums over a record's rows.

#![allow(dead_code, reason = "no test file needs all of it")]
#![expect(clippy::unwrap_used, reason = "a test ends at what goes wrong")]

pub(crate) mod rings;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use iotomy_observe::{OBSERVERS, Observer, Probe, Request, Target};
use iotomy_record::{Call, Exit, Trace};
use iotomy_sys::launch::Command;
pub(crate) use iotomy_test_requirements::{Need, skip};

/// Runs `test` with every observer that works here, and reports a skip for the others.
pub(crate) fn each_observer(test: impl Fn(&dyn Observer)) {
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

/// Watches the subject with every observer and checks each result.
pub(crate) fn truth(arguments: &[&str], check: impl Fn(&Watched)) {
    each_observer(|observer| {
        let watched = watch(observer, &command(subject(), arguments));
        assert_eq!(watched.exit, Some(Exit::Code(0)), "{watched:?}");
        assert!(watched.still_running.is_empty());
        check(&watched);
    });
}

pub(crate) fn subject() -> &'static str {
    env!("CARGO_BIN_EXE_iotomy-workload")
}

/// cargo sets a path in which the loader would search for every library without success.
const NO_LIBRARY_PATH: (&str, &str) = ("LD_LIBRARY_PATH", "");

/// Returns a request to watch a program with all features enabled.
pub(crate) fn command(program: impl AsRef<Path>, arguments: &[&str]) -> Request {
    let program = program.as_ref().to_owned();
    let argv = std::iter::once(program.clone().into_os_string())
        .chain(arguments.iter().map(Into::into))
        .collect();
    let environment = vec![(NO_LIBRARY_PATH.0.into(), NO_LIBRARY_PATH.1.into())];
    let command = Command { program, argv, environment, ..Command::default() };
    Request { files: true, ..Request::new(Target::Command(command)) }
}

pub(crate) fn watch(observer: &dyn Observer, request: &Request) -> Watched {
    Watched(observer.watch(request).unwrap())
}

/// Watches for longer and longer, until a watch tells what it should: how soon it has begun is a matter of the machine.
pub(crate) fn watch_for_a_while(
    observer: &dyn Observer,
    request: &Request,
    tells: impl Fn(&Watched) -> bool,
) -> Watched {
    let mut told = Vec::new();
    for ms in [50, 200, 800, 3_200, 12_800] {
        let duration = Some(std::time::Duration::from_millis(ms));
        let watched = watch(observer, &Request { duration, ..request.clone() });
        if tells(&watched) {
            return watched;
        }
        told.push(watched);
    }
    panic!("{told:#?}");
}

/// Watches a subject that runs already, and does something once it is watched.
pub(crate) fn watch_running(
    observer: &dyn Observer,
    request: &Request,
    running: &mut Running,
    then: impl FnOnce(&mut Running),
) -> Watched {
    let (say, said) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let watched = scope.spawn(move || {
            say.send(rustix::thread::gettid()).unwrap();
            watch(observer, request)
        });
        let watcher = said.recv().unwrap().as_raw_nonzero().get();
        let name = observer.declaration().name;
        // An observer that is not visible in `/proc` watches once its thread is blocked in its poll.
        let is_watched = || if name == "bpf" { polls(watcher) } else { running.is_traced() };
        while !is_watched() && !watched.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        then(running);
        watched.join().unwrap()
    })
}

/// An observation with sums over its rows.
#[derive(Debug)]
pub(crate) struct Watched(pub(crate) Trace);

impl Deref for Watched {
    type Target = Trace;

    fn deref(&self) -> &Trace {
        &self.0
    }
}

impl Watched {
    fn rows<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a Call> + use<'a, 'n> {
        self.0.calls.iter().filter(move |row| row.syscall == name)
    }

    /// Returns the only row of call `name`.
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

    /// Returns calls and errors by name, in the form of [`strace`].
    pub(crate) fn counts(&self) -> BTreeMap<String, (u64, u64)> {
        let mut counts = BTreeMap::new();
        for row in self.0.calls.iter().filter(|row| row.calls > 0) {
            let entry: &mut (u64, u64) = counts.entry(row.syscall.clone()).or_default();
            *entry = (entry.0 + row.calls, entry.1 + row.errors);
        }
        counts
    }
}

/// Returns calls and errors by name, as `strace -f -c` counts them; only calls that return.
pub(crate) fn strace(program: &str, arguments: &[&str]) -> Option<BTreeMap<String, (u64, u64)>> {
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
        // The columns: % time, seconds, usecs/call, calls, errors (blank for none), name.
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

/// Returns the time that interrupts and a hypervisor have taken from all CPUs so far.
pub(crate) fn taken_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let all = stat.lines().next().unwrap().split_whitespace().skip(1);
    // The columns: user nice system idle iowait irq softirq steal, in hundredths of a second.
    let ticks: u64 = all.skip(5).take(3).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    ticks * 10_000_000
}

/// Returns the user that this process runs as.
pub(crate) fn user() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Returns the child processes of this process, ended or not.
pub(crate) fn children() -> Vec<u32> {
    let wanted = format!("PPid:\t{}\n", std::process::id());
    let is_child = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|s| s.contains(&wanted))
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}

/// Kills a process whose parent has ended.
pub(crate) fn kill(pid: u32) {
    let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
}

/// Writes a script while no test forks. A child of a fork has the script open for writing until it executes its own
/// program, and no process can execute a file that is open for writing.
pub(crate) fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The running subject, until it is released and waited for. It is the child of a shell, because
/// the watch would wait for a child of this process.
pub(crate) struct Running {
    shell: Child,
    said: BufReader<ChildStdout>,
    pid: u32,
    /// How often each of its threads had left its CPU by itself before it was watched.
    switches: BTreeMap<u32, u64>,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut running = Self::until_ready(arguments);
        running.wait_until_in_calls();
        running.switches = running.switches_now();
        running
    }

    /// Starts the subject and returns when it prints "ready"; it need not be in a call.
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
        let mut running = Self { shell, said, pid, switches: BTreeMap::new() };
        running.switches = running.switches_now();
        running
    }

    /// Waits until one thread is in `read` and the other in `futex`.
    fn wait_until_in_calls(&self) {
        iotomy_test_requirements::wait::until("its threads are blocked", || {
            let mut calls: Vec<String> = std::fs::read_dir(format!("/proc/{}/task", self.pid))
                .unwrap()
                .flatten()
                .filter_map(|task| std::fs::read_to_string(task.path().join("syscall")).ok())
                .filter_map(|line| line.split(' ').next().map(Into::into))
                .collect();
            calls.sort();
            calls == ["0", "202"]
        });
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn let_go(&mut self) {
        self.shell.stdin.take().unwrap().write_all(b"x").unwrap();
    }

    /// Whether the tracer has stopped each thread and resumed it. A thread that is seized and not yet interrupted makes
    /// calls that are not watched. A stop is a voluntary switch; the count is read first, because a thread that has
    /// stopped and is in no stop has been resumed.
    fn is_traced(&self) -> bool {
        let has_left = |tid: &u32| {
            self.switches.get(tid).is_none_or(|before| switches(self.pid, *tid) > *before)
        };
        let is_stopped = |tid: &u32| status_of(self.pid, *tid, "State").starts_with('t');
        let is_seized = |tid: &u32| status_of(self.pid, *tid, "TracerPid") != "0";
        let mut threads = self.switches_now().into_keys();
        threads.all(|tid| is_seized(&tid) && has_left(&tid) && !is_stopped(&tid))
    }

    fn switches_now(&self) -> BTreeMap<u32, u64> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid)).unwrap().flatten();
        let tids = tasks.map(|task| task.file_name().to_str().unwrap().parse().unwrap());
        tids.map(|tid| (tid, switches(self.pid, tid))).collect()
    }

    /// Waits for the subject and returns its exit status.
    pub(crate) fn wait(mut self) -> i32 {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        self.shell.wait().unwrap();
        line.strip_prefix("status ").unwrap().trim_end().parse().unwrap()
    }
}

/// A line of a thread's status.
fn status_of(pid: u32, tid: u32, key: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).unwrap();
    let value = |line: &str| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim().to_owned());
    status.lines().find_map(value).unwrap()
}

/// How often a thread left its CPU by itself.
fn switches(pid: u32, tid: u32) -> u64 {
    status_of(pid, tid, "voluntary_ctxt_switches").parse().unwrap()
}

/// Returns whether a thread of this process is in poll or ppoll, or in a restart_syscall that continues an interrupted
/// one (x86-64 numbers).
fn polls(thread: i32) -> bool {
    let call =
        std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).unwrap_or_default();
    ["7 ", "271 ", "219 "].iter().any(|number| call.starts_with(number))
}
