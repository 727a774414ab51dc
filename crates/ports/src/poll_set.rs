//! A set of descriptors that is polled again and again, as Solaris' `/dev/poll`: events are the level.
//!
//! It is an `epoll(7)` set, level-triggered. What `epoll` does not have is in a list of its own: files
//! that it refuses because they are always ready, and numbers that are closed, which are reported as
//! such until they are removed or open again. An eventfd in the set is readable as long as the list has
//! something to report, so that a thread that sleeps looks at it.
//!
//! The one invariant: a child has no part in it. Its parent's set would change with what the child
//! does, as the kernel's set is one.

use std::ops::{Deref, DerefMut, RangeInclusive};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use iotomy_sys::epoll::{Change, EpollEvent, epoll_create1, epoll_ctl, epoll_pwait2, epoll_wait};
use iotomy_sys::private_fd::PrivateFd;
use iotomy_sys::{forks, same_file};
use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::io::Errno;

use crate::errno::errno;
use crate::inside::{Inside, NotedCloses, is_inside};
use crate::numbers::NumberMap;
use crate::port::{READABLE, always_ready};
use crate::retrieve::Deadline;

/// A descriptor, the events that are wanted, and those that there are (`struct pollfd`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct PollEntry {
    /// The descriptor.
    pub fd: RawFd,
    /// The events that are wanted.
    pub events: u16,
    /// The events that there are.
    pub revents: u16,
}

/// In the events of an entry: removes the descriptor (`POLLREMOVE`).
pub const REMOVE: u16 = 0x1000;

/// The eventfd's place in the set.
const NUDGE: u64 = u64::MAX;

/// A set of descriptors that is polled.
#[derive(Debug)]
pub struct PollSet {
    epoll: PrivateFd,
    nudge: PrivateFd,
    depth: u64,
    noted: NotedCloses,
    set: Mutex<Set>,
}

/// The set, with its lock held, which is released before the thread is outside.
struct LockedSet<'p> {
    set: MutexGuard<'p, Set>,
    _inside: Inside,
}

impl Deref for LockedSet<'_> {
    type Target = Set;

    fn deref(&self) -> &Set {
        &self.set
    }
}

impl DerefMut for LockedSet<'_> {
    fn deref_mut(&mut self) -> &mut Set {
        &mut self.set
    }
}

#[derive(Debug, Default)]
struct Set {
    entries: NumberMap<RawFd, Wanted>,
    /// Those that are not in the kernel's set.
    outside: Outside,
    is_nudged: bool,
    generation: u32,
    /// Room for the kernel's events, between calls.
    room: Vec<EpollEvent>,
}

#[derive(Debug, Clone, Copy)]
struct Wanted {
    events: u16,
    /// What is in the tag beside the number, so that events of closed files are told apart.
    generation: u32,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Kernel,
    AlwaysReady,
    Closed,
}

/// Descriptors in order. As many as there are entries find room, so that a close in the handler of a signal,
/// which may have interrupted who allocates memory, does not ask for any.
#[derive(Debug, Default)]
struct Outside(Vec<RawFd>);

impl Outside {
    fn reserve(&mut self, entries: usize) {
        self.0.reserve(entries.saturating_sub(self.0.len()));
    }

    fn insert(&mut self, fd: RawFd) {
        if let Err(at) = self.0.binary_search(&fd) {
            self.0.insert(at, fd);
        }
    }

    fn remove(&mut self, fd: RawFd) {
        if let Ok(at) = self.0.binary_search(&fd) {
            self.0.remove(at);
        }
    }
}

