//! Processes beside those under test: what the kernel says of them, and waiting until it says it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::bare;

/// A program that runs beside the watch, ended with the test. It is started without a shell.
pub(crate) struct BackgroundProcess {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl BackgroundProcess {
    /// Starts it and waits until it says a line, which is returned with it.
    pub(crate) fn ready(words: &[&str]) -> (Self, String) {
        let mut command = bare(words[0], &words[1..]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = loop {
            match command.spawn() {
                // Written a moment ago, and a process that another test forked then has it open until its exec.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::yield_now();
                }
                spawned => break spawned.unwrap(),
            }
        };
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut bystander = Self { child, output };
        let line = bystander.line();
        (bystander, line)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Ends its standard input and waits for its status, as a shell has it.
    pub(crate) fn end(mut self) -> i32 {
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

/// As [`send`], to a process that may have ended: the end of another may have ended it.
pub(crate) fn send_if_there(pid: u32, signal: Signal) {
    match kill(Pid::from_raw(pid.cast_signed()), signal) {
        Err(Errno::ESRCH) => {}
        sent => sent.unwrap(),
    }
}

/// A line of `/proc/PID/status`; `None` once the process is gone.
pub(crate) fn status(pid: u32, field: &str) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/status")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().find(|line| line.starts_with(field))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The letter of a process's state; `None` once it is gone.
pub(crate) fn state(pid: u32) -> Option<char> {
    status(pid, "State")?.chars().next()
}

/// The processes whose parent is `pid`.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

pub(crate) use iotomy_test_requirements::wait::until_some as until;

/// As [`until`], of an answer that only `pid`, which the caller has not waited for yet, can give. Its end is the end of the
/// wait.
pub(crate) fn while_it_runs<T>(what: &str, pid: u32, mut answer: impl FnMut() -> Option<T>) -> T {
    until(what, || {
        let has_ended = matches!(state(pid), None | Some('Z' | 'X'));
        // What it has done before it ended is there by now.
        let answer = answer();
        assert!(answer.is_some() || !has_ended, "it has ended before {what}");
        answer
    })
}

/// Waits until a process is blocked in one of these calls, as `/proc/PID/syscall` has their numbers.
pub(crate) fn until_blocked_in(pid: u32, numbers: &[&str]) {
    while_it_runs("it is blocked in its call", pid, || {
        let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
        let is_there = numbers.contains(&call.split(' ').next()?);
        (is_there && state(pid) == Some('S')).then_some(())
    });
}

/// The numbers of the calls that sleep for a time.
pub(crate) const SLEEPS: [&str; 2] = ["35", "230"];

/// What `run` makes of `first` rounds, or of twice as many, and so on until it `has_enough`: how many samples
/// fall on a round, what gets done in a time, or whose time it is, is a matter of the machine.
#[track_caller]
pub(crate) fn doubled_until<T>(
    first: u32,
    has_enough: impl Fn(&T) -> bool,
    mut run: impl FnMut(u32) -> T,
) -> T {
    for doubling in 0..8 {
        let began = std::time::Instant::now();
        let found = run(first << doubling);
        if has_enough(&found) {
            return found;
        }
        eprintln!("{} rounds were not enough, in {:?}", first << doubling, began.elapsed());
    }
    panic!("{} rounds are not enough", first << 7)
}

/// Waits until a process is gone, reaped or not.
pub(crate) fn until_ended(pid: u32) {
    until("the process ends", || matches!(state(pid), None | Some('Z' | 'X')).then_some(()));
}
