//! The `completion-port` waiter.
//!
//! ```text
//! descriptor ──poll request──▶ epoll_ctl(2), EPOLLONESHOT
//! completion ◀──post──         epoll_wait(2), by the one thread that waits for the kernel
//! event      ◀──get──          the port's queue: the others sleep there
//! descriptor ──poll request──▶ epoll_ctl(2), EPOLL_CTL_MOD
//! ```
//!
//! As programs wait for readiness with Windows' completion ports: a request to poll a descriptor completes once, and
//! the completion goes to the thread that came last, if fewer than the concurrency value run
//! ([`crate::Settings::concurrency`]). Windows' kernel posts completions; here one of the threads that wait does, the
//! *leader*. It retrieves what it has found first, as it came last.
//!
//! Two invariants. Whoever stops leading a set that others share posts [`LEAD`], which makes another thread the leader;
//! so there is one as long as threads wait and may run. And a completion carries its descriptor's turn, which each
//! addition, modification and removal ends: one of an earlier turn is dropped.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use iotomy_ports::{Completion, CompletionPort};
use iotomy_sys::epoll::{Change, EpollEvent, epoll_create1, epoll_ctl, epoll_pwait2, epoll_wait};
use rustix::io::Errno;

use crate::calls::{Call, once, rarely};
use crate::deadline::wait_until;
use crate::epoll_set::{ONE_SHOT, probe};
use crate::{
    Calls, Capabilities, Closed, Counts, Events, Interest, Kind, Model, Ready, Room, Settings,
    Trigger, WaitError, Waiter, WaiterDeclaration,
};

const NAME: &str = "completion-port";

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: NAME,
    summary: "completion port of Windows, by iotomy-ports",
    description: "Poll requests that complete once, by a one-shot epoll set, and a queue of their \
        completions. Of the threads that share it one waits for the kernel and the others at the \
        queue (futex), where the last one that came is released first, and no more than the \
        concurrency value run. A time-out that is not zero takes epoll_pwait2.",
    man: &["epoll(7)", "epoll_ctl(2)", "epoll_wait(2)", "futex(2)"],
    calls: Calls {
        open: &[once("epoll_create1")],
        add: CHANGE,
        modify: CHANGE,
        remove: CHANGE,
        wait: &[once("epoll_wait"), rarely("epoll_pwait2"), rarely("futex"), rarely("gettid")],
    },
    capabilities: Capabilities {
        model: Model::Readiness,
        trigger: Trigger::OneShot,
        exclusive: false,
        room: Room::Told,
        names_hang_up: true,
        receives: false,
        shared: true,
        inherited: false,
        sleeps: true,
        serves: &Kind::NO_FILES,
        closed: Closed::Silent,
        highest: None,
        timeout_step_ns: 1,
    },
    probe,
    open: |settings| Ok(Box::new(PortWaiter::of(Arc::new(PortSet::new(settings)?)))),
};

const CHANGE: &[Call] = &[once("epoll_ctl")];

/// The key of the completion that makes a thread the leader; no descriptor has this number.
const LEAD: usize = usize::MAX;

/// A set of poll requests and the port of their completions.
struct PortSet {
    epoll: OwnedFd,
    port: CompletionPort,
    has_leader: AtomicBool,
    /// By the descriptor's number. Locked while the epoll set is changed.
    requests: Mutex<Vec<Request>>,
}

/// A request to poll a descriptor.
#[derive(Clone, Copy, Default)]
struct Request {
    token: u64,
    /// How often the request of this number has been made, changed or withdrawn.
    turn: u32,
    is_watched: bool,
}

impl PortSet {
    fn new(settings: &Settings) -> Result<Self, WaitError> {
        let epoll =
            epoll_create1().map_err(|e| WaitError::kernel(NAME, "open", "epoll_create1", e))?;
        let most = if settings.concurrency == 0 { usize::MAX } else { settings.concurrency };
        let port = CompletionPort::new(most);
        Ok(Self { epoll, port, has_leader: AtomicBool::new(false), requests: Mutex::default() })
    }

    fn requests(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes, changes or withdraws a request: `next` is the token and the interest.
    fn change(
        &self,
        attempt: &'static str,
        fd: RawFd,
        next: Option<(u64, Interest)>,
    ) -> Result<(), WaitError> {
        let mut requests = self.requests();
        let number = number(fd);
        let known = requests.get(number).copied().unwrap_or_default();
        let change = match (attempt, known.is_watched) {
            (WATCH, true) => return Err(WaitError::refused(NAME, attempt, Errno::EXIST).on(fd)),
            (WATCH, false) => Change::Add,
            (_, false) => return Err(WaitError::refused(NAME, attempt, Errno::NOENT).on(fd)),
            (_, true) if next.is_some() => Change::Modify,
            (_, true) => Change::Remove,
        };
        let turn = known.turn.wrapping_add(1);
        let events = next.map_or(0, |(_, interest)| interest.bits() | ONE_SHOT);
        let data = u64::from(turn) << 32 | u64::from(fd.unsigned_abs());
        epoll_ctl(self.epoll.as_fd(), change, fd, EpollEvent { events, data })
            .map_err(|e| WaitError::kernel(NAME, attempt, "epoll_ctl", e).on(fd))?;
        if requests.len() <= number {
            requests.resize(number + 1, Request::default());
        }
        let token = next.map_or(0, |(token, _)| token);
        requests[number] = Request { token, turn, is_watched: next.is_some() };
        Ok(())
    }
}

const WATCH: &str = "watch";

fn number(fd: RawFd) -> usize {
    usize::try_from(fd).expect("negative descriptors are invalid")
}

/// A set, or another thread's hold on it.
struct PortWaiter {
    set: Arc<PortSet>,
    /// Room for what the kernel tells, and for what is retrieved.
    found: Vec<EpollEvent>,
    got: Vec<Completion>,
    /// Whether the thread has led or was to, and another one must when it returns.
    owes_lead: bool,
    counts: Counts,
}

impl PortWaiter {
    fn of(set: Arc<PortSet>) -> Self {
        let (found, got) = (Vec::new(), Vec::new());
        Self { set, found, got, owes_lead: false, counts: Counts::default() }
    }

