//! Starting a command held: the child exists, with its identity, and waits at a barrier in front of
//! its `execve` until an observer has been attached to it.
//!
//! The one invariant: however this process ends, the child never waits for ever. The barrier is a
//! pipe, so the death of the parent is an end of file, upon which the child exits.

mod child;
mod image;
mod program;

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;

use crate::lossless::path_text;
use crate::seccomp::Filter;

pub(crate) use child::become_program;
use child::{STAGE_CREDENTIALS, STAGE_FILTER, STAGE_GROUP, STAGE_STREAMS};
pub(crate) use image::Image;
pub use program::{SYSTEM_PATH, find_program, helper};

/// The user a command runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// A standard stream of a command; `None` is a closed one.
pub type Stream = Option<Arc<OwnedFd>>;

/// The standard streams of a command.
#[derive(Debug, Clone)]
pub struct Streams {
    /// Standard input.
    pub input: Stream,
    /// Standard output.
    pub output: Stream,
    /// Standard error.
    pub error: Stream,
}

/// The settings of a command's process that differ from this process.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Its standard streams, or `None` for this process's.
    pub streams: Option<Streams>,
    /// The process group it joins, or `None` to stay in this process's.
    pub group: Option<u32>,
    /// The calls it is to do without.
    pub filter: Option<Arc<Filter>>,
}

/// A command to start.
#[derive(Debug, Clone, Default)]
pub struct Command {
    /// The file to execute; see [`find_program`].
    pub program: PathBuf,
    /// Its arguments, `argv[0]` first.
    pub argv: Vec<OsString>,
    /// Variables to set on top of the inherited environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether nothing of this process's environment is inherited.
    pub clears_environment: bool,
    /// The user to become before executing, or `None` to stay.
    pub credentials: Option<Credentials>,
    /// The other settings of its process.
    pub setup: Setup,
}

impl Command {
    /// The error that a child's report stands for.
    pub(crate) fn failure(&self, stage: i32, errno: i32) -> LaunchError {
        let source = io::Error::from_raw_os_error(errno);
        let setup = |operation| LaunchError::Fork { operation, source: again(&source) };
        match stage {
            STAGE_CREDENTIALS => LaunchError::Credentials {
                uid: self.credentials.as_ref().map(|who| who.uid).unwrap_or_default(),
                source,
            },
            STAGE_GROUP => setup("give the command a process group"),
            STAGE_STREAMS => setup("give the command its standard streams"),
            STAGE_FILTER => setup("set a seccomp filter"),
            _ => LaunchError::Exec { program: self.program.clone(), source },
        }
    }
}

fn again(error: &io::Error) -> io::Error {
    io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(0))
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// An argument, a path or a variable holds a NUL byte, which no C string can.
    #[error("{} holds a NUL byte", path_text(.0))]
    Nul(OsString),
    /// The child could not be made.
    #[error("cannot {operation}: {source}")]
    Fork {
        /// The call that failed.
        operation: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The child could not switch to the requested user.
    #[error("cannot become user {uid}: {source}")]
    Credentials {
        /// The requested user id.
        uid: u32,
        /// The kernel's error.
        source: io::Error,
    },
    /// The program could not be executed.
    #[error("cannot execute {}: {source}{}", path_text(program), exec_hint(source))]
    Exec {
        /// The file that was to be executed.
        program: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

/// A program that was found and then was not there lacks its interpreter.
fn exec_hint(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::ENOENT) => {
            "; it exists, but its interpreter does not: check its first line, or run `file` on it"
        }
        Some(libc::ENOEXEC) => "; it is for another machine, or damaged: run `file` on it",
        _ => "",
    }
}

/// A child held at its barrier. Dropping it without [`HeldChild::release`] lets the child leave.
#[derive(Debug)]
pub struct HeldChild {
    pid: u32,
    command: Command,
    barrier: OwnedFd,
    failure: std::fs::File,
}

impl HeldChild {
    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the child execute its program; returns when it has, or could not.
    ///
    /// # Errors
    /// The error that kept the child from executing the program. The child has then exited with
    /// status 127 and must still be waited for.
    pub fn release(self) -> Result<u32, LaunchError> {
        self.start_command()?;
        self.outcome()
    }

    /// Lets the child execute its program without waiting for that: for callers that must meanwhile
    /// handle the child's stops, as a tracer must.
    ///
    /// # Errors
    /// When the child cannot be notified.
    pub fn start_command(&self) -> Result<(), LaunchError> {
        let go = [1u8];
        // SAFETY: `go` is one readable byte and the descriptor is owned by `self`.
        let sent = unsafe { libc::write(self.barrier.as_raw_fd(), go.as_ptr().cast(), 1) };
        if sent < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EPIPE) {
            let source = io::Error::last_os_error();
            return Err(LaunchError::Fork { operation: "release the command", source });
        }
        Ok(())
    }

    /// Waits until the child has executed its program or has exited, and returns which. A child
    /// that was not released exits without a report.
    ///
    /// # Errors
    /// As [`HeldChild::release`].
    pub fn outcome(self) -> Result<u32, LaunchError> {
        let Self { pid, command, barrier, mut failure } = self;
        drop(barrier);
        let mut report = Vec::new();
        failure.read_to_end(&mut report).map_err(|source| LaunchError::Fork {
            operation: "receive the state of the command",
            source,
        })?;
        let word = |at: usize| {
            let bytes = report.get(at..at + 4)?.try_into().ok()?;
            Some(i32::from_ne_bytes(bytes))
        };
        match (word(0), word(4)) {
            (None, _) | (_, None) => Ok(pid),
            (Some(stage), Some(errno)) => Err(command.failure(stage, errno)),
        }
    }
}

