//! A crew: processes made by fork that do work of this very program, each with a descriptor table of its
//! own, and are spoken to over a socket.
//!
//! The invariants: a member ends with the thread that made it, whatever ends that, or when the crew is
//! dropped; of the parent's descriptors it keeps its end of the socket and no other. It may use the
//! allocator, which the C library makes whole behind a fork, but takes no lock that another thread of
//! the parent could have held.

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::herd::{end_all, end_with, keep_only, leave};

/// Processes at work. Dropping it ends them and waits for each.
#[derive(Debug)]
pub struct Crew {
    pids: Vec<libc::pid_t>,
    lines: Vec<UnixStream>,
}

impl Crew {
    /// Forks so many members; each does `work`, which is given its number and its end of the socket, and
    /// ends when that returns.
    ///
    /// # Errors
    /// As fork(2) and socketpair(2); those that were made are ended.
    pub fn start(members: usize, work: &dyn Fn(usize, UnixStream)) -> io::Result<Self> {
        crate::startup::hear_of_children();
        let mut crew = Self { pids: Vec::new(), lines: Vec::new() };
        // SAFETY: takes nothing.
        let parent = unsafe { libc::getpid() };
        for at in 0..members {
            let (ours, theirs) = UnixStream::pair()?;
            // SAFETY: the child does what the module allows it, and never returns.
            match unsafe { libc::fork() } {
                -1 => return Err(io::Error::last_os_error()),
                0 => {
                    end_with(parent);
                    keep_only(theirs.as_fd(), None);
                    // SAFETY: number 0 is the socket's alone, and every owner of another descriptor is
                    // never dropped on this side.
                    let line = unsafe { OwnedFd::from_raw_fd(0) };
                    work(at, line.into());
                    leave();
                }
                pid => crew.pids.push(pid),
            }
            crew.lines.push(ours);
        }
        Ok(crew)
    }

    /// This side's end of the sockets, in the order of the members.
    pub fn lines(&self) -> &[UnixStream] {
        &self.lines
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        end_all(&self.pids);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn members_answer_with_tables_of_their_own_and_end_with_the_crew() {
        let work = |at: usize, mut line: UnixStream| {
            let mut byte = [0];
            while line.read_exact(&mut byte).is_ok() {
                // The lowest number from 3 on that is free: nothing of the parent's was kept.
                let next = std::os::fd::AsRawFd::as_raw_fd(&line.try_clone().expect("room"));
                let answer = [byte[0] + u8::try_from(at).unwrap_or(0), next.unsigned_abs() as u8];
                if line.write_all(&answer).is_err() {
                    return;
                }
            }
        };
        let crew = Crew::start(3, &work).unwrap();
        let pids = crew.pids.clone();
        for (at, mut line) in (0u8..).zip(crew.lines()) {
            line.write_all(&[10]).unwrap();
            let mut answer = [0; 2];
            line.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [10 + at, 3]);
        }
        drop(crew);
        for pid in pids {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        }
    }
}
