//! A port: its making, its end, and the events that threads send to it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iotomy_sys::epoll::{Change, EpollEvent, epoll_create1, epoll_ctl};
use iotomy_sys::forks;
use iotomy_sys::private_fd::PrivateFd;
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::bell::Bell;
use crate::errno::errno;
use crate::inside::{NotedCloses, is_inside};
use crate::local::Local;
use crate::shared::{Kind, Locked, Node, Shared, State};

/// The bell's place in the set; no node has this number.
pub(crate) const BELL: u64 = u64::MAX;

/// How a port learns that a descriptor was closed, which ends its association although a duplicate
/// may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closes {
    /// Each event is checked, by `kcmp(2)`, before it is delivered. A number that is open again as a file that was
    /// watched by it before, and that a duplicate has kept open, is taken for the one that is watched now.
    Checked,
    /// The caller calls [`Port::forget`] before it closes a descriptor.
    Reported,
}

/// An event port.
///
/// Children share it: parent and child can each associate, send and retrieve. It ends with the last
/// of them.
#[derive(Debug)]
pub struct Port {
    pub(crate) shared: Shared,
    pub(crate) epoll: PrivateFd,
    pub(crate) bell: Bell,
    pub(crate) closes: Closes,
    pub(crate) local: Local,
    pub(crate) noted: NotedCloses,
    is_closed: AtomicBool,
    is_ended: AtomicBool,
    maker: u32,
}

impl Port {
    /// Makes a port (`port_create`).
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE` and `ENOMEM`, as epoll_create1(2), eventfd(2) and mmap(2).
    pub fn new(closes: Closes) -> Result<Self, Errno> {
        let shared = Shared::new().map_err(errno)?;
        let epoll = PrivateFd::from(epoll_create1().map_err(errno)?);
        let bell = Bell::new()?;
        let event = EpollEvent { events: READABLE, data: BELL };
        epoll_ctl(epoll.as_fd(), Change::Add, bell.as_fd().as_raw_fd(), event).map_err(errno)?;
        Ok(Self {
            shared,
            epoll,
            bell,
            closes,
            local: Local::new(),
            noted: NotedCloses::new(),
            is_closed: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            maker: forks::process_id(),
        })
    }

    /// Sends an event to the port (`port_send`): the source is [`User`](crate::Source::User). Safe in
    /// handlers of signals.
    ///
    /// # Errors
    /// `EAGAIN` if the port has 65,536 objects and events.
    pub fn send(&self, events: i32, user: usize) -> Result<(), Errno> {
        self.shared.send(events, user)?;
        self.bell.ring(&self.shared);
        Ok(())
    }

    /// Enters alert mode, or changes its values (`port_alert` with `PORT_ALERT_SET`): all threads that
    /// wait for events, and those that come until the mode ends, return with these values alone.
    pub fn alert(&self, events: i32, user: usize) {
        let locked = self.lock();
        locked.set_alert(events, user);
        self.bell.settle(&self.shared, &locked);
    }

    /// Enters alert mode, unless the port is in it (`port_alert` with `PORT_ALERT_UPDATE`).
    ///
    /// # Errors
    /// `EBUSY` if the port is in alert mode.
    pub fn alert_once(&self, events: i32, user: usize) -> Result<(), Errno> {
        let locked = self.lock();
        if locked.alert().is_some() {
            return Err(Errno::BUSY);
        }
        locked.set_alert(events, user);
        self.bell.settle(&self.shared, &locked);
        Ok(())
    }

    /// Ends alert mode.
    pub fn end_alert(&self) {
        let locked = self.lock();
        locked.clear_alert();
        self.bell.settle(&self.shared, &locked);
    }

    /// The number of events that could be retrieved now (`port_getn` with a `max` of 0).
    pub fn queued(&self) -> usize {
        let locked = self.lock();
        locked.absorb();
        self.harvest(&locked);
        self.bell.settle(&self.shared, &locked);
        locked.queued()
    }

    /// Ends the port for this process: its threads that wait return with `EBADFD`, and what it
    /// associated is dissociated, also if a child or the parent uses the port on.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let local = self.local.current();
        // Receivers of other processes silence the bell, so it is rung until all threads have heard it.
        for _ in 0..1000 {
            if local.sleepers.load(Ordering::SeqCst) == 0 {
                break;
            }
            self.bell.ring_again();
            std::thread::sleep(Duration::from_millis(1));
        }
        if is_inside() {
            // The handler of a signal: who drops the port does the rest.
            return;
        }
        self.is_ended.store(true, Ordering::SeqCst);
        let locked = self.lock();
        let me = forks::process_id();
        for node in locked.objects().filter(|node| locked.owner(*node) == me) {
            match locked.state(node) {
                State::Free => {}
                _ if locked.kind(node) == Kind::Fd => self.forget_node(&locked, node),
                _ => locked.remove(node),
            }
        }
        *self.local.own() = crate::local::Own::default();
        self.bell.settle(&self.shared, &locked);
    }

    /// The descriptors of the port. A child that closes what it inherited must keep them to use the port.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.epoll.as_fd(), self.bell.as_fd()]
    }

    /// The shared state, in order.
    pub(crate) fn lock(&self) -> Locked<'_> {
        let locked = self.shared.lock();
        if locked.is_repaired {
            // Whether it is rung was known to the one that was killed.
            self.shared.swap_rung(true);
            self.bell.ring_again();
        }
        self.noted.take(|fds| self.forget_own(&locked, fds));
        locked
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Arms a node in the kernel's set; it fires once.
    pub(crate) fn watch(
        &self,
        locked: &Locked<'_>,
        node: Node,
        change: Change,
        fd: BorrowedFd<'_>,
        events: u32,
    ) -> Result<(), Errno> {
        let event = EpollEvent { events: events | ONE_SHOT, data: locked.tag(node) };
        epoll_ctl(self.epoll.as_fd(), change, fd.as_raw_fd(), event).map_err(errno)
    }

    /// Takes a descriptor of the port's own out of the kernel's set.
    pub(crate) fn unwatch(&self, fd: BorrowedFd<'_>) {
        let none = EpollEvent::default();
        // It was added, and nobody else removes it.
        let _ = epoll_ctl(self.epoll.as_fd(), Change::Remove, fd.as_raw_fd(), none);
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // If no other process has the port, the kernel drops all of it with the descriptors.
        let is_shared =
            forks::depth() > 0 || forks::has_forked() || self.maker != forks::process_id();
        if is_shared && !self.is_ended.load(Ordering::SeqCst) {
            self.close();
        }
    }
}

/// The port as a descriptor: readable as long as there are events to retrieve.
impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// `EPOLLONESHOT`.
pub(crate) const ONE_SHOT: u32 = 1 << 30;

/// `EPOLLIN`.
pub(crate) const READABLE: u32 = 1;

/// What a regular file is always ready for.
pub(crate) fn always_ready() -> PollFlags {
    PollFlags::IN
        | PollFlags::OUT
        | PollFlags::RDNORM
        | PollFlags::WRNORM
        | PollFlags::RDBAND
        | PollFlags::WRBAND
}
