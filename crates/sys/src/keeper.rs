//! The leader of a process group, who outlives this process just long enough to end the group:
//! however this process ends, also by SIGKILL, nothing of the group is left.
//!
//! It sleeps in a read of a pipe whose other end only this process holds, so that its end is an end
//! of file; until then it costs nothing.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::own_name::OwnName;

/// Its name in lists of processes: one that a kill of iotomy by its name does not hit.
const NAME: &std::ffi::CStr = c"group-keeper";

/// A process group and its leader. Dropping it ends the group.
#[derive(Debug)]
pub struct Keeper {
    pid: libc::pid_t,
    _line: OwnedFd,
}

impl Keeper {
    /// Creates a group that consists of its leader.
    ///
    /// # Errors
    /// When a pipe or a process cannot be made.
    pub fn new() -> io::Result<Self> {
        let (read, line) = io::pipe()?;
        let name = OwnName::new(NAME);
        // SAFETY: the child only makes async-signal-safe calls and ends in `_exit`; see `lead`.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => lead(name, read.as_raw_fd()),
            pid => {
                // The child does the same: after the first of both calls, the group exists.
                // SAFETY: takes plain integers.
                unsafe { libc::setpgid(pid, pid) };
                Ok(Self { pid, _line: line.into() })
            }
        }
    }

    /// The group's id, which is its leader's.
    pub fn group(&self) -> u32 {
        self.pid.unsigned_abs()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // SAFETY: takes plain integers; the leader has not been waited for, so the group is ours.
        unsafe { libc::kill(-self.pid, libc::SIGKILL) };
        let mut status = 0;
        // SAFETY: `status` is room for the one integer the call writes.
        while unsafe { libc::waitpid(self.pid, &raw mut status, 0) } < 0
            && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
        {}
    }
}

/// The leader's side of the fork. Only async-signal-safe calls, no allocation.
fn lead(name: OwnName, line: RawFd) -> ! {
    name.take();
    // SAFETY: takes plain integers.
    unsafe { libc::setpgid(0, 0) };
    // SAFETY: `sigset_t` is plain integers; the full set is then written over it.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `all` is room for a set.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: `all` is an initialised set.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut()) };
    // Other inherited descriptors must not be kept open by this process; no owner is ever dropped
    // on this side.
    // SAFETY: takes plain integers.
    unsafe { libc::dup2(line, 0) };
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0) };
    let mut byte = 0u8;
    loop {
        // SAFETY: `byte` is room for one byte.
        if unsafe { libc::read(0, (&raw mut byte).cast(), 1) } == 0 {
            break;
        }
    }
    // SAFETY: takes plain integers; 0 is the own group.
    unsafe { libc::kill(0, libc::SIGKILL) };
    // SAFETY: takes a plain integer and does not return.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_ends_with_its_keeper() {
        let keeper = Keeper::new().unwrap();
        let group = keeper.group().cast_signed();
        // SAFETY: takes plain integers; signal 0 only asks.
        assert_eq!(unsafe { libc::kill(-group, 0) }, 0);
        drop(keeper);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::kill(-group, 0) }, -1);
    }
}
