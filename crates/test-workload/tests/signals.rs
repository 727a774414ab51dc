//! Signals to a watching process, and its sudden death.
//!
//! A signal reaches any thread of a process that does not block it, and the usual test harness has
//! its own threads. Therefore this test uses no harness: it starts itself again as a process that
//! only watches, as iotomy does.

#![expect(clippy::unwrap_used, reason = "a test ends at what goes wrong")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use iotomy_observe::{OBSERVERS, Observer, Probe, Request, Target};
use iotomy_record::Exit;
use iotomy_test_requirements::Need;

const WATCHER: &str = "IOTOMY_TEST_WATCHER";

/// How `/proc/PID/stat` has the subject's name, which the kernel keeps 15 bytes of.
const SUBJECT: &str = "(iotomy-workload";

/// A test that takes the name of an observer.
type Test = fn(&str);

fn main() {
    if let Ok(observer) = std::env::var(WATCHER) {
        return watcher(&observer);
    }
    let tests: [(&str, Test); 4] = [
        ("a_killed_watcher_leaves_the_command_running_and_untraced", killed),
        ("a_signal_to_the_watcher_is_passed_on_and_the_report_made", passed_on),
        ("a_signal_ends_a_watch_that_waits_for_what_the_command_left", ends_waiting),
        ("a_watcher_that_ignores_its_children_s_signal_hears_of_them", child_signal_ignored),
    ];
    // The part of the harness' command line that test runners use.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        if !arguments.iter().any(|argument| argument == "--ignored") {
            tests.iter().for_each(|(test, _)| println!("{test}: test"));
        }
        return;
    }
    let chosen = arguments.iter().find(|argument| !argument.starts_with('-'));
    let is_chosen = |test: &str| chosen.is_none_or(|chosen| test.contains(chosen.as_str()));
    for observer in OBSERVERS {
        let name = observer.declaration().name;
        if let Probe::Unsupported { reason, .. } = observer.probe() {
            let need = if name == "bpf" { Need::Bpf } else { Need::Ptrace };
            iotomy_test_requirements::skip(need, &format!("{} tests: {reason}", tests.len()));
            continue;
        }
        for (test, run) in tests.iter().filter(|(test, _)| is_chosen(test)) {
            println!("test {test} ({name}) ...");
            run(name);
        }
    }
}

/// Watches the subject with the given arguments, then prints the result.
fn watcher(observer: &str) {
    let observer: &dyn Observer = iotomy_observe::observer(observer).unwrap();
    let program = env!("CARGO_BIN_EXE_iotomy-workload");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argv = std::iter::once(program.into()).chain(arguments.iter().map(Into::into)).collect();
    let command = iotomy_sys::launch::Command {
        program: program.into(),
        argv,
        ..iotomy_sys::launch::Command::default()
    };
    let request = Request { wait: true, ..Request::new(Target::Command(command)) };
    let seen = observer.watch(&request).unwrap();
    let getppid = seen.calls.iter().filter(|row| row.syscall == "getppid");
    let calls: u64 = getppid.map(|row| row.calls).sum();
    println!("{:?} {calls} {}", seen.exit, seen.still_running.len());
}

/// A running watcher, and a subject that has reported that it is ready.
struct Watch {
    watcher: Child,
    go: ChildStdin,
    said: BufReader<ChildStdout>,
    subject: u32,
}

impl Watch {
    fn start(mut command: Command, observer: &str, arguments: &[&str]) -> Self {
        let mut watcher = command
            .args(arguments)
            .env(WATCHER, observer)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let go = watcher.stdin.take().unwrap();
        let mut said = BufReader::new(watcher.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let subject = line.strip_prefix("ready ").unwrap().trim_end().parse().unwrap();
        Self { watcher, go, said, subject }
    }

    fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        rest
    }

    fn signal(&self, name: &str) {
        signal(name, self.watcher.id());
    }
}

/// Returns a command for this program with the default handling of SIGINT. Tests that run as a background job would
/// otherwise ignore it.
fn itself(signals: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").args(signals).arg(std::env::current_exe().unwrap());
    command
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Returns the line of `/proc/PID/status` that begins with `name`.
fn status(pid: u32, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
}

/// Returns whether this process has a child other than `except` that is a subject, alive or not
/// reaped.
fn has_subject(parent: u32, except: u32) -> bool {
    let is_one = |entry: std::io::Result<std::fs::DirEntry>| {
        let directory = entry.unwrap().path();
        let stat = std::fs::read_to_string(directory.join("stat")).ok()?;
        let (before, after) = stat.rsplit_once(") ")?;
        Some(
            before.ends_with(SUBJECT)
                && after.split(' ').nth(1)? == parent.to_string()
                && !directory.ends_with(except.to_string()),
        )
    };
    std::fs::read_dir("/proc").unwrap().any(|entry| is_one(entry) == Some(true))
}

fn killed(observer: &str) {
    let mut watch = Watch::start(itself(&[]), observer, &["on-demand", "23"]);
    watch.signal("KILL");
    watch.watcher.wait().unwrap();
    // The kernel detaches tracees while the tracer dies, and detaches dead tracees before they are
    // reaped.
    assert_eq!(status(watch.subject, "TracerPid:"), "0");
    let state = status(watch.subject, "State:");
    assert!(!state.starts_with(['t', 'T']), "{state}");
    watch.go.write_all(b"x").unwrap();
    assert_eq!(watch.rest(), "", "it ran to its end, which closed its output");
}

fn passed_on(observer: &str) {
    let mut watch = Watch::start(itself(&[]), observer, &["on-demand", "23"]);
    assert!(has_subject(watch.watcher.id(), 0), "the look finds a subject where there is one");
    watch.signal("TERM");
    assert_eq!(watch.rest(), format!("{:?} 0 0\n", Some(Exit::Signal(15))));
    assert!(watch.watcher.wait().unwrap().success());
}

fn ends_waiting(observer: &str) {
    let mut watch = Watch::start(itself(&[]), observer, &["outlive-ready"]);
    // Until the watcher has reaped the command, it forwards signals to the command.
    iotomy_test_requirements::wait::until("the watcher has reaped the command", || {
        !has_subject(watch.watcher.id(), watch.subject)
    });
    watch.signal("INT");
    let said = watch.rest();
    assert_eq!(said, format!("{:?} 0 1\n", Some(Exit::Code(0))));
    signal("KILL", watch.subject);
}

fn child_signal_ignored(observer: &str) {
    let ignoring = itself(&["--ignore-signal=CHLD"]);
    let mut watch = Watch::start(ignoring, observer, &["on-demand", "23"]);
    let ignored = u64::from_str_radix(&status(watch.subject, "SigIgn:"), 16).unwrap();
    assert_ne!(ignored & (1 << (17 - 1)), 0, "the command has what iotomy was given");
    watch.go.write_all(b"x").unwrap();
    assert_eq!(watch.rest(), format!("{:?} 46 0\n", Some(Exit::Code(0))));
}
