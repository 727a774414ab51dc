//! FreeBSD's kqueue: a queue of what happens to descriptors, timers and the program's own events, of
//! which the program says what it watches.
//!
//! The words of kqueue(2) are the specification. As in the kernel that it comes from, a note becomes
//! *active* when something happens, and its filter is asked again before an event is returned. What
//! happens is told by two `epoll(7)` sets, one for what is read and one for what is written, so that each
//! note has an entry of its own: the first set contains the second, and an eventfd that is readable as long
//! as notes are active, so that the queue can be polled, and threads that sleep learn of them.
//!
//! A note of a descriptor that tells of the level is in its set as such: the set tells of it again with each
//! call, so it does not stay active, and what the set has just told is not asked for a second time. While no
//! other note is active, its event is returned as soon as the set tells of it.
//!
//! The tricky invariant: whether a new or changed note of a descriptor is active is left to the set,
//! which reports an entry that was added or modified if it is ready. If the queue looked itself, an
//! edge would be reported twice.

mod change;
mod descriptor;
mod harvest;
mod kevent;
mod notes;
mod process;
mod signal;
mod timer;
mod user;
mod vnode;
mod watched;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use iotomy_sys::epoll::{Change, EpollEvent, EventBuffer, epoll_create1, epoll_ctl};
use iotomy_sys::forks;
use iotomy_sys::private_fd::PrivateFd;
use iotomy_sys::signal_watch;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::errno::errno;
use crate::inside::{Inside, NotedCloses, is_inside};
use crate::port::{Closes, READABLE};
use crate::retrieve::Deadline;
use harvest::Out;
pub use kevent::{Kevent, filter, flag, note};
use notes::{Notes, Tag};

/// Places in the first set that are no note's; no note has these numbers. They are [`OTHERS`].
const NUDGE: u64 = u64::MAX;
const WRITES: u64 = u64::MAX - 1;
const CHANGES: u64 = u64::MAX - 2;
const PROCESSES: u64 = u64::MAX - 3;
const OTHERS: usize = 4;

/// The kernel's events that are taken in one call.
const BATCH: usize = 256;

type Batch = EventBuffer<BATCH>;

/// How long a thread sleeps while there are notes of which the kernel tells no edge.
const NAP: Duration = Duration::from_millis(1);

/// A queue of events (`kqueue`).
///
/// It is of one process: a child has no part in it.
#[derive(Debug)]
pub struct Kqueue {
    epoll: PrivateFd,
    writes: PrivateFd,
    nudge: PrivateFd,
    closes: Closes,
    depth: u64,
    is_closed: AtomicBool,
    noted: NotedCloses,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    notes: Notes,
    /// How often the queue was looked at or changed: what an earlier look found may be so no more.
    round: u64,
    files: vnode::Files,
    processes: process::Processes,
    is_nudged: bool,
    /// Notes that are to be asked again after a nap.
    asked_again: Vec<Tag>,
}

/// The state, with its lock held. The lock goes first.
struct Locked<'q> {
    state: MutexGuard<'q, State>,
    _inside: Inside,
}

/// What a filter says of an active note.
enum Verdict {
    /// It has an event.
    Event(Kevent),
    Nothing,
    /// Nothing yet, and the kernel does not tell when.
    AskAgain,
    /// Its descriptor was closed.
    Gone,
}

