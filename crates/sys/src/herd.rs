//! A herd: processes made by fork, each of which waits for connections on a listening socket in a way of
//! its own, accepts one a wake-up, closes it, and waits again.
//!
//! The invariants: a member ends with the thread that made it, whatever ends that, and behind the fork
//! it uses no memory of its parent's but the board, so that a parent with threads is safe.

mod clients;
mod member;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::board::Board;

pub use clients::{Clients, Served};

/// How a member waits for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// `accept4(2)` on a blocking socket.
    Accept,
    /// `select(2)`, then accept.
    Select,
    /// `poll(2)`, then accept.
    Poll,
    /// An epoll of its own, `EPOLLIN`, then accept.
    Epoll,
    /// The same with `EPOLLEXCLUSIVE`.
    EpollExclusive,
    /// The same, taken out and put in again every so many accepts.
    EpollExclusiveAgain(u32),
    /// One epoll for all, `EPOLLONESHOT`, armed again after each accept.
    EpollOneshot,
    /// A multishot accept of an `io_uring` of its own.
    IoUring,
    /// A listening socket of its own on the same port (`SO_REUSEPORT`), in an epoll of its own.
    ReusePort,
}

/// What a herd is to be.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'fd> {
    /// The listening socket, or with [`Wait::ReusePort`] one that is only bound.
    pub listener: BorrowedFd<'fd>,
    /// Where it listens.
    pub address: SocketAddr,
    /// With [`Wait::EpollOneshot`], the epoll that the listener is in.
    pub epoll: Option<BorrowedFd<'fd>>,
    /// How members wait.
    pub wait: Wait,
    /// How many members.
    pub members: usize,
    /// Duplicates of the listener in each, which are waited for too.
    pub duplicates: u32,
}

/// Words a member has on the board: two lines of a cache, so that members do not disturb each other.
const SLOT: usize = 16;
const WAKES: usize = 0;
const ACCEPTS: usize = 1;
const EMPTY: usize = 2;
const READY: usize = 3;
/// The error that ended it, 0 for none.
const ERRNO: usize = 4;
/// The call that failed, as a place in [`member::CALLS`].
const CALL: usize = 5;

/// What a member has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Returns from its wait.
    pub wakes: u64,
    /// Connections it accepted.
    pub accepts: u64,
    /// Wake-ups at which there was none: `EAGAIN`.
    pub empty: u64,
}

/// Processes that wait. Dropping it ends them and waits for each.
#[derive(Debug)]
pub struct Herd {
    pids: Vec<libc::pid_t>,
    board: Board,
}

/// A member that could not do what it was to.
#[derive(Debug)]
pub struct MemberError {
    /// The call that failed.
    pub call: &'static str,
    /// What the kernel said.
    pub source: io::Error,
}

impl Herd {
    /// Forks the members; they may not wait yet when this returns.
    ///
    /// # Errors
    /// As fork(2): `EAGAIN`, `ENOMEM`. Those that were made are ended.
    pub fn start(plan: &Plan<'_>) -> Result<Self, MemberError> {
        let failed = |call| move |source| MemberError { call, source };
        let board = Board::new(plan.members * SLOT).map_err(failed("mmap"))?;
        crate::startup::hear_of_children();
        let mut herd = Self { pids: Vec::with_capacity(plan.members), board };
        // SAFETY: takes nothing.
        let parent = unsafe { libc::getpid() };
        for at in 0..plan.members {
            // SAFETY: the child runs `member::run`, which makes system calls, changes words of the
            // board, and never returns.
            match unsafe { libc::fork() } {
                -1 => return Err(failed("fork")(io::Error::last_os_error())),
                0 => member::run(parent, plan, herd.slot(at)),
                pid => herd.pids.push(pid),
            }
        }
        Ok(herd)
    }

    fn slot(&self, at: usize) -> &[AtomicU64] {
        &self.board.words()[at * SLOT..(at + 1) * SLOT]
    }

    /// The members' process ids.
    pub fn pids(&self) -> &[libc::pid_t] {
        &self.pids
    }

