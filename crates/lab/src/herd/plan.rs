//! The plan of a herd: how many members wait, for what and how.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use iotomy_waiters::{Interest, Settings, Trigger, WaitError, Waiter, WaiterDeclaration};

/// How a member waits for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// `accept4(2)` on a blocking socket.
    Accept,
    /// `select(2)`, then accept.
    Select,
    /// `poll(2)`, then accept.
    Poll,
    /// A private epoll, `EPOLLIN`, then accept.
    Epoll,
    /// The same with `EPOLLEXCLUSIVE`.
    EpollExclusive,
    /// The same, removed and added again every so many accepts.
    EpollExclusiveAgain(u32),
    /// A multishot accept on a private `io_uring`.
    IoUring,
    /// A private listening socket on the same port (`SO_REUSEPORT`), in a private epoll.
    ReusePort,
    /// A set of the registry's waiter of this name: the one of the plan, or a private one.
    Waiter(&'static str),
}

/// The parameters of a herd.
#[derive(Clone, Copy)]
pub(crate) struct HerdPlan<'fd> {
    /// The listening socket, or with [`Wait::ReusePort`] one that is only bound.
    pub(crate) listener: BorrowedFd<'fd>,
    /// The address of the listening socket.
    pub(crate) address: SocketAddr,
    /// The set that all members share, if they share one.
    pub(crate) set: Option<&'fd SharedSet>,
    /// How members wait.
    pub(crate) wait: Wait,
    /// Number of members.
    pub(crate) members: usize,
    /// Duplicates of the listener in each member, which it also waits for.
    pub(crate) duplicates: u32,
}

/// A set of a waiter that children inherit, with the listener in it. Each member has its own copy of the
/// waiter, and the kernel one set for all.
pub(crate) struct SharedSet(pub(super) RefCell<Box<dyn Waiter>>);

impl SharedSet {
    /// Opens a set that contains the listener, if the members share one set of this waiter: it must report a
    /// descriptor to one of them only.
    ///
    /// # Errors
    /// Fails as the waiter does.
    pub(crate) fn for_waiter(
        waiter: &WaiterDeclaration,
        listener: BorrowedFd<'_>,
    ) -> Result<Option<Self>, WaitError> {
        if !is_shared(waiter) {
            return Ok(None);
        }
        let mut set = (waiter.open)(&Settings::default())?;
        set.add(listener, Interest::READ, 0)?;
        Ok(Some(Self(RefCell::new(set))))
    }

    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        self.0.borrow().descriptors().iter().map(AsRawFd::as_raw_fd).collect()
    }
}

/// Whether the members share one set of this waiter.
pub(crate) fn is_shared(waiter: &WaiterDeclaration) -> bool {
    waiter.capabilities.inherited && waiter.capabilities.trigger == Trigger::OneShot
}
