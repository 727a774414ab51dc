//! The common part of the two modes of io_uring(7): a ring, and a request for each descriptor that
//! stays until the descriptor is removed.
//!
//! The one invariant: a request carries the number of its descriptor and how often that number has
//! been added; completions of an earlier one with the same number are dropped.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use iotomy_sys::wait_ring::{CANCELLED, Completion, WaitRing};
use rustix::io::Errno;

use crate::deadline::wait_until;
use crate::{
    Counts, Events, Interest, Probe, Ready, Settings, WaitError, Waiter, WaiterDeclaration, Waker,
};

/// Completions a ring has room for at least, and at most.
const LEAST: usize = 512;
const MOST: usize = 32_768;

/// Buffers a ring that receives is given: each is taken only from a completion to its event.
const BUFFERS: u16 = 1024;

/// How a ring watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingMode {
    /// By requests that poll.
    Poll,
    /// By requests that receive.
    Receive,
}

/// A descriptor, by its number.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    token: u64,
    /// The watched events, in poll(2)'s bits; 0 when it is not watched.
    asked: u32,
    /// How often this number has been added.
    times: u32,
    /// Whether its request goes on.
    is_live: bool,
    /// The last wait that reported it, and its position in the events.
    told: (u64, usize),
}

pub(crate) struct RingSet {
    declaration: &'static WaiterDeclaration,
    way: RingMode,
    ring: WaitRing,
    slots: Vec<Slot>,
    /// Completions that were read while another one was searched.
    backlog: VecDeque<Completion>,
    /// How many waits there have been.
    waits: u64,
    counts: Counts,
}

impl RingSet {
    pub(crate) fn open(
        declaration: &'static WaiterDeclaration,
        way: RingMode,
        settings: &Settings,
    ) -> Result<Box<dyn Waiter>, WaitError> {
        let refused = |(call, error)| WaitError::kernel(declaration.name, "open", call, error);
        let room = (2 * settings.descriptors).clamp(LEAST, MOST);
        let mut ring =
            WaitRing::new(u32::try_from(room).expect("at most 32,768")).map_err(refused)?;
        if way == RingMode::Receive {
            ring.provide(BUFFERS, settings.buffer_bytes.max(1)).map_err(refused)?;
        }
        let (slots, backlog) = (Vec::new(), VecDeque::new());
        let (waits, counts) = (0, Counts::default());
        Ok(Box::new(Self { declaration, way, ring, slots, backlog, waits, counts }))
    }

    fn slot(&mut self, fd: RawFd, attempt: &'static str) -> Result<&mut Slot, WaitError> {
        let name = self.declaration.name;
        let number = usize::try_from(fd);
        match number.ok().and_then(|number| self.slots.get_mut(number)) {
            Some(slot) if slot.asked != 0 => Ok(slot),
            _ => Err(WaitError::refused(name, attempt, Errno::NOENT).on(fd)),
        }
    }

    /// Makes the request of a descriptor that is watched.
    fn arm(&mut self, fd: RawFd) -> std::io::Result<()> {
        let slot = &mut self.slots[number(fd)];
        slot.is_live = true;
        let user_data = user_data(fd, slot.times);
        match self.way {
            RingMode::Poll => self.ring.poll(fd, slot.asked, user_data),
            RingMode::Receive => self.ring.receive(fd, user_data),
        }
    }

    /// Ends the request of a descriptor, and returns when the kernel has released it.
    fn disarm(&mut self, fd: RawFd) -> std::io::Result<()> {
        let slot = &mut self.slots[number(fd)];
        if !std::mem::take(&mut slot.is_live) {
            return Ok(());
        }
        let own = user_data(fd, slot.times);
        self.ring.cancel(own)?;
        let (mut is_over, mut answer) = (false, None);
        // A request that the kernel does not find any more has sent its last completion.
        while answer.is_none() || (answer == Some(0) && !is_over) {
            let Some(completion) = self.ring.take() else {
                match self.ring.enter(None) {
                    Err(error) if !is_interruption(&error) => return Err(error),
                    _ => continue,
                }
            };
            match completion.user_data {
                CANCELLED => answer = Some(completion.result),
                user_data if user_data == own => {
                    is_over |= !completion.more;
                    self.leave_out(completion);
                }
                _ => self.backlog.push_back(completion),
            }
        }
        Ok(())
    }

