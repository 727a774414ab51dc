//! Restores a terminal when this process was killed while it had the whole screen: a child that
//! sleeps in a read of a pipe whose other end only this process holds.
//!
//! A byte through the pipe means a normal end. An end of file without it means that this process is
//! gone, also by SIGKILL; then the guard restores the terminal's attributes and writes the
//! farewell. A kill by name that hits this process does not hit the guard, which has a name of its
//! own.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::own_name::OwnName;

/// A guard of a terminal. Dropping it means a normal end.
#[derive(Debug)]
pub struct ScreenGuard {
    pid: libc::pid_t,
    line: OwnedFd,
}

/// Its name in lists of processes: one that a kill of iotomy by its name does not hit.
const NAME: &std::ffi::CStr = c"tty-guard";

impl ScreenGuard {
    /// Guards `terminal` with its present settings; `farewell` is written to it if this process is
    /// killed. The guard has its own name when this returns.
    ///
    /// # Errors
    /// When it is not a terminal, or a pipe or a process cannot be made.
    pub fn new(terminal: BorrowedFd<'_>, farewell: &'static [u8]) -> io::Result<Self> {
        // SAFETY: `termios` is plain integers; the call below writes over it.
        let mut now: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: `now` is room for the attributes.
        if unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut now) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let (read, line) = io::pipe()?;
        let (mut readiness, ready) = io::pipe()?;
        let name = OwnName::new(NAME);
        // SAFETY: the child only makes async-signal-safe calls and ends in `_exit`; see `guard`.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => guard(name, ready.as_fd(), read.as_fd(), terminal, &now, farewell),
            pid => {
                let guard = Self { pid, line: line.into() };
                drop(ready);
                readiness.read_exact(&mut [0])?;
                Ok(guard)
            }
        }
    }
}

impl Drop for ScreenGuard {
    fn drop(&mut self) {
        let byte = [1u8];
        // SAFETY: `byte` is readable; a guard that is gone makes it an error, as SIGPIPE is ignored.
        unsafe { libc::write(self.line.as_raw_fd(), byte.as_ptr().cast(), 1) };
        let mut status = 0;
        // SAFETY: `status` is room for the one integer the call writes.
        while unsafe { libc::waitpid(self.pid, &raw mut status, 0) } < 0
            && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
        {}
    }
}

/// The guard's side of the fork. Only async-signal-safe calls, no allocation.
fn guard(
    name: OwnName,
    ready: BorrowedFd<'_>,
    line: BorrowedFd<'_>,
    terminal: BorrowedFd<'_>,
    as_it_was: &libc::termios,
    farewell: &[u8],
) -> ! {
    // SAFETY: `sigset_t` is plain integers; the full set is then written over it.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `all` is room for a set.
    unsafe { libc::sigfillset(&raw mut all) };
    // With SIGTTOU held back, a terminal that is another group's by now can be set all the same.
    // SAFETY: `all` is an initialised set.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut()) };
    name.take();
    let byte = [1u8];
    // SAFETY: `byte` is readable.
    unsafe { libc::write(ready.as_raw_fd(), byte.as_ptr().cast(), 1) };
    // Other inherited descriptors must not be kept open by this process; no owner is ever dropped
    // on this side. Both descriptors were made after the standard ones.
    // SAFETY: takes plain integers.
    unsafe { libc::dup2(line.as_raw_fd(), 0) };
    // SAFETY: as above.
    unsafe { libc::dup2(terminal.as_raw_fd(), 1) };
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_close_range, 2, u32::MAX, 0) };
    let mut byte = 0u8;
    // SAFETY: `byte` is room for one byte.
    let heard = unsafe { libc::read(0, (&raw mut byte).cast(), 1) };
    if heard == 0 {
        // SAFETY: the attributes are those the kernel gave.
        unsafe { libc::tcsetattr(1, libc::TCSANOW, as_it_was) };
        // SAFETY: the slice's pointer and length describe readable memory.
        unsafe { libc::write(1, farewell.as_ptr().cast(), farewell.len()) };
    }
    // SAFETY: takes a plain integer and does not return.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_terminal_is_not_guarded() {
        let null = std::fs::File::open("/dev/null").unwrap();
        let refused = ScreenGuard::new(null.as_fd(), b"").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOTTY));
    }
}