    /// Whether every member has made its preparations; it may not sleep yet.
    ///
    /// # Errors
    /// When one could not.
    pub fn is_ready(&self) -> Result<bool, MemberError> {
        self.check()?;
        let is_ready = |at| self.slot(at)[READY].load(Ordering::Acquire) == 1;
        Ok((0..self.pids.len()).all(is_ready))
    }

    /// Whether no member has failed.
    ///
    /// # Errors
    /// What the first that did could not do.
    pub fn check(&self) -> Result<(), MemberError> {
        for at in 0..self.pids.len() {
            let word = |word: usize| self.slot(at)[word].load(Ordering::Acquire);
            if word(ERRNO) != 0 {
                let call = usize::try_from(word(CALL)).ok();
                let call = call.and_then(|at| member::CALLS.get(at)).copied().unwrap_or("a call");
                let errno = i32::try_from(word(ERRNO)).unwrap_or(0);
                return Err(MemberError { call, source: io::Error::from_raw_os_error(errno) });
            }
        }
        Ok(())
    }

    /// What each member has counted so far.
    pub fn counts(&self) -> Vec<Counts> {
        let count = |at: usize| {
            let word = |word: usize| self.slot(at)[word].load(Ordering::Acquire);
            Counts { wakes: word(WAKES), accepts: word(ACCEPTS), empty: word(EMPTY) }
        };
        (0..self.pids.len()).map(count).collect()
    }
}

impl Drop for Herd {
    fn drop(&mut self) {
        end_all(&self.pids);
    }
}

/// A socket on a port of the loopback's that members may share by [`Wait::ReusePort`]: it is bound, so
/// that nobody else takes the port, and does not listen.
///
/// # Errors
/// What the kernel said.
pub fn bind_shared() -> io::Result<(OwnedFd, SocketAddr)> {
    // SAFETY: takes plain integers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made the descriptor and nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    member::bind(fd, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    // The standard library knows how to ask for the address of any socket.
    let known = TcpListener::from(socket.try_clone()?);
    Ok((socket, known.local_addr()?))
}

/// Kills children that have not been waited for, and waits for each.
pub(crate) fn end_all(pids: &[libc::pid_t]) {
    for pid in pids {
        // SAFETY: takes plain integers; the child has not been waited for, so the id is its.
        unsafe { libc::kill(*pid, libc::SIGKILL) };
    }
    for pid in pids {
        wait(*pid);
    }
}

/// Waits for a child, and gives its status.
fn wait(pid: libc::pid_t) -> libc::c_int {
    loop {
        let mut status = 0;
        // SAFETY: `status` is room for the one integer the call writes.
        let got = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        if got >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return status;
        }
    }
}

/// In a child: makes it end with its parent, whose id it was forked under.
pub(crate) fn end_with(parent: libc::pid_t) {
    // SAFETY: takes plain integers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
    // SAFETY: takes nothing.
    if unsafe { libc::getppid() } != parent {
        // It was gone before.
        leave();
    }
}

/// In a child: ends it without the parent's exit handlers.
pub(crate) fn leave() -> ! {
    // SAFETY: takes a plain integer and does not return.
    unsafe { libc::_exit(1) }
}

/// In a child: keeps this descriptor alone, as number 0, and the second as number 1.
pub(crate) fn keep_only(first: BorrowedFd<'_>, second: Option<BorrowedFd<'_>>) {
    let second = second.map(|fd| {
        // Out of the way of number 0.
        // SAFETY: takes plain integers.
        unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD, 3) }
    });
    // SAFETY: takes plain integers; no owner of a descriptor is ever dropped on this side.
    unsafe { libc::dup2(first.as_raw_fd(), 0) };
    let last = if let Some(second) = second {
        // SAFETY: as above.
        unsafe { libc::dup2(second, 1) };
        1
    } else {
        0
    };
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_close_range, last + 1, u32::MAX, 0) };
}

#[cfg(test)]
mod tests;