    /// It is not reported; a buffer is returned.
    fn leave_out(&mut self, completion: Completion) {
        if completion.result != -Errno::CANCELED.raw_os_error() {
            self.counts.stale += 1;
        }
        if let Some(id) = completion.buffer {
            self.ring.give_back(id);
        }
    }

    /// Makes events of completions while there is room.
    fn collect(&mut self, events: &mut Events) -> std::io::Result<()> {
        while events.room() > 0 {
            let taken = self.backlog.pop_front().or_else(|| self.ring.take());
            let Some(completion) = taken else { break };
            self.tell(completion, events)?;
        }
        Ok(())
    }

    #[inline]
    fn tell(&mut self, completion: Completion, events: &mut Events) -> std::io::Result<()> {
        let (fd, times) = parts(completion.user_data);
        let slot = match self.slots.get_mut(number(fd)) {
            Some(slot) if slot.times == times && slot.asked != 0 => slot,
            _ => {
                self.leave_out(completion);
                return Ok(());
            }
        };
        let (token, result) = (slot.token, completion.result);
        let mut goes_on = completion.more;
        match self.way {
            _ if result == -Errno::NOBUFS.raw_os_error() => {}
            RingMode::Poll if result >= 0 => {
                let ready = Ready::from_bits(result.unsigned_abs());
                goes_on |= ready.intersects(Ready::HANG_UP | Ready::ERROR);
                if slot.told.0 == self.waits {
                    events.add_to(slot.told.1, ready);
                } else {
                    slot.told = (self.waits, events.len());
                    events.push(token, ready);
                }
            }
            RingMode::Receive if result > 0 => {
                let id = completion.buffer.expect("the received bytes are in a buffer");
                let length = usize::try_from(result).expect("it is above 0");
                events.push_received(token, self.ring.buffer(id, length));
                self.ring.give_back(id);
            }
            RingMode::Receive if result == 0 => {
                goes_on = true;
                events.push_received_nothing(token, Ready::READABLE | Ready::PEER_CLOSED);
            }
            _ => {
                goes_on = true;
                let is_none = result == -Errno::BADF.raw_os_error();
                let ready = if is_none { Ready::INVALID } else { Ready::ERROR };
                events.push_received_nothing(token, ready);
            }
        }
        if completion.more {
            return Ok(());
        }
        self.slots[number(fd)].is_live = false;
        if !goes_on {
            // It found no buffer, or no room to report it; no other request will.
            self.counts.rearmed += 1;
            self.arm(fd)?;
        }
        Ok(())
    }

    fn failed(&self, attempt: &'static str, error: std::io::Error) -> WaitError {
        WaitError::kernel(self.declaration.name, attempt, "io_uring_enter", error)
    }
}

fn is_interruption(error: &std::io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::INTR)
}

fn number(fd: RawFd) -> usize {
    usize::try_from(fd).expect("negative descriptors are invalid")
}

fn user_data(fd: RawFd, times: u32) -> u64 {
    u64::from(times) << 32 | u64::from(fd.unsigned_abs())
}

fn parts(user_data: u64) -> (RawFd, u32) {
    let fd = i32::try_from(user_data & 0x7fff_ffff).expect("31 bits");
    (fd, (user_data >> 32) as u32)
}

