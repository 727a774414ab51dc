//! The common part of the four modes of epoll(7): a set in the kernel, and a buffer for its events.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use iotomy_sys::epoll::{Change, EpollEvent, epoll_create1, epoll_ctl, epoll_wait};

use crate::calls::once;
use crate::deadline::{millis, wait_until};
use crate::{
    Call, Calls, Capabilities, Closed, Counts, Event, Events, Interest, Kind, Model, Probe, Ready,
    Room, Trigger, WaitError, Waiter, WaiterDeclaration,
};

/// The bits that may not be combined with [`EXCLUSIVE`].
const NOT_EXCLUSIVE: u32 = Ready::PEER_CLOSED.bits();

/// `EPOLLEXCLUSIVE`.
pub(crate) const EXCLUSIVE: u32 = 1 << 28;

/// `EPOLLONESHOT`.
pub(crate) const ONE_SHOT: u32 = 1 << 30;

/// `EPOLLET`.
pub(crate) const EDGE: u32 = 1 << 31;

/// The calls of those that modify by one call.
pub(crate) const CALLS: Calls = Calls {
    open: &[once("epoll_create1")],
    add: CHANGE,
    modify: CHANGE,
    remove: CHANGE,
    wait: &[once("epoll_wait")],
};

const CHANGE: &[Call] = &[once("epoll_ctl")];

/// The features that all of them have.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    model: Model::Readiness,
    trigger: Trigger::Level,
    exclusive: false,
    room: Room::Told,
    names_hang_up: true,
    receives: false,
    shared: true,
    inherited: true,
    sleeps: true,
    serves: &Kind::NO_FILES,
    closed: Closed::Forgotten,
    highest: None,
    timeout_step_ns: 1_000_000,
};

/// Whether such a set can be created.
pub(crate) fn probe() -> Probe {
    match epoll_create1() {
        Ok(_) => Probe::Ready,
        Err(error) => Probe::Unsupported(format!("epoll_create1: {error}")),
    }
}

/// A set, or another thread's hold on it.
pub(crate) struct EpollSet {
    declaration: &'static WaiterDeclaration,
    /// The flags besides the interest.
    flags: u32,
    epoll: Arc<OwnedFd>,
    buffer: Vec<EpollEvent>,
    counts: Counts,
}

impl EpollSet {
    /// An empty set.
    pub(crate) fn open(
        declaration: &'static WaiterDeclaration,
        flags: u32,
    ) -> Result<Box<dyn Waiter>, WaitError> {
        let epoll = epoll_create1()
            .map_err(|e| WaitError::kernel(declaration.name, "open", "epoll_create1", e))?;
        Ok(Box::new(Self::with(declaration, flags, Arc::new(epoll))))
    }

    fn with(declaration: &'static WaiterDeclaration, flags: u32, epoll: Arc<OwnedFd>) -> Self {
        Self { declaration, flags, epoll, buffer: Vec::new(), counts: Counts::default() }
    }

    fn change(
        &self,
        change: Change,
        fd: BorrowedFd<'_>,
        events: u32,
        token: u64,
    ) -> io::Result<()> {
        let event = EpollEvent { events, data: token };
        epoll_ctl(self.epoll.as_fd(), change, fd.as_raw_fd(), event)
    }

    fn asked(&self, interest: Interest) -> u32 {
        let bits = interest.bits() | self.flags;
        if self.flags & EXCLUSIVE == 0 { bits } else { bits & !NOT_EXCLUSIVE }
    }

    #[cold]
    fn make_room(&mut self, events: usize) {
        self.buffer.resize(events, EpollEvent::default());
    }

    #[cold]
    fn failed_to_wait(&self, error: io::Error) -> WaitError {
        WaitError::kernel(self.declaration.name, "wait", "epoll_wait", error)
    }

    fn failed(&self, attempt: &'static str, fd: BorrowedFd<'_>, error: io::Error) -> WaitError {
        WaitError::kernel(self.declaration.name, attempt, "epoll_ctl", error).on(fd.as_raw_fd())
    }
}

impl Waiter for EpollSet {
    fn declaration(&self) -> &'static WaiterDeclaration {
        self.declaration
    }

    fn add(&mut self, fd: BorrowedFd<'_>, interest: Interest, token: u64) -> Result<(), WaitError> {
        self.change(Change::Add, fd, self.asked(interest), token)
            .map_err(|e| self.failed("watch", fd, e))
    }

    fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> Result<(), WaitError> {
        let asked = self.asked(interest);
        let modified = if self.flags & EXCLUSIVE == 0 {
            self.change(Change::Modify, fd, asked, token)
        } else {
            // An exclusive descriptor cannot be modified, only added.
            self.change(Change::Remove, fd, 0, 0)
                .and_then(|()| self.change(Change::Add, fd, asked, token))
        };
        modified.map_err(|e| self.failed("modify", fd, e))
    }

    fn remove(&mut self, fd: BorrowedFd<'_>) -> Result<(), WaitError> {
        self.change(Change::Remove, fd, 0, 0).map_err(|e| self.failed("remove", fd, e))
    }

    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<usize, WaitError> {
        events.clear();
        if self.buffer.len() < events.capacity() {
            self.make_room(events.capacity());
        }
        let buffer = &mut self.buffer[..events.capacity()];
        let epoll = self.epoll.as_fd();
        let call = |left| epoll_wait(epoll, buffer, millis(left));
        let found = match wait_until(timeout, &mut self.counts.interrupted, call) {
            Ok(found) => &self.buffer[..found],
            Err(error) => return Err(self.failed_to_wait(error)),
        };
        events.fill(
            found
                .iter()
                .map(|event| Event { token: event.data, ready: Ready::from_bits(event.events) }),
        );
        Ok(events.len())
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.epoll.as_fd()]
    }

    fn share(&self) -> Option<Box<dyn Waiter + Send>> {
        Some(Box::new(Self::with(self.declaration, self.flags, self.epoll.clone())))
    }
}