/// Forks a child that becomes `command` when released. `mask` is the signal mask it shall have.
///
/// # Errors
/// When a string holds a NUL byte, or a pipe or the child cannot be made.
pub fn hold(command: &Command, mask: &libc::sigset_t) -> Result<HeldChild, LaunchError> {
    let image = Image::new(command)?;
    let (barrier_read, barrier) = pipe()?;
    let (failure, failure_write) = pipe()?;
    // SAFETY: the child only makes async-signal-safe calls on memory prepared above, and ends in
    // `execve` or `_exit`; see `child`.
    match unsafe { libc::fork() } {
        -1 => Err(LaunchError::Fork { operation: "fork", source: io::Error::last_os_error() }),
        0 => {
            let ends = [barrier_read.as_raw_fd(), failure_write.as_raw_fd(), barrier.as_raw_fd()];
            child(command, &image, mask, ends)
        }
        pid => Ok(HeldChild {
            pid: pid.unsigned_abs(),
            command: command.clone(),
            barrier,
            failure: std::fs::File::from(failure),
        }),
    }
}

/// Becomes `command`: this process goes on as its program, which inherits what this process did. Returns
/// the error if that fails.
pub fn become_command(command: &Command) -> LaunchError {
    let image = match Image::new(command) {
        Ok(image) => image,
        Err(error) => return error,
    };
    // SAFETY: a zeroed set is a valid value of the type.
    let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: a null new set only reads; `mask` outlives the call.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, std::ptr::null(), &raw mut mask) };
    let (stage, errno) = child::become_program(command, &image, &mask, &mut || {});
    command.failure(stage, errno)
}

fn pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: `ends` is room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        let source = io::Error::last_os_error();
        return Err(LaunchError::Fork { operation: "make a pipe", source });
    }
    // SAFETY: the kernel just made the descriptor and nobody else owns it.
    let read = unsafe { OwnedFd::from_raw_fd(ends[0]) };
    // SAFETY: as above.
    let write = unsafe { OwnedFd::from_raw_fd(ends[1]) };
    Ok((read, write))
}

/// The child's side of the fork. Only async-signal-safe calls, no allocation.
fn child(
    command: &Command,
    image: &Image,
    mask: &libc::sigset_t,
    [barrier, failure, other]: [RawFd; 3],
) -> ! {
    // SAFETY: closes this process's copy of the parent's end, so that the parent's death is an
    // end of file; the owner object is never dropped on this side.
    unsafe { libc::close(other) };
    let report = become_program(command, image, mask, &mut || wait_at(barrier));
    give_up(failure, report);
}

/// Waits until the parent releases it; exits when the parent is gone.
fn wait_at(barrier: RawFd) {
    let mut go = 0u8;
    loop {
        // SAFETY: `go` is room for one byte; the descriptor was inherited.
        let got = unsafe { libc::read(barrier, (&raw mut go).cast(), 1) };
        if got == 1 {
            return;
        }
        if got == 0 || errno() != libc::EINTR {
            // SAFETY: ends this process at once, without the parent's exit handlers.
            unsafe { libc::_exit(127) };
        }
    }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn give_up(failure: RawFd, (stage, errno): (i32, i32)) -> ! {
    let report = [stage, errno];
    // SAFETY: `report` is eight readable bytes; a pipe takes them in one piece.
    unsafe { libc::write(failure, report.as_ptr().cast(), size_of_val(&report)) };
    // SAFETY: ends this process at once, without the parent's exit handlers.
    unsafe { libc::_exit(127) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_signals() -> libc::sigset_t {
        // SAFETY: `sigset_t` is plain integers; the empty set is then written over it.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is valid and writable.
        unsafe { libc::sigemptyset(&raw mut set) };
        set
    }

    fn status_of(pid: u32) -> i32 {
        let mut status = 0;
        // SAFETY: waits for a child of this test; `status` is writable.
        unsafe { libc::waitpid(pid.cast_signed(), &raw mut status, 0) };
        libc::WEXITSTATUS(status)
    }

    fn command(program: &str, argv: &[&str]) -> Command {
        Command {
            program: program.into(),
            argv: argv.iter().map(Into::into).collect(),
            ..Command::default()
        }
    }

    #[test]
    fn a_released_child_becomes_the_program() {
        let held = hold(&command("/bin/sh", &["sh", "-c", "exit 23"]), &no_signals()).unwrap();
        assert_eq!(status_of(held.release().unwrap()), 23);
    }

    #[test]
    fn a_child_that_is_never_released_leaves() {
        let held = hold(&command("/bin/sh", &["sh"]), &no_signals()).unwrap();
        let pid = held.pid();
        drop(held);
        assert_eq!(status_of(pid), 127);
    }

    #[test]
    fn a_program_that_cannot_be_executed_is_reported_with_its_errno() {
        let held = hold(&command("/etc/passwd", &["passwd"]), &no_signals()).unwrap();
        let pid = held.pid();
        let error = held.release().unwrap_err();
        assert!(matches!(&error, LaunchError::Exec { source, .. }
            if source.raw_os_error() == Some(libc::EACCES)));
        assert_eq!(status_of(pid), 127);
    }

    #[test]
    fn a_string_with_a_nul_byte_is_refused_before_the_fork() {
        let error = hold(&command("/bin/sh", &["s\0h"]), &no_signals()).unwrap_err();
        assert!(matches!(error, LaunchError::Nul(_)));
    }
}
