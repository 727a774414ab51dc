//! A herd: forked processes, each of which waits for connections on a listening socket with the
//! herd's mode of waiting, accepts one per wake-up, closes it, and waits again.
//!
//! The invariants: a member ends with the thread that made it, however that ends. After the fork it
//! uses no memory of its parent except the board, and a set that it was made for and no thread is in, so
//! forking a parent with threads is safe.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use iotomy_sys::board::Board;
use iotomy_sys::children::Children;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use crate::herd::member;
use crate::herd::plan::{HerdPlan, SharedSet};
use crate::herd::slot::{ACCEPTS, CALL, EMPTY, ERRNO, READY, SLOT, WAKES};

/// The counters of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Returns from its wait.
    pub(crate) wakes: u64,
    /// Connections it accepted.
    pub(crate) accepts: u64,
    /// Wake-ups without a connection: `EAGAIN`.
    pub(crate) empty: u64,
}

/// The waiting processes. Dropping it ends them and waits for each.
#[derive(Debug)]
pub(crate) struct Herd {
    children: Children,
    board: Board,
}

/// The error of a member whose call failed.
#[derive(Debug)]
pub(crate) struct MemberError {
    /// The call that failed.
    pub(crate) call: &'static str,
    /// The kernel's error.
    pub(crate) source: io::Error,
}

impl Herd {
    /// Forks the members; they may not be waiting yet when this returns.
    ///
    /// # Errors
    /// Fails as fork(2) does: `EAGAIN`, `ENOMEM`. Members already created are ended.
    pub(crate) fn start(plan: &HerdPlan<'_>) -> Result<Self, MemberError> {
        let failed = |call| move |source| MemberError { call, source };
        let board = Board::new(plan.members * SLOT).map_err(failed("mmap"))?;
        let mut herd = Self { children: Children::with_capacity(plan.members), board };
        let mut kept = plan.set.map_or_else(Vec::new, SharedSet::descriptors);
        kept.push(plan.listener.as_raw_fd());
        for at in 0..plan.members {
            let slot = slot(&herd.board, at);
            herd.children.fork(&kept, || member::run(plan, slot)).map_err(failed("fork"))?;
        }
        Ok(herd)
    }

    fn slot(&self, at: usize) -> &[AtomicU64] {
        slot(&self.board, at)
    }

    /// The members' process ids.
    pub(crate) fn pids(&self) -> &[i32] {
        self.children.pids()
    }

    /// Whether every member has finished its setup; it may not be blocked yet.
    ///
    /// # Errors
    /// Fails if a member failed.
    pub(crate) fn is_ready(&self) -> Result<bool, MemberError> {
        self.check()?;
        let is_ready = |at| self.slot(at)[READY].load(Ordering::Acquire) == 1;
        Ok((0..self.pids().len()).all(is_ready))
    }

    /// Checks that no member has failed.
    ///
    /// # Errors
    /// Fails with the error of the first member that failed.
    pub(crate) fn check(&self) -> Result<(), MemberError> {
        for at in 0..self.pids().len() {
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

    /// Returns the counters of each member so far.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        let count = |at: usize| {
            let word = |word: usize| self.slot(at)[word].load(Ordering::Acquire);
            Counts { wakes: word(WAKES), accepts: word(ACCEPTS), empty: word(EMPTY) }
        };
        (0..self.pids().len()).map(count).collect()
    }
}

/// Returns a member's words.
fn slot(board: &Board, at: usize) -> &[AtomicU64] {
    &board.words()[at * SLOT..(at + 1) * SLOT]
}

/// Binds a socket to a port of the loopback that members may share by
/// [`Wait::ReusePort`](super::plan::Wait::ReusePort). It reserves the port and does not listen.
///
/// # Errors
/// Fails with the kernel's error.
pub(crate) fn bind_shared() -> io::Result<(OwnedFd, SocketAddr)> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    // The standard library can return the address of any socket.
    let known = TcpListener::from(socket.try_clone()?);
    Ok((socket, known.local_addr()?))
}