impl PollSet {
    /// Makes an empty set (`open` of `/dev/poll`).
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE` and `ENOMEM`, as epoll_create1(2) and eventfd(2).
    pub fn new() -> Result<Self, Errno> {
        let epoll = PrivateFd::from(epoll_create1().map_err(errno)?);
        let nudge = PrivateFd::from(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let event = EpollEvent { events: READABLE, data: NUDGE };
        epoll_ctl(epoll.as_fd(), Change::Add, nudge.as_fd().as_raw_fd(), event).map_err(errno)?;
        let (depth, noted) = (forks::depth(), NotedCloses::new());
        Ok(Self { epoll, nudge, depth, noted, set: Mutex::default() })
    }

    fn set(&self) -> Result<LockedSet<'_>, Errno> {
        // A child never waits for the lock, which a thread may hold that it does not have.
        if self.depth != forks::depth() {
            return Err(Errno::ACCESS);
        }
        let inside = Inside::enter();
        let set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        let mut locked = LockedSet { set, _inside: inside };
        self.noted.take(|fds| self.close_range(&mut locked, &fds));
        Ok(locked)
    }

    /// Adds descriptors, or events to those that are there, or removes them (`write`).
    ///
    /// # Errors
    /// `EACCES` in a child of the process that made the set; `ENOMEM`, and `ENOSPC` if the user watches
    /// too many descriptors, after the entries before.
    pub fn write(&self, entries: &[PollEntry]) -> Result<(), Errno> {
        let mut set = self.set()?;
        let mut done = Ok(());
        for entry in entries.iter().filter(|entry| entry.fd >= 0) {
            if entry.events & REMOVE != 0 {
                if let Some(wanted) = set.entries.remove(&entry.fd) {
                    self.take_out(entry.fd, wanted);
                    set.outside.remove(entry.fd);
                }
            } else {
                done = self.put_in(&mut set, entry.fd, entry.events);
                if done.is_err() {
                    break;
                }
            }
        }
        self.settle(&mut set);
        done
    }

    /// Waits until descriptors have events, and gives them to `put`, no more than there is room for.
    /// Returns their number, 0 after the timeout. During the wait the signals of `mask` are blocked
    /// instead of the thread's own (`DP_POLL`, `DP_PPOLL`).
    ///
    /// # Errors
    /// `EINTR` after a signal, `EACCES` in a child of the process that made the set.
    pub fn poll(
        &self,
        room: usize,
        timeout: Option<Duration>,
        mask: Option<u64>,
        mut put: impl FnMut(PollEntry),
    ) -> Result<usize, Errno> {
        if room == 0 {
            return self.sleep(timeout, mask);
        }
        let deadline = Deadline::after(timeout);
        loop {
            let mut set = self.set()?;
            let mut count = self.report_outside(&mut set, room, &mut put);
            if count == room {
                return Ok(count);
            }
            let mut batch = std::mem::take(&mut set.room);
            // No more than there is room for: the kernel's list goes on behind those that it gave out.
            let wanted = (room - count).min(set.entries.len()).max(1);
            batch.resize(wanted.max(batch.len()), EpollEvent::default());
            let left = if count > 0 { Some(Duration::ZERO) } else { deadline.left() };
            let (epoll, room_for) = (self.epoll.as_fd(), &mut batch[..wanted]);
            let (fired, mut set) = if left == Some(Duration::ZERO) && mask.is_none() {
                // A look does not block, so the lock is kept.
                (epoll_wait(epoll, room_for, 0), set)
            } else {
                drop(set);
                let fired = match (left, mask) {
                    (None, None) => epoll_wait(epoll, room_for, -1),
                    (left, mask) => epoll_pwait2(epoll, room_for, left, mask),
                };
                (fired, self.set()?)
            };
            let fired = fired.map_err(errno);
            if fired == Ok(wanted) {
                self.replace_nudge(&mut batch[..wanted]);
            }
            for event in &batch[..fired.unwrap_or(0)] {
                let Some(entry) = set.entry_of(*event).filter(|_| count < room) else { continue };
                put(entry);
                count += 1;
            }
            set.room = batch;
            match fired {
                Err(Errno::INTR) if count > 0 => return Ok(count),
                Err(error) => return Err(error),
                Ok(_) if count > 0 || deadline.has_passed() => return Ok(count),
                Ok(_) => {}
            }
        }
    }

    /// A wait without room, which nothing that is ready ends.
    fn sleep(&self, timeout: Option<Duration>, mask: Option<u64>) -> Result<usize, Errno> {
        drop(self.set()?);
        let empty = PrivateFd::from(epoll_create1().map_err(errno)?);
        let room = &mut [EpollEvent::default()];
        epoll_pwait2(empty.as_fd(), room, timeout, mask).map_err(errno)
    }

    /// Puts the next event of the kernel's list into the place that the eventfd has taken.
    fn replace_nudge(&self, fired: &mut [EpollEvent]) {
        let Some(at) = fired.iter().position(|event| { event.data } == NUDGE) else { return };
        let mut next = [EpollEvent::default()];
        if let Ok(1) = epoll_wait(self.epoll.as_fd(), &mut next, 0)
            // Behind the last one, the list begins again.
            && fired.iter().all(|event| { event.data } != { next[0].data })
        {
            fired[at] = next[0];
        }
    }

    /// The events that are wanted of a descriptor, if it is in the set (`DP_ISPOLLED`).
    ///
    /// # Errors
    /// `EACCES` in a child of the process that made the set.
    pub fn wanted(&self, fd: RawFd) -> Result<Option<u16>, Errno> {
        Ok(self.set()?.entries.get(&fd).map(|wanted| wanted.events))
    }

    /// Takes note that the caller is about to close a descriptor. It stays in the set, and is reported
    /// with `POLLNVAL` until it is removed, or open again: it is the new file then.
    pub fn forget(&self, fd: RawFd) {
        if let Ok(fd) = u32::try_from(fd) {
            self.forget_range(fd, fd);
        }
    }

    /// [`Self::forget`] for all descriptors of a range, both ends included.
    pub fn forget_range(&self, first: u32, last: u32) {
        // A child closes copies.
        if self.depth != forks::depth() {
            return;
        }
        if is_inside() {
            self.noted.note(first..=last, &[&self.epoll]);
            return;
        }
        if let Ok(mut set) = self.set() {
            self.close_range(&mut set, &(first..=last));
        }
    }

    /// The entries of a range are of closed descriptors from now on. Asks for no memory: see [`Outside`].
    fn close_range(&self, set: &mut Set, range: &RangeInclusive<u32>) {
        let first = range.start().cast_signed();
        let Set { entries, outside, .. } = &mut *set;
        let mut is_changed = false;
        let mut close = |fd: RawFd, wanted: &mut Wanted| {
            self.take_out(fd, *wanted);
            wanted.place = Place::Closed;
            outside.insert(fd);
            is_changed = true;
        };
        if range.start() == range.end() {
            if let Some(wanted) = entries.get_mut(&first) {
                close(first, wanted);
            }
        } else {
            for (fd, wanted) in entries.iter_mut() {
                if range.contains(&fd.cast_unsigned()) {
                    close(*fd, wanted);
                }
            }
        }
        if is_changed {
            self.settle(set);
        }
    }

    fn take_out(&self, fd: RawFd, wanted: Wanted) {
        if wanted.place == Place::Kernel {
            // Fails if the kernel has dropped it with its file.
            let _ = epoll_ctl(self.epoll.as_fd(), Change::Remove, fd, EpollEvent::default());
        }
    }

    fn put_in(&self, set: &mut Set, fd: RawFd, events: u16) -> Result<(), Errno> {
        let known = set.entries.get(&fd).copied();
        let events = events | known.map_or(0, |known| known.events);
        set.generation = set.generation.wrapping_add(1);
        let generation = set.generation;
        let tag = u64::from(generation) << 32 | u64::from(fd.cast_unsigned());
        let event = EpollEvent { events: events.into(), data: tag };
        let control = |change| epoll_ctl(self.epoll.as_fd(), change, fd, event).map_err(errno);
        let in_kernel = known.is_some_and(|known| known.place == Place::Kernel);
        let first = if in_kernel { Change::Modify } else { Change::Add };
        let done = match (first, control(first)) {
            (Change::Modify, Err(Errno::NOENT)) => control(Change::Add),
            (Change::Add, Err(Errno::EXIST)) => control(Change::Modify),
            (_, done) => done,
        };
        let place = match done {
            Ok(()) => Place::Kernel,
            Err(Errno::PERM) => Place::AlwaysReady,
            // The set itself, and others that contain it, are never ready.
            Err(Errno::BADF | Errno::INVAL | Errno::LOOP) => Place::Closed,
            Err(error) => return Err(error),
        };
        set.entries.insert(fd, Wanted { events, generation, place });
        set.outside.reserve(set.entries.len());
        match place {
            Place::Kernel => set.outside.remove(fd),
            Place::AlwaysReady | Place::Closed => set.outside.insert(fd),
        }
        Ok(())
    }

    /// Reports what is not in the kernel's set.
    fn report_outside(&self, set: &mut Set, room: usize, put: &mut impl FnMut(PollEntry)) -> usize {
        let mut count = 0;
        for fd in set.outside.0.clone() {
            let is_closed = |set: &Set| set.entries.get(&fd).is_some_and(Wanted::is_closed);
            if is_closed(set) && same_file::is_open(fd) && self.put_in(set, fd, 0).is_err() {
                continue;
            }
            let Some(wanted) = set.entries.get(&fd) else { continue };
            let revents = wanted.revents();
            if revents != 0 && count < room {
                put(PollEntry { fd, events: wanted.events, revents });
                count += 1;
            }
        }
        self.settle(set);
        count
    }

    /// Makes the eventfd readable if there is something to report outside of the kernel's set.
    fn settle(&self, set: &mut Set) {
        let entries = &set.entries;
        let is_reported = |fd| entries.get(fd).is_some_and(|wanted| wanted.revents() != 0);
        let is_needed = set.outside.0.iter().any(is_reported);
        if is_needed != set.is_nudged {
            // Neither can fail: the counter is 0 or 1.
            let _ = match is_needed {
                true => rustix::io::write(&self.nudge, &1u64.to_ne_bytes()),
                false => rustix::io::read(&self.nudge, &mut [0; 8][..]),
            };
            set.is_nudged = is_needed;
        }
    }
}

impl Set {
    fn entry_of(&self, event: EpollEvent) -> Option<PollEntry> {
        let (fd, generation) = ((event.data as u32).cast_signed(), (event.data >> 32) as u32);
        let wanted = self.entries.get(&fd)?;
        let is_current = wanted.generation == generation && wanted.place == Place::Kernel;
        is_current.then_some(PollEntry { fd, events: wanted.events, revents: event.events as u16 })
    }
}

impl Wanted {
    fn is_closed(&self) -> bool {
        self.place == Place::Closed
    }

    /// The events of an entry that is not in the kernel's set.
    fn revents(&self) -> u16 {
        match self.place {
            Place::Kernel => 0,
            Place::AlwaysReady => self.events & always_ready().bits(),
            Place::Closed => PollFlags::NVAL.bits(),
        }
    }
}

impl AsFd for PollSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