    /// Waits for the kernel; what it tells is in `found`.
    fn lead(&mut self, left: Option<Duration>, room: usize) -> io::Result<usize> {
        if self.found.len() < room {
            self.found.resize(room, EpollEvent::default());
        }
        let (epoll, found) = (self.set.epoll.as_fd(), &mut self.found[..room]);
        match left {
            None => epoll_wait(epoll, found, -1),
            Some(Duration::ZERO) => epoll_wait(epoll, found, 0),
            Some(left) => epoll_pwait2(epoll, found, Some(left), None),
        }
    }

    /// Queues so many completions of `found`, and retrieves as many as there is room for; returns their number.
    fn retrieve(
        &mut self,
        found: usize,
        timeout: Option<Duration>,
        events: &mut Events,
    ) -> Result<usize, Errno> {
        let completion = |event: &EpollEvent| Completion {
            key: (event.data & u64::from(u32::MAX)) as usize,
            bytes: event.events,
            user: (event.data >> 32) as usize,
        };
        let Self { set, got, counts, owes_lead, .. } = self;
        let found = self.found[..found].iter().map(completion);
        got.clear();
        set.port.post_and_get(found, events.room(), timeout, |completion| got.push(completion))?;
        if got.is_empty() {
            return Ok(0);
        }
        let requests = set.requests();
        for completion in got.iter() {
            if completion.key == LEAD {
                *owes_lead = true;
                continue;
            }
            match requests.get(completion.key) {
                Some(request) if request.is_watched && request.turn as usize == completion.user => {
                    events.push(request.token, Ready::from_bits(completion.bytes));
                }
                _ => counts.stale += 1,
            }
        }
        Ok(got.len())
    }

    /// Waits for completions that others queue, or leads.
    fn wait_for_more(&mut self, left: Option<Duration>, events: &mut Events) -> io::Result<usize> {
        let may_run = self.set.port.queued() == 0;
        if !may_run || self.set.has_leader.swap(true, Ordering::SeqCst) {
            return Ok(self.retrieve(0, left, events)?);
        }
        self.owes_lead = true;
        let told = self.lead(left, events.capacity());
        self.set.has_leader.store(false, Ordering::SeqCst);
        Ok(self.retrieve(told?, Some(Duration::ZERO), events)?)
    }

    /// Makes another thread the leader, if there is none and there are other threads.
    fn hand_on(&mut self) {
        let owes_lead = std::mem::take(&mut self.owes_lead);
        let is_shared = Arc::strong_count(&self.set) > 1;
        if owes_lead && is_shared && !self.set.has_leader.load(Ordering::SeqCst) {
            // The port is never closed.
            let _ = self.set.port.post(Completion { key: LEAD, ..Completion::default() });
        }
    }

    /// Waits until there are events, or the time is up.
    fn wait_until_told(
        &mut self,
        left: Option<Duration>,
        events: &mut Events,
    ) -> io::Result<usize> {
        let no_time = Some(Duration::ZERO);
        let is_look = left == no_time;
        let end = left.filter(|_| !is_look).and_then(|left| Instant::now().checked_add(left));
        loop {
            // What is queued is older than what the kernel has.
            let mut got = self.retrieve(0, no_time, events)?;
            if got == 0 {
                let left = end.map(|end| end.saturating_duration_since(Instant::now()));
                got = match is_look {
                    true => {
                        let found = self.lead(no_time, events.capacity())?;
                        self.retrieve(found, no_time, events)?
                    }
                    false => self.wait_for_more(left, events)?,
                };
            }
            let is_over = end.is_some_and(|end| Instant::now() >= end) || (is_look && got == 0);
            if !events.is_empty() || is_over {
                return Ok(events.len());
            }
        }
    }
}

impl Waiter for PortWaiter {
    fn declaration(&self) -> &'static WaiterDeclaration {
        &DECLARATION
    }

    fn add(&mut self, fd: BorrowedFd<'_>, wanted: Interest, token: u64) -> Result<(), WaitError> {
        self.set.change(WATCH, fd.as_raw_fd(), Some((token, wanted)))
    }

    fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        wanted: Interest,
        token: u64,
    ) -> Result<(), WaitError> {
        self.set.change("modify", fd.as_raw_fd(), Some((token, wanted)))
    }

    fn remove(&mut self, fd: BorrowedFd<'_>) -> Result<(), WaitError> {
        self.set.change("remove", fd.as_raw_fd(), None)
    }

    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<usize, WaitError> {
        events.clear();
        let mut interrupted = 0;
        let waited = wait_until(timeout, &mut interrupted, |left| {
            let told = self.wait_until_told(left, events);
            self.hand_on();
            told
        });
        self.counts.interrupted += interrupted;
        waited.map_err(|e| WaitError::kernel(NAME, "wait", "epoll_wait", e))
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn share(&self) -> Option<Box<dyn Waiter + Send>> {
        Some(Box::new(Self::of(self.set.clone())))
    }
}
