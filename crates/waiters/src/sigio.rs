//! The `sigio` waiter.
//!
//! ```text
//! descriptor ──fcntl(2): O_ASYNC, F_SETSIG──▶ a signal queued to this thread each time
//! one signal ◀──rt_sigtimedwait(2)──          one call each
//! no room in the queue ──▶ a plain SIGIO, which names nobody: poll(2) of all, once
//! ```
//!
//! The second of the four models: the kernel notifies by a real-time signal that carries the
//! descriptor's number. Every wake-up is a signal of its own, so one descriptor may fill the queue
//! (`ulimit -i`); the loss is reported, and repaired by polling all of them.
//!
//! A signal is taken only as a sign that something happened; a read or write shows what. Signals
//! may come late, also for a number that is another descriptor's by then; so the queue is emptied
//! when a descriptor is removed, and signals of unwatched descriptors are ignored and counted.
//!
//! The one invariant: `pending` is not 0 exactly for the descriptors in `queue`.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use iotomy_sys::io_signals::{SignalReport, Signals};
use iotomy_sys::poll::{PollFd, poll};
use rustix::io::Errno;

use crate::calls::{Call, Times, exactly, once, rarely};
use crate::deadline::wait_until;
use crate::watched::Watched;
use crate::{
    Calls, Capabilities, Closed, Counts, Events, Interest, Kind, Model, Probe, Ready, Room,
    Trigger, WaitError, Waiter, WaiterDeclaration,
};

const NAME: &str = "sigio";

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: NAME,
    summary: "a real-time signal per wake-up (F_SETSIG)",
    description: "The kernel queues a signal to the thread at every event of a descriptor; a \
        separate call takes each signal. When the queue overflows, one poll(2) scans all \
        descriptors. The flag O_ASYNC is set on the open file description, which other processes \
        may share.",
    man: &["fcntl(2)", "sigtimedwait(2)", "signal(7)"],
    calls: Calls {
        open: &[exactly(4, "rt_sigaction"), once("rt_sigprocmask"), once("gettid")],
        add: &[exactly(5, "fcntl"), once("poll")],
        modify: &[once("poll")],
        remove: &[exactly(4, "fcntl"), once("rt_sigtimedwait")],
        wait: &[Call { name: "rt_sigtimedwait", times: Times::EachEventAndOnce }, rarely("poll")],
    },
    capabilities: Capabilities {
        model: Model::Signals,
        trigger: Trigger::Edge,
        exclusive: false,
        room: Room::AfterRefusal,
        names_hang_up: false,
        receives: false,
        shared: false,
        inherited: false,
        sleeps: true,
        serves: &[Kind::Pipe, Kind::Socket, Kind::Listener],
        closed: Closed::Silent,
        highest: None,
        timeout_step_ns: 1,
    },
    probe: || match Signals::hold() {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::BUSY) => {
            Probe::Unsupported(format!("rt_sigprocmask: {error}"))
        }
        _ => Probe::Ready,
    },
    open: |settings| {
        let signals = Signals::hold().map_err(|error| {
            let is_held = Errno::from_io_error(&error) == Some(Errno::BUSY);
            let failed = WaitError::kernel(NAME, "open", "rt_sigprocmask", error);
            if is_held { failed.hinting("a thread has at most one sigio set") } else { failed }
        })?;
        Ok(Box::new(Sigio {
            signals,
            watched: Watched::new(NAME, settings.descriptors),
            pending: Vec::new(),
            queue: VecDeque::new(),
            counts: Counts::default(),
        }))
    },
};

struct Sigio {
    signals: Signals,
    watched: Watched,
    /// Events that are known and not yet reported, by the descriptor's number.
    pending: Vec<Ready>,
    /// The descriptors with pending events, in turn.
    queue: VecDeque<RawFd>,
    counts: Counts,
}

impl Sigio {
    /// Notes the events of a descriptor, if it is watched for them.
    fn note(&mut self, fd: RawFd, bits: u32) {
        let Some((_, asked)) = self.watched.find(fd) else {
            self.counts.stale += 1;
            return;
        };
        let unasked = Ready::ERROR | Ready::HANG_UP;
        let ready = Ready::from_bits(bits & (asked | unasked.bits()));
        if ready.is_empty() {
            return;
        }
        let pending = &mut self.pending[number(fd)];
        if pending.is_empty() {
            self.queue.push_back(fd);
        }
        *pending |= ready;
    }

    /// Polls a descriptor's present state: a signal reports only later events.
    fn look_at(&mut self, fd: RawFd) -> Result<(), Errno> {
        if self.pending.len() <= number(fd) {
            self.pending.resize(number(fd) + 1, Ready::default());
        }
        self.forget(fd);
        let Some((_, asked)) = self.watched.find(fd) else { return Ok(()) };
        let events = i16::try_from(asked).expect("poll's bits are 16");
        let mut one = [PollFd { fd, events, revents: 0 }];
        poll(&mut one, 0).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
        self.note(fd, u32::from(one[0].revents.cast_unsigned()));
        Ok(())
    }

