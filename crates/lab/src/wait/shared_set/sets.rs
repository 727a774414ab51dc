//! The sets that threads share, and the sockets in them.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_ports::{Closes, PollEntry, PollSet, Port, REMOVE, Shortfall};
use iotomy_waiters::rounds::Ring;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::wait::round::refused;

pub(super) const EVENT_PORTS: &str = "event-ports";
pub(super) const DEV_POLL: &str = "dev-poll";
pub(super) const DEV_POLL_LOCK: &str = "dev-poll-lock";

/// A set of descriptors that several threads poll.
pub(super) trait Set: Sync {
    /// Wants the next event of a descriptor, the one at `at` of the sockets.
    fn arm(&self, fd: BorrowedFd<'_>, at: usize) -> Result<(), Errno>;

    /// Waits for one event; returns its descriptor's number, or `None` after the time-out.
    fn wait(&self, timeout: Duration) -> Result<Option<i32>, Errno>;

    /// Takes note that the event of a descriptor was served.
    fn serve(&self, fd: BorrowedFd<'_>, at: usize) -> Result<(), Errno>;
}

/// Opens a set by name.
pub(super) fn open(name: &str) -> Result<Box<dyn Set>, Skip> {
    let poll_set = || PollSet::new().map_err(|e| Skip::refused("open of /dev/poll", e));
    match name {
        EVENT_PORTS => {
            let port = Port::new(Closes::Reported).map_err(|e| Skip::refused("port_create", e))?;
            Ok(Box::new(port))
        }
        DEV_POLL => Ok(Box::new(poll_set()?)),
        DEV_POLL_LOCK => Ok(Box::new(Locked { set: poll_set()?, lock: Mutex::new(()) })),
        _ => Err(Skip(format!("unknown set {name}"))),
    }
}

/// An event ends the association.
impl Set for Port {
    fn arm(&self, fd: BorrowedFd<'_>, at: usize) -> Result<(), Errno> {
        self.associate(fd.as_raw_fd(), PollFlags::IN, at)
    }

    fn wait(&self, timeout: Duration) -> Result<Option<i32>, Errno> {
        let mut event = None;
        match self.get_each(1, 1, Some(timeout), |one| event = i32::try_from(one.object).ok()) {
            Ok(_) | Err(Shortfall { errno: Errno::TIME | Errno::INTR, .. }) => Ok(event),
            Err(shortfall) => Err(shortfall.errno),
        }
    }

    fn serve(&self, fd: BorrowedFd<'_>, at: usize) -> Result<(), Errno> {
        self.arm(fd, at)
    }
}

/// A descriptor is reported as long as it is ready.
impl Set for PollSet {
    fn arm(&self, fd: BorrowedFd<'_>, _: usize) -> Result<(), Errno> {
        self.write(&[entry(fd.as_raw_fd(), PollFlags::IN.bits())])
    }

    fn wait(&self, timeout: Duration) -> Result<Option<i32>, Errno> {
        let mut event = None;
        match self.poll(1, Some(timeout), None, |one| event = Some(one.fd)) {
            Ok(_) | Err(Errno::INTR) => Ok(event),
            Err(errno) => Err(errno),
        }
    }

    fn serve(&self, _: BorrowedFd<'_>, _: usize) -> Result<(), Errno> {
        Ok(())
    }
}

/// A `/dev/poll` set whose threads exclude each other from the poll to the removal of the
/// descriptor.
struct Locked {
    set: PollSet,
    lock: Mutex<()>,
}

impl Set for Locked {
    fn arm(&self, fd: BorrowedFd<'_>, at: usize) -> Result<(), Errno> {
        self.set.arm(fd, at)
    }

    fn wait(&self, timeout: Duration) -> Result<Option<i32>, Errno> {
        let _lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let event = self.set.wait(timeout)?;
        if let Some(fd) = event {
            self.set.write(&[entry(fd, REMOVE)])?;
        }
        Ok(event)
    }

    fn serve(&self, fd: BorrowedFd<'_>, at: usize) -> Result<(), Errno> {
        self.set.arm(fd, at)
    }
}

fn entry(fd: i32, events: u16) -> PollEntry {
    PollEntry { fd, events, revents: 0 }
}

/// A set, and the pairs of sockets of which it watches one end.
pub(super) struct Shared {
    set: Box<dyn Set>,
    ring: Ring,
    /// The place among the sockets, by a descriptor's number.
    places: Vec<usize>,
}

impl Shared {
    pub(super) fn new(name: &str, sockets: usize) -> Result<Self, Skip> {
        let (set, ring) = (open(name)?, Ring::new(sockets).map_err(refused)?);
        let mut places = Vec::new();
        for at in 0..ring.pairs() {
            let reader = ring.reader(at);
            let number = usize::try_from(reader.as_raw_fd()).unwrap_or_default();
            places.resize(places.len().max(number + 1), 0);
            places[number] = at;
            set.arm(reader, at).map_err(|e| Skip::refused("watch of a socket", e))?;
        }
        Ok(Self { set, ring, places })
    }

    pub(super) fn sockets(&self) -> usize {
        self.ring.pairs()
    }

    /// Sends a byte to a socket: its next event.
    pub(super) fn send(&self, at: usize) -> Result<(), Errno> {
        send(self.ring.writer(at), b"e", SendFlags::empty()).map(drop)
    }

    /// Waits for an event; returns its socket.
    pub(super) fn wait(&self, timeout: Duration) -> Result<Option<usize>, Errno> {
        let fd = self.set.wait(timeout)?;
        Ok(fd.and_then(|fd| self.places.get(usize::try_from(fd).ok()?).copied()))
    }

    /// Receives the byte of a socket; false if there was none: another thread was told, too.
    pub(super) fn receive(&self, at: usize) -> Result<bool, Errno> {
        match recv(self.ring.reader(at), &mut [0_u8; 1], RecvFlags::empty()) {
            Ok((received, _)) => Ok(received == 1),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Wants the next event of a socket that was served.
    pub(super) fn served(&self, at: usize) -> Result<(), Errno> {
        self.set.serve(self.ring.reader(at), at)
    }
}
