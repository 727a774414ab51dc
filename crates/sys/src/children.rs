//! Processes made by fork that do work of this very program.
//!
//! The invariants: a child ends with the thread that made it, however that ends, or when the
//! [`Children`] are dropped; of the parent's descriptors it keeps only those that it is given,
//! under their numbers. It may use the allocator, which the C library repairs after a fork, but
//! must take no lock that another thread of the parent could have held.

use std::io;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Processes at work. Dropping it ends them and waits for each.
#[derive(Debug)]
pub struct Children {
    pids: Vec<libc::pid_t>,
}

impl Children {
    /// No children yet, with room for this many. Sets SIGCHLD to its default: where it is ignored,
    /// the kernel forgets how children ended.
    pub fn with_capacity(children: usize) -> Self {
        crate::startup::reset_sigchld();
        Self { pids: Vec::with_capacity(children) }
    }

    /// Forks a child that keeps these descriptors, does `work` and ends.
    ///
    /// # Errors
    /// As fork(2): `EAGAIN`, `ENOMEM`.
    pub fn fork(&mut self, kept: &[RawFd], work: impl FnOnce()) -> io::Result<()> {
        // SAFETY: takes nothing.
        let parent = unsafe { libc::getpid() };
        // SAFETY: the child does what the module allows it, and never returns from here: a panic ends it, too.
        match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                end_with(parent);
                close_all_but(kept);
                let _ = catch_unwind(AssertUnwindSafe(work));
                leave()
            }
            pid => self.pids.push(pid),
        }
        Ok(())
    }

    /// Their process ids.
    pub fn pids(&self) -> &[libc::pid_t] {
        &self.pids
    }

    /// Waits until each has ended by itself.
    pub fn wait(mut self) {
        for pid in std::mem::take(&mut self.pids) {
            wait(pid);
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for pid in &self.pids {
            // SAFETY: takes plain integers; the child has not been waited for, so the id is its.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
        for pid in &self.pids {
            wait(*pid);
        }
    }
}

/// Waits for a child.
fn wait(pid: libc::pid_t) {
    loop {
        let mut status = 0;
        // SAFETY: `status` is room for the one integer the call writes.
        let got = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        if got >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return;
        }
    }
}

/// In a child: makes it end with its parent, whose id it was forked under.
fn end_with(parent: libc::pid_t) {
    // SAFETY: takes plain integers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
    // SAFETY: takes nothing.
    if unsafe { libc::getppid() } != parent {
        // It was gone before.
        leave();
    }
}

/// In a child: ends it without the parent's exit handlers.
fn leave() -> ! {
    // SAFETY: takes a plain integer and does not return.
    unsafe { libc::_exit(1) }
}

/// In a child: closes all descriptors but these.
fn close_all_but(kept: &[RawFd]) {
    let mut from = 0u32;
    loop {
        let next = kept.iter().map(|fd| fd.unsigned_abs()).filter(|fd| *fd >= from).min();
        let until = next.map_or(Some(u32::MAX), |fd| fd.checked_sub(1));
        if let Some(until) = until.filter(|until| *until >= from) {
            // SAFETY: takes plain integers; no owner of a descriptor is ever dropped on this side.
            unsafe { libc::syscall(libc::SYS_close_range, from, until, 0) };
        }
        match next {
            Some(fd) => from = fd + 1,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_child_has_the_descriptors_that_it_was_given_and_no_other() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let _more = [UnixStream::pair().unwrap(), UnixStream::pair().unwrap()];
        let number = theirs.as_raw_fd();
        let mut children = Children::with_capacity(1);
        let work = || {
            let is_open = crate::poll::is_open;
            let found = (0..1024).filter(|fd| is_open(*fd)).count();
            let answer = [found as u8, u8::from(is_open(number))];
            let _ = io::Write::write_all(&mut &theirs, &answer);
        };
        children.fork(&[number], work).unwrap();
        let mut answer = [0; 2];
        ours.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [1, 1]);
        children.wait();
    }

    #[test]
    fn a_child_that_panics_has_ended() {
        let mut children = Children::with_capacity(1);
        children.fork(&[], || panic!("on purpose")).unwrap();
        children.wait();
    }

    #[test]
    fn children_that_are_dropped_are_gone() {
        let mut children = Children::with_capacity(2);
        for _ in 0..2 {
            children
                .fork(&[], || {
                    loop {
                        std::thread::park()
                    }
                })
                .unwrap();
        }
        let pids = children.pids().to_vec();
        drop(children);
        for pid in pids {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        }
    }
}
