//! The `event-ports` waiter.
//!
//! ```text
//! descriptor ──port_associate──▶ epoll_ctl(2), EPOLLONESHOT
//! events     ◀──port_getn──      epoll_wait(2), and the association ends
//! descriptor ──port_associate──▶ epoll_ctl(2), EPOLL_CTL_MOD: the next event
//! ```
//!
//! Event ports of Solaris, by the crate `iotomy-ports`: a queue that hands each event to one of the threads that
//! wait, and ends the descriptor's association with it. A port takes regular files, too, which `epoll(7)` refuses.
//!
//! The one invariant: a descriptor is in `watched` from its addition to its removal, associated or not. The port
//! itself does not know a descriptor whose event was retrieved from one that was never associated.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use iotomy_ports::{Closes, Port, Shortfall};
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::calls::{Call, once, rarely};
use crate::deadline::wait_until;
use crate::{
    Calls, Capabilities, Closed, Counts, Events, Interest, Kind, Model, Probe, Ready, Room,
    Trigger, WaitError, Waiter, WaiterDeclaration,
};

const NAME: &str = "event-ports";

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: NAME,
    summary: "event ports of Solaris, by iotomy-ports",
    description: "A queue of events over an epoll set in which descriptors are one-shot: an event \
        ends the association of its descriptor, and goes to one thread. A wait is one epoll_wait \
        for every 64 events, and epoll_pwait2 if it has a time-out that is not zero.",
    man: &["iotomy-ports(7)", "port_associate(3)", "port_getn(3)", "epoll(7)"],
    calls: Calls {
        // The process asks for its id once.
        open: &[once("epoll_create1"), once("eventfd2"), once("epoll_ctl"), once("getpid")],
        add: CHANGE,
        modify: CHANGE,
        remove: CHANGE,
        wait: &[once("epoll_wait"), rarely("epoll_pwait2")],
    },
    capabilities: Capabilities {
        model: Model::Readiness,
        trigger: Trigger::OneShot,
        exclusive: false,
        room: Room::Told,
        names_hang_up: true,
        receives: false,
        shared: true,
        inherited: true,
        sleeps: true,
        serves: &Kind::ALL,
        closed: Closed::Silent,
        highest: None,
        timeout_step_ns: 1,
    },
    probe: || match new_port() {
        Ok(_) => Probe::Ready,
        Err(errno) => Probe::Unsupported(format!("port_create: {errno}")),
    },
    open: |_| {
        let port =
            new_port().map_err(|e| WaitError::kernel(NAME, "open", "port_create", e.into()))?;
        let queue = Queue { port, watched: Mutex::default() };
        Ok(Box::new(EventPorts { queue: Arc::new(queue), counts: Counts::default() }))
    },
};

const CHANGE: &[Call] = &[once("epoll_ctl")];

/// Descriptors are removed before they are closed, so no event needs a check for that.
fn new_port() -> Result<Port, Errno> {
    Port::new(Closes::Reported)
}

/// A port and what it watches.
struct Queue {
    port: Port,
    /// Whether a descriptor is watched, by its number. Locked while the port is changed, so that what one
    /// thread removes is not armed again by another.
    watched: Mutex<Vec<bool>>,
}

impl Queue {
    fn watched(&self) -> MutexGuard<'_, Vec<bool>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn associate(
        &self,
        attempt: &'static str,
        fd: RawFd,
        interest: Interest,
        token: u64,
    ) -> Result<(), WaitError> {
        let events = PollFlags::from_bits_retain(interest.bits() as u16);
        self.port
            .associate(fd, events, token as usize)
            .map_err(|e| WaitError::kernel(NAME, attempt, "port_associate", e.into()).on(fd))
    }
}

/// A port, or another thread's hold on it.
struct EventPorts {
    queue: Arc<Queue>,
    counts: Counts,
}

fn is_watched(watched: &[bool], fd: RawFd) -> bool {
    watched.get(number(fd)).is_some_and(|is_watched| *is_watched)
}

fn number(fd: RawFd) -> usize {
    usize::try_from(fd).expect("negative descriptors are invalid")
}

impl Waiter for EventPorts {
    fn declaration(&self) -> &'static WaiterDeclaration {
        &DECLARATION
    }

    fn add(&mut self, fd: BorrowedFd<'_>, interest: Interest, token: u64) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        let mut watched = self.queue.watched();
        if is_watched(&watched, fd) {
            return Err(WaitError::refused(NAME, "watch", Errno::EXIST).on(fd));
        }
        self.queue.associate("watch", fd, interest, token)?;
        if watched.len() <= number(fd) {
            watched.resize(number(fd) + 1, false);
        }
        watched[number(fd)] = true;
        Ok(())
    }

    fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        let watched = self.queue.watched();
        if !is_watched(&watched, fd) {
            return Err(WaitError::refused(NAME, "modify", Errno::NOENT).on(fd));
        }
        self.queue.associate("modify", fd, interest, token)
    }

    fn remove(&mut self, fd: BorrowedFd<'_>) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        let mut watched = self.queue.watched();
        if !is_watched(&watched, fd) {
            return Err(WaitError::refused(NAME, "remove", Errno::NOENT).on(fd));
        }
        match self.queue.port.dissociate(fd) {
            // Its event has ended the association.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => {
                let failed = WaitError::kernel(NAME, "remove", "port_dissociate", errno.into());
                return Err(failed.on(fd));
            }
        }
        watched[number(fd)] = false;
        Ok(())
    }

    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<usize, WaitError> {
        events.clear();
        let (port, room) = (&self.queue.port, events.capacity());
        let call = |left| {
            let put = |event: iotomy_ports::Event| {
                events.push(event.user as u64, Ready::from_bits(event.events.cast_unsigned()));
            };
            match port.get_each(room, 1, left, put) {
                Err(Shortfall { errno: Errno::TIME, retrieved }) => Ok(retrieved),
                retrieved => retrieved.map_err(|shortfall| shortfall.errno.into()),
            }
        };
        wait_until(timeout, &mut self.counts.interrupted, call)
            .map_err(|e| WaitError::kernel(NAME, "wait", "port_getn", e))?;
        Ok(events.len())
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.queue.port.descriptors().to_vec()
    }

    fn share(&self) -> Option<Box<dyn Waiter + Send>> {
        Some(Box::new(Self { queue: self.queue.clone(), counts: Counts::default() }))
    }
}