    /// Its events are not reported any more.
    fn forget(&mut self, fd: RawFd) {
        if let Some(pending) = self.pending.get_mut(number(fd))
            && !pending.is_empty()
        {
            *pending = Ready::default();
            self.queue.retain(|other| *other != fd);
        }
    }

    fn hear(&mut self, told: SignalReport) -> std::io::Result<()> {
        match told {
            // A hang-up comes as an error, too, which it need not be.
            SignalReport::Of { fd, bits } if bits & Ready::HANG_UP.bits() != 0 => {
                self.note(fd, bits & !Ready::ERROR.bits());
            }
            SignalReport::Of { fd, bits } => self.note(fd, bits),
            SignalReport::Overflow => {
                self.counts.overflows += 1;
                self.sweep()?;
            }
        }
        Ok(())
    }

    /// Polls all of them.
    fn sweep(&mut self) -> std::io::Result<()> {
        self.counts.sweeps += 1;
        poll(self.watched.fds(), 0)?;
        for place in 0..self.watched.fds().len() {
            let PollFd { fd, revents, .. } = self.watched.fds()[place];
            if revents != 0 {
                self.note(fd, u32::from(revents.cast_unsigned()));
            }
        }
        Ok(())
    }

    /// Reads the queue, at most this many signals.
    fn take(&mut self, most: usize) -> std::io::Result<()> {
        for _ in 0..most {
            let Some(told) = self.signals.take(Some(Duration::ZERO))? else { break };
            self.hear(told)?;
        }
        Ok(())
    }

    fn tell(&mut self, events: &mut Events) {
        while events.room() > 0 {
            let Some(fd) = self.queue.pop_front() else { break };
            let ready = std::mem::take(&mut self.pending[number(fd)]);
            if let Some((token, _)) = self.watched.find(fd) {
                events.push(token, ready);
            }
        }
    }
}

fn number(fd: RawFd) -> usize {
    usize::try_from(fd).expect("negative descriptors are invalid")
}

impl Waiter for Sigio {
    fn declaration(&self) -> &'static WaiterDeclaration {
        &DECLARATION
    }

    fn add(&mut self, fd: BorrowedFd<'_>, interest: Interest, token: u64) -> Result<(), WaitError> {
        self.watched.add(fd, interest, token)?;
        let number = fd.as_raw_fd();
        let asked = self.signals.ask(number).map_err(|(call, error)| {
            let failed = WaitError::kernel(NAME, "watch", call, error).on(number);
            if failed.errno() == Errno::OPNOTSUPP.raw_os_error() {
                failed.hinting("it sends no signals; use pipes, sockets or terminals")
            } else {
                failed
            }
        });
        let looked = asked.and_then(|()| {
            self.look_at(number)
                .map_err(|e| WaitError::kernel(NAME, "watch", "poll", e.into()).on(number))
        });
        looked.inspect_err(|_| {
            self.signals.leave(number);
            let _ = self.watched.remove(fd);
        })
    }

    fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> Result<(), WaitError> {
        self.watched.modify(fd, interest, token)?;
        let number = fd.as_raw_fd();
        self.look_at(number)
            .map_err(|e| WaitError::kernel(NAME, "modify", "poll", e.into()).on(number))
    }

    fn remove(&mut self, fd: BorrowedFd<'_>) -> Result<(), WaitError> {
        self.watched.remove(fd)?;
        let number = fd.as_raw_fd();
        self.signals.leave(number);
        self.forget(number);
        // Its queued signals must not be attributed to a later descriptor with its number.
        self.take(usize::MAX)
            .map_err(|e| WaitError::kernel(NAME, "remove", "rt_sigtimedwait", e).on(number))
    }

    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<usize, WaitError> {
        events.clear();
        let timeout = if self.queue.is_empty() { timeout } else { Some(Duration::ZERO) };
        let mut interrupted = 0;
        let answer = wait_until(timeout, &mut interrupted, |left| {
            if left.is_none_or(|left| !left.is_zero()) {
                match self.signals.take(left)? {
                    None => return Ok(0),
                    Some(told) => self.hear(told)?,
                }
            }
            self.take(events.capacity())?;
            Ok(self.queue.len())
        });
        self.counts.interrupted += interrupted;
        answer.map_err(|e| WaitError::kernel(NAME, "wait", "rt_sigtimedwait", e))?;
        self.tell(events);
        Ok(events.len())
    }

    // A wait reads as many signals as there is room for events, and all of them may be of unwatched
    // descriptors: an empty result does not mean that the queue is empty.
    fn drain(
        &mut self,
        events: &mut Events,
        take: &mut dyn FnMut(&Events),
    ) -> Result<u64, WaitError> {
        let mut all = 0;
        loop {
            self.take(usize::MAX)
                .map_err(|e| WaitError::kernel(NAME, "drain", "rt_sigtimedwait", e))?;
            events.clear();
            self.tell(events);
            if events.is_empty() {
                return Ok(all);
            }
            all += events.len() as u64;
            take(events);
        }
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

impl Drop for Sigio {
    fn drop(&mut self) {
        for PollFd { fd, .. } in self.watched.fds() {
            if self.signals.is_asked(*fd) {
                self.signals.leave(*fd);
            }
        }
    }
}