impl Kqueue {
    /// Makes a queue.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE` and `ENOMEM`, as epoll_create1(2) and eventfd(2).
    pub fn new(closes: Closes) -> Result<Self, Errno> {
        let epoll = PrivateFd::from(epoll_create1().map_err(errno)?);
        let writes = PrivateFd::from(epoll_create1().map_err(errno)?);
        let nudge = PrivateFd::from(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        for (fd, data) in [(&nudge, NUDGE), (&writes, WRITES)] {
            let event = EpollEvent { events: READABLE, data };
            let fd = fd.as_fd().as_raw_fd();
            epoll_ctl(epoll.as_fd(), Change::Add, fd, event).map_err(errno)?;
        }
        Ok(Self {
            epoll,
            writes,
            nudge,
            closes,
            depth: forks::depth(),
            is_closed: AtomicBool::new(false),
            noted: NotedCloses::new(),
            state: Mutex::default(),
        })
    }

    /// Makes changes, and then waits for events if none of the changes had an outcome to report: both
    /// halves of `kevent`. Returns how many were given to `put`.
    ///
    /// # Errors
    /// As [`Self::apply`] and [`Self::wait`].
    pub fn kevent(
        &self,
        changes: &[Kevent],
        room: usize,
        timeout: Option<Duration>,
        mut put: impl FnMut(Kevent),
    ) -> Result<usize, Errno> {
        match self.apply(changes.iter().copied(), room, &mut put)? {
            0 => self.wait(room, timeout, put),
            reported => Ok(reported),
        }
    }

    /// Makes changes, in order. The outcome of one that failed, or that asks for a receipt, is given to
    /// `put`. Returns their number. Those behind one whose receipt has no room are not made.
    ///
    /// # Errors
    /// That of the first change that failed and for whose outcome there is no room; those after it are
    /// not made. `EBADF` in a child of the process that made the queue, and after its close.
    pub fn apply(
        &self,
        changes: impl IntoIterator<Item = Kevent>,
        room: usize,
        mut put: impl FnMut(Kevent),
    ) -> Result<usize, Errno> {
        let mut locked = self.lock()?;
        let state = &mut *locked.state;
        state.round += 1;
        let mut reported = 0;
        // A change without a filter is none.
        for change in changes.into_iter().filter(|change| change.filter != 0) {
            let error = match self.change(state, change) {
                Ok(()) if change.flags & flag::RECEIPT == 0 => continue,
                Ok(()) if reported == room => break,
                Ok(()) => 0,
                Err(error) if reported == room => {
                    self.settle(state);
                    return Err(error);
                }
                Err(error) => error.raw_os_error(),
            };
            put(Kevent { flags: flag::ERROR, data: error.into(), ..change });
            reported += 1;
        }
        self.settle(state);
        Ok(reported)
    }

    /// Waits until there are events, and gives them to `put`, no more than there is room for. Returns
    /// their number, 0 after the timeout, and at once if there is no room.
    ///
    /// # Errors
    /// `EINTR` after a signal, `EBADF` in a child of the process that made the queue, and after its close.
    pub fn wait(
        &self,
        room: usize,
        timeout: Option<Duration>,
        mut put: impl FnMut(Kevent),
    ) -> Result<usize, Errno> {
        if room == 0 {
            return self.check().map(|()| 0);
        }
        let deadline = Deadline::after(timeout);
        let mut batch = Batch::new();
        let mut before = 0;
        loop {
            let mut locked = self.lock()?;
            let state = &mut *locked.state;
            // Threads that came in between may have returned what the sets told this one.
            let is_now = state.round == before;
            state.round += 1;
            let again = std::mem::take(&mut state.asked_again);
            again.into_iter().for_each(|tag| state.notes.activate(tag));
            let mut out = Out { room, got: 0, put: &mut put };
            let limit = room.min(BATCH);
            let fired = batch.events().len();
            self.absorb(state, (batch.events(), is_now), room, &mut out);
            let is_last = deadline.has_passed();
            let may_be_more = fired == limit && fired < room;
            if may_be_more || fired == 0 && (is_last || state.notes.has_active()) {
                self.harvest(state, room - fired, &mut out);
            }
            self.scan(state, &mut out);
            self.settle(state);
            if out.got > 0 || is_last {
                return Ok(out.got);
            }
            let is_told_of_all = state.asked_again.is_empty();
            before = state.round;
            drop(locked);
            if self.is_closed.load(Ordering::SeqCst) {
                return Err(Errno::BADF);
            }
            let left = match (is_told_of_all, deadline.left()) {
                (true, left) => left,
                (false, left) => Some(left.map_or(NAP, |left| left.min(NAP))),
            };
            let unhandled = signal_watch::unhandled();
            let slept = match left {
                None => batch.wait(self.epoll.as_fd(), limit, -1),
                Some(Duration::ZERO) => batch.wait(self.epoll.as_fd(), limit, 0),
                Some(left) => batch.wait_for(self.epoll.as_fd(), limit, left),
            };
            match slept.map_err(errno) {
                Ok(_) => {}
                Err(Errno::INTR) => {
                    // Of a signal that is an event here, the event is told.
                    let got = self.poll(room, &mut put)?;
                    if got > 0 {
                        return Ok(got);
                    }
                    if signal_watch::unhandled() == unhandled {
                        return Err(Errno::INTR);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The events that there are now.
    fn poll(&self, room: usize, put: &mut impl FnMut(Kevent)) -> Result<usize, Errno> {
        let mut locked = self.lock()?;
        let state = &mut *locked.state;
        state.round += 1;
        let mut out = Out { room, got: 0, put };
        self.harvest(state, room, &mut out);
        self.scan(state, &mut out);
        self.settle(state);
        Ok(out.got)
    }

    /// How many events a thread that waits would be given now, at most.
    pub fn pending(&self) -> usize {
        let Ok(mut locked) = self.lock() else { return 0 };
        let state = &mut *locked.state;
        state.round += 1;
        let count = state.notes.count();
        self.harvest(state, count, &mut Out { room: 0, got: 0, put: |_| {} });
        self.settle(state);
        state.notes.active_count()
    }

    /// Takes note that the caller is about to close a descriptor, which ends what is watched of it.
    /// Without it, a duplicate would keep that alive; see [`Closes`].
    pub fn forget(&self, fd: RawFd) {
        if let Ok(fd) = u32::try_from(fd) {
            self.forget_range(fd, fd);
        }
    }

    /// [`Self::forget`] for all descriptors of a range, both ends included.
    pub fn forget_range(&self, first: u32, last: u32) {
        if self.depth != forks::depth() {
            return;
        }
        if is_inside() {
            self.noted.note(first..=last, &[&self.epoll, &self.writes]);
            return;
        }
        let Ok(mut locked) = self.lock() else { return };
        self.end_range(&mut locked.state, &(first..=last));
        self.settle(&mut locked.state);
    }

    /// Ends the queue: threads that wait return with `EBADF`.
    pub fn close(&self) {
        if self.depth == forks::depth() {
            // Nobody else silences the eventfd then. The handler of a signal cannot wait for that.
            let locked = (!is_inside()).then(|| self.lock());
            self.is_closed.store(true, Ordering::SeqCst);
            // The counter is far from its end.
            let _ = rustix::io::write(&self.nudge, &1u64.to_ne_bytes());
            drop(locked);
        }
    }

    /// Whether the queue is one of this process, and open.
    fn check(&self) -> Result<(), Errno> {
        let is_usable = self.depth == forks::depth() && !self.is_closed.load(Ordering::SeqCst);
        is_usable.then_some(()).ok_or(Errno::BADF)
    }

    fn lock(&self) -> Result<Locked<'_>, Errno> {
        // A child never waits for the lock, which a thread may hold that it does not have.
        self.check()?;
        let inside = Inside::enter();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut locked = Locked { state, _inside: inside };
        self.noted.take(|fds| self.end_range(&mut locked.state, &fds));
        Ok(locked)
    }
}

/// The queue as a descriptor: readable as long as there are events.
impl AsFd for Kqueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
