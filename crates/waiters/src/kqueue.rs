//! The `kqueue` waiter.
//!
//! ```text
//! descriptor ──EV_ADD, EV_CLEAR──▶ epoll_ctl(2), EPOLLET: one set for reading, one for writing
//! events     ◀──kevent──           epoll_wait(2) twice, then poll(2) and ioctl(2) for each of them
//! ```
//!
//! FreeBSD's kqueue, by the crate `iotomy-ports`: a note for what is read and one for what is written. A note is
//! cleared with its event, as in event loops of several threads; without that, it stays active until a wait finds it
//! idle, and an eventfd wakes every thread meanwhile. Before an event is returned, its filter asks the descriptor how
//! much there is.
//!
//! The one invariant: both notes of a descriptor are one event of a wait. `placed` has its place among the events,
//! which counts only in the wait in which it was written.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use iotomy_ports::{Closes, Kevent, Kqueue, filter, flag, note};
use rustix::io::Errno;

use crate::calls::{Call, Times, exactly, once, rarely};
use crate::deadline::wait_until;
use crate::{
    Calls, Capabilities, Closed, Counts, Events, Interest, Kind, Model, Probe, Ready, Room,
    Trigger, WaitError, Waiter, WaiterDeclaration,
};

const NAME: &str = "kqueue";

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: NAME,
    summary: "kqueue of FreeBSD, by iotomy-ports",
    description: "Two edge-triggered epoll sets, and a table of what is watched. A wait takes from \
        the kernel's lists of ready descriptors, and asks each of them how much there is to read \
        or room to write, for which listeners, files and those that are written take further \
        calls. Events that find no room are announced by an eventfd.",
    man: &["epoll(7)", "epoll_ctl(2)", "epoll_pwait2(2)", "poll(2)", "ioctl(2)"],
    calls: Calls {
        open: &[exactly(2, "epoll_create1"), once("eventfd2"), exactly(2, "epoll_ctl")],
        add: &[once("fcntl"), once("fstat"), once("epoll_ctl")],
        modify: CHANGE,
        remove: CHANGE,
        wait: &[
            once("epoll_wait"),
            Call { name: "ioctl", times: Times::EachEvent },
            rarely("poll"),
            rarely("epoll_pwait2"),
            rarely("getsockopt"),
            rarely("fcntl"),
            rarely("fstat"),
            rarely("lseek"),
            rarely("write"),
            rarely("read"),
        ],
    },
    capabilities: Capabilities {
        model: Model::Readiness,
        trigger: Trigger::Edge,
        exclusive: false,
        room: Room::Told,
        names_hang_up: false,
        receives: false,
        shared: true,
        inherited: false,
        sleeps: true,
        serves: &Kind::ALL,
        closed: Closed::Silent,
        highest: None,
        timeout_step_ns: 1,
    },
    probe: || match new_queue() {
        Ok(_) => Probe::Ready,
        Err(errno) => Probe::Unsupported(format!("kqueue: {errno}")),
    },
    open: |_| {
        let queue = new_queue().map_err(|e| WaitError::kernel(NAME, "open", "kqueue", e.into()))?;
        Ok(Box::new(QueueWaiter::of(Arc::new(Queue { queue, watched: Mutex::default() }))))
    },
};

const CHANGE: &[Call] = &[once("epoll_ctl")];

/// Descriptors are removed before they are closed, so no event needs a check for that.
fn new_queue() -> Result<Kqueue, Errno> {
    Kqueue::new(Closes::Reported)
}

/// A queue and what it watches.
struct Queue {
    queue: Kqueue,
    /// What each descriptor is watched for, by its number. Locked while the queue is changed.
    watched: Mutex<Vec<Option<Interest>>>,
}

impl Queue {
    fn watched(&self) -> MutexGuard<'_, Vec<Option<Interest>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the notes of a descriptor from one interest to another.
    fn change(
        &self,
        fd: RawFd,
        from: Option<Interest>,
        to: Option<Interest>,
        token: u64,
    ) -> Result<(), Errno> {
        for (filter, has) in FILTERS {
            let flags = match (from.is_some_and(has), to.is_some_and(has)) {
                (_, true) => flag::ADD | flag::CLEAR,
                (true, false) => flag::DELETE,
                (false, false) => continue,
            };
            let change = Kevent {
                ident: number(fd),
                filter,
                flags,
                fflags: if filter == filter::READ { note::FILE_POLL } else { 0 },
                udata: token as usize,
                ..Kevent::default()
            };
            // Without room for its outcome, a change that fails is an error.
            self.queue.apply([change], 0, |_| {})?;
        }
        Ok(())
    }
}

