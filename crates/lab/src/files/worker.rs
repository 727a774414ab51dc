//! A process that makes the rounds, and the communication with it.
//!
//! Each case starts a new process, so that its first rounds are those of a program just started.
//! The process ends with this one: its standard input ends, and the kernel kills it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use iotomy_host::Skip;
use iotomy_record::Case;
use iotomy_sys::errno::message;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::retry_on_intr;
use rustix::time::Timespec;

use super::backends::Backend;
use crate::harness::patience::Patience;

/// A backend's program, in memory, for as long as it may be started.
#[derive(Debug)]
pub(super) struct Program(OwnedFd);

/// The parameters of a worker; see `worker/worker.c`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkerPlan {
    /// Characters per name.
    pub(super) name: u64,
    /// Threads.
    pub(super) threads: u64,
    /// Files in progress at once.
    pub(super) depth: u64,
    /// `none`, `fsync` or `fdatasync`.
    pub(super) sync: String,
    /// `normal` or `realtime`.
    pub(super) sched: String,
}

/// A running worker. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    patience: Patience,
    /// From the call that started it until it was ready.
    pub(super) start: Duration,
}

impl Program {
    pub(super) fn for_backend(way: &Backend) -> Result<Self, Skip> {
        let program = way.program().map_err(Skip)?;
        // Kernels since 6.3 require a flag for executable memory; earlier kernels do not know it.
        let make = |more| memfd_create("iotomy-files", MemfdFlags::CLOEXEC | more);
        let memory = make(MemfdFlags::EXEC).or_else(|_| make(MemfdFlags::empty()));
        let memory = memory.map_err(|e| Skip::refused("memfd_create", e))?;
        let mut file = File::from(memory);
        file.write_all(program).map_err(|e| Skip::refused("write", e))?;
        Ok(Self(file.into()))
    }

    /// Returns a path by which another process of this user can execute the program.
    pub(super) fn path(&self) -> PathBuf {
        path_of(self.0.as_raw_fd())
    }
}

/// Returns a path by which another process of this user can open a descriptor of this process.
pub(super) fn path_of(fd: i32) -> PathBuf {
    format!("/proc/{}/fd/{fd}", std::process::id()).into()
}

impl WorkerPlan {
    /// The command-line arguments of the program.
    pub(super) fn arguments(&self) -> [OsString; 5] {
        let Self { name, threads, depth, sync, sched } = self;
        [name.to_string(), threads.to_string(), depth.to_string(), sync.clone(), sched.clone()]
            .map(OsString::from)
    }
}

impl Worker {
    /// Starts a worker in a directory.
    pub(super) fn start(
        program: &Program,
        folder: BorrowedFd<'_>,
        orders: &WorkerPlan,
        patience: Patience,
    ) -> Result<Self, Skip> {
        let began = Instant::now();
        let mut command = Command::new(program.path());
        command.args(orders.arguments()).current_dir(path_of(folder.as_raw_fd())).env_clear();
        // The worker has its own process group: Ctrl-C is meant for iotomy, which ends the worker.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            command.spawn().map_err(|e| Skip::refused("execve of a program in memory", e))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.expect("both are pipes");
        let output = BufReader::new(output);
        let start = Duration::ZERO;
        let mut worker = Self { child, input: Some(input), output, patience, start };
        worker.answer()?;
        worker.start = began.elapsed();
        Ok(worker)
    }

    /// Sends a command and returns the numbers of the answer.
    pub(super) fn ask(&mut self, what: &str) -> Result<Vec<u64>, Skip> {
        let line = format!("{what}\n");
        let gone = |_| Skip("the process that makes the calls has ended".to_owned());
        if let Some(input) = &mut self.input {
            input.write_all(line.as_bytes()).map_err(gone)?;
        }
        let answer = self.answer()?;
        let numbers = answer.split_whitespace().map(str::parse);
        numbers
            .collect::<Result<_, _>>()
            .map_err(|_| Skip(format!("{what} was answered by {answer:?}")))
    }

    /// Sends a command whose answer is its duration: wall time and CPU time.
    pub(super) fn time(&mut self, what: &str) -> Result<(f64, f64), Skip> {
        match self.ask(what)?[..] {
            [wall, cpu] => Ok((wall as f64, cpu as f64)),
            _ => Err(Skip(format!("the answer to {what} does not have two times"))),
        }
    }

    /// Waits until the time of the run is up for an answer, which is a line written at once.
    fn wait(&self) -> Result<(), Skip> {
        // Creating a million files may take any time if the run has no end.
        let Some(end) = self.patience.end() else { return Ok(()) };
        let mut waits = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        let ready = retry_on_intr(|| {
            let left = end.saturating_duration_since(Instant::now());
            poll(&mut waits, Timespec::try_from(left).ok().as_ref())
        });
        match ready.map_err(|e| Skip::refused("poll", e))? {
            0 => Err(Skip(Case::NO_TIME.to_owned())),
            _ => Ok(()),
        }
    }

    fn answer(&mut self) -> Result<String, Skip> {
        self.wait()?;
        let mut line = String::new();
        let read = self.output.read_line(&mut line).map_err(|e| Skip::refused("read", e))?;
        if read == 0 {
            return Err(Skip("the process that makes the calls has ended".to_owned()));
        }
        match line.trim_end().strip_prefix("error ") {
            Some(error) => Err(Skip(refusal(error))),
            None => Ok(line.trim_end().to_owned()),
        }
    }
}

/// Formats an answer such as `28 open O_CREAT abc` as an error message.
fn refusal(answer: &str) -> String {
    let (number, what) = answer.split_once(' ').unwrap_or(("0", answer));
    let number: i32 = number.parse().unwrap_or(0);
    let advice = match number {
        libc_errno::ENOSPC => "; the file system has no free space or no free inodes",
        libc_errno::EROFS => "; name a directory you can write to with --path",
        _ => "",
    };
    let error = std::io::Error::from_raw_os_error(number);
    format!("{what}: {}{advice}", message(&error))
}

/// Error numbers that the worker may answer with.
mod libc_errno {
    pub(super) const ENOSPC: i32 = rustix::io::Errno::NOSPC.raw_os_error();
    pub(super) const EROFS: i32 = rustix::io::Errno::ROFS.raw_os_error();
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The worker ends when its input ends; if it hangs in a call, it is killed.
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_was_refused_with_is_said_in_words() {
        assert_eq!(
            refusal("28 open O_CREAT _f0000001"),
            "open O_CREAT _f0000001: ENOSPC, no space left on device; the file system has no free \
             space or no free inodes"
        );
        assert_eq!(refusal("13 unlink a"), "unlink a: EACCES, permission denied");
    }
}