/// Whether a trial with a pair of sockets reports the right events.
pub(crate) fn probe(declaration: &'static WaiterDeclaration) -> Probe {
    let trial = || -> Result<Option<Ready>, WaitError> {
        let mut waiter = (declaration.open)(&Settings::default())?;
        let waker = Waker::new(waiter.as_mut(), 0)?;
        waker.wake();
        let mut events = Events::with_capacity(1);
        waiter.wait(&mut events, Some(Duration::from_secs(10)))?;
        Ok(events.iter().next().map(|event| event.ready))
    };
    match trial() {
        Ok(Some(ready)) if ready == Ready::READABLE => Probe::Ready,
        Ok(told) => Probe::Unsupported(format!("the kernel refuses this request: {told:?}")),
        Err(error) => Probe::Unsupported(error.to_string()),
    }
}

impl Waiter for RingSet {
    fn declaration(&self) -> &'static WaiterDeclaration {
        self.declaration
    }

    fn add(&mut self, fd: BorrowedFd<'_>, interest: Interest, token: u64) -> Result<(), WaitError> {
        let (name, fd_number) = (self.declaration.name, fd.as_raw_fd());
        if self.way == RingMode::Receive {
            receivable(name, fd, interest)?;
        }
        if self.slots.len() <= number(fd_number) {
            self.slots.resize(number(fd_number) + 1, Slot::default());
        }
        let slot = &mut self.slots[number(fd_number)];
        if slot.asked != 0 {
            return Err(WaitError::refused(name, "watch", Errno::EXIST).on(fd_number));
        }
        let times = slot.times.wrapping_add(1) & 0x7fff_ffff;
        *slot = Slot { token, asked: interest.bits(), times, is_live: false, told: (0, 0) };
        self.arm(fd_number).map_err(|e| {
            self.slots[number(fd_number)].asked = 0;
            self.failed("watch", e).on(fd_number)
        })
    }

    fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> Result<(), WaitError> {
        self.slot(fd.as_raw_fd(), "modify")?;
        if self.way == RingMode::Receive {
            receivable(self.declaration.name, fd, interest)?;
            // Bytes that it has received meanwhile must not be lost.
            self.slot(fd.as_raw_fd(), "modify")?.token = token;
            return Ok(());
        }
        self.remove(fd)?;
        self.add(fd, interest, token)
    }

    fn remove(&mut self, fd: BorrowedFd<'_>) -> Result<(), WaitError> {
        let number = fd.as_raw_fd();
        self.slot(number, "remove")?.asked = 0;
        self.disarm(number).map_err(|e| self.failed("remove", e).on(number))
    }

    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<usize, WaitError> {
        events.clear();
        self.waits += 1;
        let mut interrupted = 0;
        let mut once = || -> std::io::Result<()> {
            self.collect(events)?;
            if events.room() == 0 {
                return Ok(());
            }
            let timeout = if events.is_empty() { timeout } else { Some(Duration::ZERO) };
            wait_until(timeout, &mut interrupted, |left| {
                self.ring.enter(left)?;
                if self.ring.is_overflown() {
                    self.counts.overflows += 1;
                }
                self.collect(events)?;
                Ok(events.len())
            })
            .map(drop)
        };
        let waited = once();
        self.counts.interrupted += interrupted;
        waited.map_err(|e| self.failed("wait", e))?;
        Ok(events.len())
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

/// Whether a descriptor can be received from at all.
fn receivable(name: &'static str, fd: BorrowedFd<'_>, interest: Interest) -> Result<(), WaitError> {
    let refused = |errno, hint| {
        Err(WaitError::refused(name, "watch", errno).on(fd.as_raw_fd()).hinting(hint))
    };
    if interest.writes() {
        return refused(Errno::INVAL, "it receives, and does not wait for writability");
    }
    match rustix::net::sockopt::socket_acceptconn(fd) {
        Ok(false) => Ok(()),
        Ok(true) => refused(Errno::INVAL, "a listening socket receives connections, not bytes"),
        Err(errno) => refused(errno, "it receives from sockets only"),
    }
}