/// Whether an interest has a note of some filter.
type HasNote = fn(Interest) -> bool;

const FILTERS: [(i16, HasNote); 2] =
    [(filter::READ, Interest::reads), (filter::WRITE, Interest::writes)];

fn interest(watched: &[Option<Interest>], fd: RawFd) -> Option<Interest> {
    watched.get(number(fd)).copied().flatten()
}

fn number(fd: RawFd) -> usize {
    usize::try_from(fd).expect("negative descriptors are invalid")
}

/// What an event says. That a descriptor can be read no further, or written, is the end of that direction.
fn readiness(event: &Kevent) -> Ready {
    let (ready, end) = match event.filter {
        filter::WRITE => (Ready::WRITABLE, Ready::HANG_UP),
        _ => (Ready::READABLE, Ready::PEER_CLOSED),
    };
    if event.flags & flag::EOF == 0 { ready } else { ready | end }
}

/// A queue, or another thread's hold on it.
struct QueueWaiter {
    queue: Arc<Queue>,
    /// Waits so far.
    waits: u64,
    /// The wait that last told of a descriptor, and where, by its number.
    placed: Vec<(u64, usize)>,
    counts: Counts,
}

impl QueueWaiter {
    fn of(queue: Arc<Queue>) -> Self {
        Self { queue, waits: 0, placed: Vec::new(), counts: Counts::default() }
    }
}

impl Waiter for QueueWaiter {
    fn declaration(&self) -> &'static WaiterDeclaration {
        &DECLARATION
    }

    fn add(&mut self, fd: BorrowedFd<'_>, wanted: Interest, token: u64) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        let mut watched = self.queue.watched();
        if interest(&watched, fd).is_some() {
            return Err(WaitError::refused(NAME, "watch", Errno::EXIST).on(fd));
        }
        if let Err(errno) = self.queue.change(fd, None, Some(wanted), token) {
            // One of two notes may be there.
            let _ = self.queue.change(fd, Some(wanted), None, token);
            return Err(WaitError::kernel(NAME, "watch", "kevent", errno.into()).on(fd));
        }
        if watched.len() <= number(fd) {
            watched.resize(number(fd) + 1, None);
        }
        watched[number(fd)] = Some(wanted);
        Ok(())
    }

    fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        wanted: Interest,
        token: u64,
    ) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        let mut watched = self.queue.watched();
        let Some(before) = interest(&watched, fd) else {
            return Err(WaitError::refused(NAME, "modify", Errno::NOENT).on(fd));
        };
        self.queue
            .change(fd, Some(before), Some(wanted), token)
            .map_err(|e| WaitError::kernel(NAME, "modify", "kevent", e.into()).on(fd))?;
        watched[number(fd)] = Some(wanted);
        Ok(())
    }

    fn remove(&mut self, fd: BorrowedFd<'_>) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        let mut watched = self.queue.watched();
        let Some(before) = interest(&watched, fd) else {
            return Err(WaitError::refused(NAME, "remove", Errno::NOENT).on(fd));
        };
        self.queue
            .change(fd, Some(before), None, 0)
            .map_err(|e| WaitError::kernel(NAME, "remove", "kevent", e.into()).on(fd))?;
        watched[number(fd)] = None;
        Ok(())
    }

    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<usize, WaitError> {
        events.clear();
        self.waits += 1;
        let (queue, room, waits) = (&self.queue.queue, events.capacity(), self.waits);
        let placed = &mut self.placed;
        let call = |left| {
            let put = |event: Kevent| {
                if placed.len() <= event.ident {
                    placed.resize(event.ident + 1, (0, 0));
                }
                match placed[event.ident] {
                    (wait, at) if wait == waits => events.add_to(at, readiness(&event)),
                    _ => {
                        placed[event.ident] = (waits, events.len());
                        events.push(event.udata as u64, readiness(&event));
                    }
                }
            };
            Ok(queue.wait(room, left, put)?)
        };
        wait_until(timeout, &mut self.counts.interrupted, call)
            .map_err(|e| WaitError::kernel(NAME, "wait", "kevent", e))?;
        Ok(events.len())
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn share(&self) -> Option<Box<dyn Waiter + Send>> {
        Some(Box::new(Self::of(self.queue.clone())))
    }
}
