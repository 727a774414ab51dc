//! Sleeps until the watched process ends: this process must not take the CPU that its subject
//! needs.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use iotomy_record::{Exit, Snapshot};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};

use super::books::Books;
use super::firing;
use super::layout::Image;
use super::object::{NEWCOMER, RowAction, Session};
use super::snapshot::NameCache;
use super::windows::{Estimates, Sampling};
use crate::clock::{kernel_now, nanos};
use crate::interrupts::{Interrupt, Interrupts};
use crate::request::Request;
use crate::{ObserveError, OptionalViewer, ViewerRequest};

/// The processes whose end ends the watch.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject<'a> {
    /// The command, a child of this process.
    Child(u32),
    /// Processes of other parents: the last one's end.
    Others(&'a [u32]),
    /// No process: the user ends it.
    Nobody,
}

/// A watch being waited for.
pub(super) struct WatchLoop<'a> {
    subject: Subject<'a>,
    /// Of those that have not ended.
    pidfds: Vec<OwnedFd>,
    interrupts: &'a Interrupts,
    duration: Option<Duration>,
    wait_for_all: bool,
    request: &'a Request,
    viewer: OptionalViewer<'a>,
    names: NameCache,
    /// Of a watch that counts a part of the time.
    estimates: Option<Estimates>,
    /// When a call may fulfil the condition again, after one that the viewer was told of.
    asks_again: Option<Instant>,
    /// When the watch began, on both clocks.
    pub(super) began: (Instant, u64),
}

/// Where the kernel does not tell that threads have ended, they are looked after so often.
const LOOK: Duration = Duration::from_millis(50);

/// Rows of ended threads are collected when this many have ended.
const MANY_DEAD: usize = 256;

impl<'a> WatchLoop<'a> {
    /// # Errors
    /// When there is no such process.
    pub(super) fn begin(
        subject: Subject<'a>,
        interrupts: &'a Interrupts,
        request: &'a Request,
        viewer: OptionalViewer<'a>,
    ) -> Result<Self, ObserveError> {
        let pidfds = match subject {
            Subject::Child(pid) => vec![open(pid)?],
            Subject::Others(pids) => pids.iter().map(|pid| open(*pid)).collect::<Result<_, _>>()?,
            Subject::Nobody => Vec::new(),
        };
        Ok(Self {
            subject,
            pidfds,
            interrupts,
            duration: request.duration,
            wait_for_all: request.wait,
            request,
            viewer,
            names: NameCache::default(),
            estimates: None,
            asks_again: None,
            began: (Instant::now(), kernel_now()),
        })
    }

    /// Waits until the watch is to end; collects the rows of ended threads meanwhile. Returns how
    /// the command ended, if it did.
    ///
    /// # Errors
    /// When waiting itself fails.
    pub(super) fn keep(
        &mut self,
        session: &Session,
        books: &mut Books,
        sampling: Option<&Sampling>,
    ) -> Result<Option<Exit>, ObserveError> {
        self.estimates = match (sampling, self.request.sample) {
            (Some(sampling), Some(n)) => Some(sampling.estimates(session, n).map_err(unsampled)?),
            _ => None,
        };
        // A moment beyond the clock's end is never reached.
        let deadline = self.duration.and_then(|length| Instant::now().checked_add(length));
        let mut exit = None;
        let mut dead = HashSet::new();
        loop {
            let woken = self.sleep(exit.is_none(), Some(session), deadline)?;
            if session.was_ended() {
                // What the command is doing now is none of the watch's business.
                return Ok(exit);
            }
            self.tell_firing(session, books);
            while let Some(interrupt) = self.next_interrupt() {
                match self.subject {
                    Subject::Child(pid) if exit.is_none() => _ = interrupt.pass_on(pid),
                    _ if interrupt.ends_a_watch() => return Ok(exit),
                    _ => {}
                }
            }
            dead.extend(session.dead_threads());
            if dead.remove(&NEWCOMER) {
                // An error leaves them out: they are found by the next run.
                let _ = session.adopt_newcomers();
                books.name_attached(session);
            }
            // Collecting takes time while counting goes on: work that is due now ends first.
            if dead.len() >= MANY_DEAD && !woken.late {
                books.take_dead(session, &dead);
                dead.clear();
            }
            if woken.ended && exit.is_none() {
                let Subject::Child(pid) = self.subject else { return Ok(None) };
                exit = Some(reap(pid));
                if !self.wait_for_all {
                    return Ok(exit);
                }
            }
            if self.attend(session, books, sampling) == ViewerRequest::End {
                return Ok(exit);
            }
            if woken.late || (exit.is_some() && session.counters().live_threads == 0) {
                return Ok(exit);
            }
        }
    }

