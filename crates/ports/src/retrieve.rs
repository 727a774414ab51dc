//! The retrieval of events: `port_get` and `port_getn`.
//!
//! The tricky invariant is of threads that want more events than there are. They must leave those
//! there are to threads that want fewer, so the bell stays rung and they cannot sleep on it: they
//! look again every millisecond. The same holds while all that is queued is of other processes.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use iotomy_sys::epoll::{EpollEvent, EventBuffer};
use iotomy_sys::forks;
use rustix::io::Errno;

use crate::errno::errno;
use crate::event::{Event, Source};
use crate::port::{BELL, Port};
use crate::shared::{Field, Kind, Locked, Node, State};

/// How long a thread waits for more events while some are queued.
const NAP: Duration = Duration::from_millis(1);

/// How often a thread naps for threads that were alerted and have not returned: it takes them for
/// killed then.
const NAPS_FOR_ALERTED: u32 = 1000;

/// The kernel's events that are taken in one call.
const BATCH: usize = 64;

type Batch = EventBuffer<BATCH>;

/// Why fewer events were retrieved than were wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfall {
    /// `ETIME` after the timeout, `EINTR` after a signal, `EBADFD` after the port's close, `EINVAL` if
    /// more are wanted than there is room for.
    pub errno: Errno,
    /// How many were retrieved all the same; more than 0 with `ETIME` only.
    pub retrieved: usize,
}

impl From<Errno> for Shortfall {
    fn from(errno: Errno) -> Self {
        Self { errno, retrieved: 0 }
    }
}

/// What becomes of a queued event that a process may retrieve.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fate {
    Delivered(Event),
    /// Its object is gone.
    Void,
    /// It stays in the queue.
    OfAnotherProcess,
}

/// The moment at which a wait ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Deadline {
    Never,
    At(Instant),
    Passed,
}

impl Deadline {
    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        match timeout {
            None => Self::Never,
            Some(Duration::ZERO) => Self::Passed,
            Some(timeout) => Instant::now().checked_add(timeout).map_or(Self::Never, Self::At),
        }
    }

    /// The time that is left, None for no end.
    pub(crate) fn left(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::At(end) => Some(end.saturating_duration_since(Instant::now())),
            Self::Passed => Some(Duration::ZERO),
        }
    }

    pub(crate) fn has_passed(self) -> bool {
        self.left() == Some(Duration::ZERO)
    }
}

impl Port {
    /// Retrieves one event (`port_get`), waiting for it until the timeout, or without end.
    ///
    /// # Errors
    /// As [`Self::get_many`].
    pub fn get(&self, timeout: Option<Duration>) -> Result<Event, Errno> {
        let mut got = None;
        let put = |event| got = Some(event);
        self.get_each(1, 1, timeout, put).map_err(|shortfall| shortfall.errno)?;
        got.ok_or(Errno::TIME)
    }

    /// Retrieves events (`port_getn`): as many as there are, up to `room`, once there are as many as
    /// are wanted. In alert mode it is the alert alone.
    ///
    /// # Errors
    /// See [`Shortfall`]; the events that were retrieved then are lost; [`Self::get_each`] keeps them.
    pub fn get_many(
        &self,
        room: usize,
        wanted: usize,
        timeout: Option<Duration>,
    ) -> Result<Vec<Event>, Errno> {
        let mut events = Vec::new();
        let done = self.get_each(room, wanted, timeout, |event| events.push(event));
        done.map(|_| events).map_err(|shortfall| shortfall.errno)
    }

