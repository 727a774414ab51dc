//! A child that makes a known number of one cheap system call: observers try themselves out on it
//! and measure their own overhead with it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// A child that waits, then calls `getppid(2)` a given number of times and exits.
///
/// Dropping it without [`Caller::start`] makes it exit at once. Either way it must still be waited
/// for.
#[derive(Debug)]
pub struct Caller {
    pid: u32,
    barrier: OwnedFd,
}

impl Caller {
    /// Forks a child that will make `calls` calls.
    ///
    /// # Errors
    /// When the pipe or the child cannot be made.
    pub fn hold(calls: u32) -> io::Result<Self> {
        let (waiting, barrier) = io::pipe()?;
        // SAFETY: the child makes async-signal-safe calls only and ends in `_exit`.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => child(waiting.as_raw_fd(), barrier.as_raw_fd(), calls),
            pid => Ok(Self { pid: pid.unsigned_abs(), barrier: barrier.into() }),
        }
    }

    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the child begin.
    pub fn start(&self) {
        let go = 1u8;
        // SAFETY: `go` is one readable byte. A child that has died makes this fail, which its
        // status will tell.
        unsafe { libc::write(self.barrier.as_raw_fd(), (&raw const go).cast(), 1) };
    }

    /// Ends the child, in any state, and waits for it. Not for one that has been waited for: its id
    /// may be another's by then.
    pub fn end(self) {
        // SAFETY: plain integers.
        unsafe { libc::kill(self.pid.cast_signed(), libc::SIGKILL) };
        crate::ptrace::reap(self.pid);
    }
}

fn child(waiting: i32, other: i32, calls: u32) -> ! {
    // SAFETY: closes this process's copy of the parent's end, so that the parent's death is an
    // end of file; the owner object is never dropped on this side.
    unsafe { libc::close(other) };
    let mut go = 0u8;
    // SAFETY: `go` is room for one byte; the descriptor was inherited.
    if unsafe { libc::read(waiting, (&raw mut go).cast(), 1) } == 1 {
        make_calls(calls);
    }
    // SAFETY: ends this process at once, without the parent's exit handlers.
    unsafe { libc::_exit(0) }
}

/// Calls `getppid(2)` this many times.
pub fn make_calls(calls: u32) {
    for _ in 0..calls {
        // SAFETY: takes no arguments and cannot fail.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
}