    /// Waits for the command after the watch has ended before it.
    ///
    /// # Errors
    /// When waiting itself fails.
    pub(super) fn wait_unwatched(&mut self, pid: u32) -> Result<Exit, ObserveError> {
        loop {
            // First, so that the viewer learns of the watch's end.
            if let Some(viewer) = &mut self.viewer {
                viewer.update(None);
            }
            let woken = self.sleep(true, None, None)?;
            while let Some(interrupt) = self.next_interrupt() {
                interrupt.pass_on(pid);
            }
            if woken.ended {
                break;
            }
        }
        Ok(reap(pid))
    }

    /// A thread is reported dead shortly before its last switch closes its books. Waits for such
    /// threads, a moment at most.
    pub(super) fn let_the_dead_settle(&self, session: &Session) {
        let until = Instant::now() + Duration::from_millis(100);
        while session.counters().live_threads > 0 && Instant::now() < until {
            let mut on_the_way = false;
            session.visit("images", |_: u32, image: Image| {
                on_the_way |= image.live > 0 && is_gone(image.pid);
                RowAction::Kept
            });
            if !on_the_way {
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// The next signal that the viewer does not keep to itself.
    fn next_interrupt(&mut self) -> Option<Interrupt> {
        loop {
            let interrupt = self.interrupts.next()?;
            let is_taken = match &mut self.viewer {
                Some(viewer) => viewer.takes_signal(interrupt.number()),
                None => false,
            };
            if !is_taken {
                return Some(interrupt);
            }
        }
    }

    /// Tells the viewer of a call that fulfilled the condition of a watch that goes on; after the pause, has it asked
    /// of calls again.
    fn tell_firing(&mut self, session: &Session, books: &mut Books) {
        let Some(pause) = self.request.filter.pause() else { return };
        match self.asks_again {
            None if session.has_fired() => {
                let (names, request, (began, began_ns)) =
                    (&mut self.names, self.request, self.began);
                session.await_programs();
                // A snapshot may be the last one that knows a process which has ended.
                let call = firing::told(session, books, request, began_ns);
                // With the call, which was counted before user space was woken.
                let elapsed_ns = || nanos(began.elapsed());
                let now = names.look((session, books), request, began_ns, elapsed_ns);
                if let (Some(viewer), Some(call)) = (&mut self.viewer, call) {
                    viewer.on_firing(call, now);
                }
                self.asks_again = Instant::now().checked_add(pause);
            }
            // Where the kernel refuses, no other call will be told of: what is told stays true.
            Some(at) if Instant::now() >= at => {
                session.forget_places(self.request.rows / 2);
                self.asks_again = session.ask_again().is_err().then(|| at + pause);
            }
            _ => {}
        }
    }

    /// Whether the viewer was told of the last call that fulfilled the condition of a watch that goes on.
    pub(super) fn is_told(&self) -> bool {
        self.asks_again.is_some()
    }

    fn attend(
        &mut self,
        session: &Session,
        books: &mut Books,
        sampling: Option<&Sampling>,
    ) -> ViewerRequest {
        let Some(viewer) = &mut self.viewer else { return ViewerRequest::GoOn };
        let (names, request, (began, began_ns)) = (&mut self.names, self.request, self.began);
        let estimates = &mut self.estimates;
        let before = estimates.as_ref().map(Estimates::n);
        let mut look = || {
            let sampled = estimates.as_mut().zip(sampling);
            // First: a snapshot that is lost may be the last one of a process that has ended.
            let sampled = sampled.map(|(one, sampling)| sampling.look(one)).transpose()?;
            let now = names.look((session, books), request, began_ns, || nanos(began.elapsed()))?;
            Ok(Some(Snapshot { sampled, ..now }))
        };
        let asked = viewer.update(Some(&mut look));
        let wanted = viewer.sample().filter(|n| Some(*n) != before);
        if let (Some(sampling), Some(n)) = (sampling, wanted)
            && let Ok(paused) = sampling.pause()
        {
            // What is under way counts before the look.
            session.await_programs();
            let is_seen = viewer.end_sample(&mut look);
            if let Some(one) = estimates {
                if is_seen {
                    one.turn(n);
                }
                paused.resume(one.n());
            }
        }
        asked
    }

    /// Shows the viewer the counts for the last time, before they are settled.
    pub(super) fn show_end(&mut self, session: &Session, books: &mut Books) {
        let Some(viewer) = &mut self.viewer else { return };
        let (names, request, (began, began_ns)) = (&mut self.names, self.request, self.began);
        // Where a call ended the watch, nothing was counted since.
        let elapsed_ns = match session.was_ended() {
            true => session.ended_ns().saturating_sub(began_ns),
            false => nanos(began.elapsed()),
        };
        let estimates = &mut self.estimates;
        viewer.end(&mut || {
            let sampled = estimates.as_mut().map(Estimates::look).transpose()?;
            let now = names.look((session, books), request, began_ns, || elapsed_ns)?;
            Ok(Some(Snapshot { sampled, ..now }))
        });
    }

    fn sleep(
        &mut self,
        for_end: bool,
        session: Option<&Session>,
        deadline: Option<Instant>,
    ) -> Result<WakeReasons, ObserveError> {
        let mut waited = vec![PollFd::new(self.interrupts, PollFlags::IN)];
        let doorbell = session.and_then(Session::doorbell);
        if let Some(doorbell) = &doorbell {
            waited.push(PollFd::new(doorbell, PollFlags::IN));
        }
        let wakers = self.viewer.as_ref().map(|viewer| viewer.wakers()).unwrap_or_default();
        waited.extend(wakers.iter().map(|waker| PollFd::new(waker, PollFlags::IN)));
        let due = self.viewer.as_ref().and_then(|viewer| viewer.deadline());
        let before = waited.len();
        if for_end {
            waited.extend(self.pidfds.iter().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
        }
        // What no doorbell tells is looked after.
        let look = session.filter(|_| doorbell.is_none()).map(|_| Instant::now() + LOOK);
        let again = self.asks_again.filter(|_| session.is_some());
        let until = [deadline, due, look, again].into_iter().flatten().min();
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        match poll(&mut waited, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(ObserveError::system("wait for the command")(error)),
        }
        let has_ended: Vec<bool> =
            waited[before..].iter().map(|end| !end.revents().is_empty()).collect();
        let ended = !has_ended.is_empty() && has_ended.iter().all(|ended| *ended);
        if !ended {
            let mut has_ended = has_ended.into_iter();
            self.pidfds.retain(|_| !has_ended.next().unwrap_or(false));
        }
        Ok(WakeReasons { ended, late: deadline.is_some_and(|at| Instant::now() >= at) })
    }
}

fn unsampled(reason: String) -> ObserveError {
    ObserveError::system("look at the windows of a sampled watch")(std::io::Error::other(reason))
}

struct WakeReasons {
    ended: bool,
    late: bool,
}

/// A descriptor of a process.
pub(super) fn open(pid: u32) -> Result<OwnedFd, ObserveError> {
    Pid::from_raw(pid.cast_signed())
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()))
        .map_err(|error| ObserveError::Attach { pid, source: error.into() })
}

/// Whether the process has ended, reaped or not.
fn is_gone(pid: u32) -> bool {
    let Ok(stat) = iotomy_host::kernel_text(format!("/proc/{pid}/stat")) else { return true };
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    matches!(state, None | Some('Z' | 'X' | 'x'))
}

/// Waits for an own child's end.
pub(super) fn reap(pid: u32) -> Exit {
    let pid = Pid::from_raw(pid.cast_signed());
    loop {
        match waitpid(pid, WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                if let Some(code) = status.exit_status() {
                    return Exit::Code(code);
                }
                if let Some(signal) = status.terminating_signal() {
                    return Exit::Signal(signal);
                }
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            // Another waiter reaped it; its status is lost.
            Err(_) => return Exit::Code(127),
        }
    }
}