    /// As [`Self::get_many`], and gives each event to `put`. Returns their number.
    ///
    /// # Errors
    /// See [`Shortfall`].
    pub fn get_each(
        &self,
        room: usize,
        wanted: usize,
        timeout: Option<Duration>,
        mut put: impl FnMut(Event),
    ) -> Result<usize, Shortfall> {
        if wanted > room {
            return Err(Errno::INVAL.into());
        }
        if wanted == 0 {
            return Ok(0);
        }
        let deadline = Deadline::after(timeout);
        let mut batch = Batch::new();
        let mut naps = 0;
        loop {
            let locked = self.lock();
            if self.is_closed() {
                return Err(Errno::BADFD.into());
            }
            if let Some(alert) = locked.alert() {
                put(alert_event(alert));
                return Ok(1);
            }
            locked.absorb();
            let mut is_waiting = !locked.is_empty();
            if is_waiting {
                // What is queued is older than what the kernel has.
                self.harvest(&locked);
                let is_last = deadline.has_passed();
                if is_last || wanted == 1 || self.retrievable(&locked, wanted) >= wanted {
                    let got = self.take(&locked, room, &mut put);
                    if got >= wanted || is_last {
                        self.bell.settle(&self.shared, &locked);
                        return enough(got, wanted);
                    }
                }
                is_waiting = !locked.is_empty();
            }
            if !is_waiting && locked.alerted() > 0 {
                is_waiting = naps < NAPS_FOR_ALERTED;
                if !is_waiting {
                    locked.set_alerted(0);
                }
            }
            self.bell.settle(&self.shared, &locked);
            if is_waiting {
                naps += 1;
                match self.sleep(locked, (&mut batch, 0), deadline, &mut put)? {
                    Slept::Alerted => return Ok(1),
                    Slept::Awake(_) => continue,
                }
            }
            let slept = match deadline {
                // A look does not block, so the lock is kept: releasing and taking it costs more.
                Deadline::Passed => {
                    batch.wait(self.epoll.as_fd(), room, 0).map_err(errno)?;
                    Slept::Awake(locked)
                }
                _ => self.sleep(locked, (&mut batch, room), deadline, &mut put)?,
            };
            let locked = match slept {
                Slept::Alerted => return Ok(1),
                Slept::Awake(locked) => locked,
            };
            let count = batch.events().len();
            let has_passed = count == 0 && deadline.has_passed();
            let mut got = 0;
            loop {
                for event in batch.events() {
                    if wanted > 1 {
                        self.queue(&locked, *event);
                    } else if let Some(event) = self.deliver_fired(&locked, *event) {
                        put(event);
                        got += 1;
                    }
                }
                if batch.events().len() < BATCH || room == got {
                    break;
                }
                // A wait that fails leaves none.
                let _ = batch.wait(self.epoll.as_fd(), room - got, 0);
            }
            locked.absorb();
            if wanted == 1 || has_passed {
                got += self.take(&locked, room - got, &mut put);
            }
            if got >= wanted || has_passed {
                self.bell.settle(&self.shared, &locked);
                return enough(got, wanted);
            }
        }
    }

    /// Sleeps until there are events in the kernel's set, or for a nap if there is no room for any.
    fn sleep<'s>(
        &'s self,
        locked: Locked<'s>,
        (batch, room): (&mut Batch, usize),
        deadline: Deadline,
        put: &mut impl FnMut(Event),
    ) -> Result<Slept<'s>, Shortfall> {
        batch.clear();
        let alerts = self.shared.alerts();
        let sleepers = &self.local.current().sleepers;
        self.shared.fall_asleep();
        sleepers.fetch_add(1, Ordering::SeqCst);
        drop(locked);
        let left = deadline.left();
        let woken = if self.is_closed() {
            Ok(0)
        } else if room == 0 {
            let nap = left.map_or(NAP, |left| left.min(NAP));
            let nap = rustix::time::Timespec::try_from(nap).unwrap_or_default();
            rustix::event::poll(&mut [], Some(&nap)).map(|_| 0)
        } else {
            match left {
                None => batch.wait(self.epoll.as_fd(), room, -1),
                Some(Duration::ZERO) => batch.wait(self.epoll.as_fd(), room, 0),
                Some(left) => batch.wait_for(self.epoll.as_fd(), room, left),
            }
            .map_err(errno)
        };
        let locked = self.lock();
        self.shared.wake_up();
        sleepers.fetch_sub(1, Ordering::SeqCst);
        let is_alerted = self.shared.alerts() != alerts;
        if is_alerted {
            locked.set_alerted(locked.alerted().saturating_sub(1));
        }
        let is_closed = self.is_closed();
        if is_alerted || is_closed {
            // What the thread took out of the set is for others.
            for event in batch.events() {
                self.queue(&locked, *event);
            }
            self.bell.settle(&self.shared, &locked);
        }
        if is_closed {
            return Err(Errno::BADFD.into());
        }
        if is_alerted {
            put(alert_event(locked.last_alert()));
            return Ok(Slept::Alerted);
        }
        woken?;
        Ok(Slept::Awake(locked))
    }

    /// Moves what the kernel has into the queue.
    pub(crate) fn harvest(&self, locked: &Locked<'_>) {
        let mut batch = Batch::new();
        loop {
            // A wait that fails leaves none.
            let _ = batch.wait(self.epoll.as_fd(), BATCH, 0);
            let mut fired = 0;
            for event in batch.events() {
                fired += usize::from({ event.data } != BELL);
                self.queue(locked, *event);
            }
            if fired + 1 < BATCH {
                return;
            }
        }
    }

    /// Queues the event of an object that fired.
    fn queue(&self, locked: &Locked<'_>, event: EpollEvent) {
        if let Some(node) = locked.armed(event.data) {
            if locked.kind(node) == Kind::Changes && locked.owner(node) == forks::process_id() {
                self.read_changes(locked, node);
                return;
            }
            locked.set(node, Field::Events, u64::from(event.events));
            locked.end(node, State::Queued);
        }
    }

    /// Delivers the event of an object that fired, or queues it if it is of another process.
    fn deliver_fired(&self, locked: &Locked<'_>, event: EpollEvent) -> Option<Event> {
        let node = locked.armed(event.data)?;
        if locked.kind(node) != Kind::Fd {
            self.queue(locked, event);
            return None;
        }
        locked.set(node, Field::Events, u64::from(event.events));
        match self.deliver_descriptor(locked, node) {
            Fate::Delivered(event) => Some(event),
            Fate::Void => None,
            Fate::OfAnotherProcess => {
                locked.end(node, State::Queued);
                None
            }
        }
    }

    /// Takes events out of the queue.
    fn take(&self, locked: &Locked<'_>, room: usize, put: &mut impl FnMut(Event)) -> usize {
        let (mut before, mut got) = (None, 0);
        while got < room {
            let Some(node) = locked.next_queued(before) else { break };
            match self.deliver(locked, node) {
                Fate::OfAnotherProcess => before = Some(node),
                Fate::Void => locked.unlink(before, node),
                Fate::Delivered(event) => {
                    locked.unlink(before, node);
                    put(event);
                    got += 1;
                }
            }
        }
        got
    }

    fn deliver(&self, locked: &Locked<'_>, node: Node) -> Fate {
        let kind = locked.kind(node);
        let owner = locked.owner(node);
        if !matches!(kind, Kind::User | Kind::Fd) && owner != forks::process_id() {
            if forks::is_alive(owner) {
                return Fate::OfAnotherProcess;
            }
            locked.remove(node);
            return Fate::Void;
        }
        match kind {
            Kind::User => {
                let events = (locked.get(node, Field::Events) as u32).cast_signed();
                let user = locked.get(node, Field::User) as usize;
                Fate::Delivered(Event::new(Source::User, events, 0, user))
            }
            Kind::Fd => self.deliver_descriptor(locked, node),
            Kind::Timer => self.deliver_timer(locked, node),
            Kind::File => self.deliver_file(locked, node),
            Kind::Changes => {
                self.read_changes(locked, node);
                Fate::Void
            }
        }
    }

    /// How many of the queued events this process may retrieve, counted up to `wanted`.
    fn retrievable(&self, locked: &Locked<'_>, wanted: usize) -> usize {
        let me = forks::process_id();
        let (mut before, mut count) = (None, 0);
        while let Some(node) = locked.next_queued(before)
            && count < wanted
        {
            let is_own = locked.owner(node) == me && locked.kind(node) != Kind::Changes;
            let is_open =
                || locked.kind(node) == Kind::Fd && self.is_shared_descriptor(locked, node);
            count += usize::from(is_own || locked.kind(node) == Kind::User || is_open());
            before = Some(node);
        }
        count
    }
}

enum Slept<'s> {
    /// The thread has returned the alert.
    Alerted,
    Awake(Locked<'s>),
}

fn alert_event((events, user): (i32, usize)) -> Event {
    Event::new(Source::Alert, events, 0, user)
}

fn enough(got: usize, wanted: usize) -> Result<usize, Shortfall> {
    if got >= wanted { Ok(got) } else { Err(Shortfall { errno: Errno::TIME, retrieved: got }) }
}
