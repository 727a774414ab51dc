//! The tracer thread: from the first task it seizes to the end of its watch.
//!
//! A session runs on a thread made for it, and nothing is ever detached by a request: when the
//! thread ends, the kernel lets go of all its tracees at once, as it would if iotomy were killed.
//! Detaching by hand would have to interrupt each tracee first, and some calls (`epoll_wait`,
//! `semop`…) fail with `EINTR` when they are.
//!
//! The one invariant: seizing, waiting and resuming all happen on that one thread, and it sleeps
//! only in `waitpid`, so that a tracee that stops hands it the CPU. Signals and deadlines are
//! handled by the thread that requested the watch: see [`super::tracer`].

use std::collections::BTreeSet;
use std::io::{self, PipeWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use iotomy_record::{EndedBy, Exit, Groups, Running, Snapshot, WholeCall};
use iotomy_sys::ptrace::{self, WaitResult};

use super::connections::Connections;
use super::exec_calls::ExecCalls;
use super::procfs;
use super::sockets::{PeerTexts, Sockets};
use super::tracees::Tracees;
use crate::clock::nanoseconds;
use crate::compiled::Verdict;
use crate::connections::ConnectionBook;
use crate::filter::Filter;
use crate::grouping::GroupBook;
use crate::naming::plain_name;
use crate::tally::{ImageId, Tally};
use crate::variables::Sums;
use crate::{Request, Selection};

/// A watch on a tracer thread.
#[derive(Debug)]
pub(super) struct PtraceSession {
    /// The processes the watch is about that have not ended.
    pub(super) roots: Vec<u32>,
    /// Whether the processes that they make are left out.
    only: bool,
    /// Whether to go on without it until no tracee is left.
    wait: bool,
    /// Whether a snapshot takes the slowest calls.
    takes_slowest: bool,
    /// Whether to count by file.
    pub(super) files: bool,
    /// Whether paths are counted.
    pub(super) paths: bool,
    /// What sockets are connected to.
    pub(super) sockets: Sockets,
    /// The same, in text.
    pub(super) peer_texts: PeerTexts,
    /// Connections by peer, where they are counted.
    pub(super) connections: Option<Connections>,
    pub(super) tracees: Tracees,
    pub(super) tally: Tally,
    pub(super) exec_calls: ExecCalls,
    /// The calls that are reported; `None` for all.
    calls: Option<BTreeSet<String>>,
    /// The calls that are counted.
    pub(super) filter: Filter,
    /// Calls for which the filter's condition divided by zero.
    pub(super) divided_by_zero: u64,
    /// The counted calls so far, where a condition on calls ends the watch.
    pub(super) sums: Sums,
    /// Calls for which that condition divided by zero.
    pub(super) end_divided_by_zero: u64,
    /// Calls that the filter's condition left out.
    pub(super) left_out: u64,
    /// Tasks that watched ones made so that they are not traced.
    pub(super) untraced_tasks: u64,
    /// The call that ended the watch, its image, and when it returned.
    pub(super) ended_by: Option<(ImageId, WholeCall, Instant)>,
    /// Where the watch goes on after such a call: one that the viewer is to be told of, and until when there is no
    /// other.
    fired: Option<EndedBy>,
    pub(super) asks_again: Option<Instant>,
    /// Calls by what they are grouped by, and most of these groups.
    pub(super) groups: GroupBook,
    pub(super) rows: u32,
    /// When the watch of them began.
    pub(super) began: Instant,
    /// How and when the last root ended.
    pub(super) end: Option<(Exit, Instant)>,
}

/// The messages between the thread that asked for a watch and the tracer thread.
#[derive(Debug, Default)]
pub(super) struct Flags {
    /// The watch is to end. The setter must also wake the tracer thread.
    pub(super) stop: AtomicBool,
    /// The root has ended, and its id may be another's.
    pub(super) root_ended: AtomicBool,
    /// Whether there is a viewer, which is to see how it ended.
    is_viewed: bool,
    /// A snapshot is requested. The setter must also wake the tracer thread.
    asked: AtomicBool,
    snapshot: Mutex<Option<Snapshot>>,
    answered: Condvar,
    /// A call that the viewer is to be told of, and the counts with it; the bell says that there is one.
    fired: Mutex<Option<(EndedBy, Snapshot)>>,
    bell: Option<PipeWriter>,
}

impl Flags {
    /// Of a watch with a viewer, or without one.
    pub(super) fn new(is_viewed: bool, bell: PipeWriter) -> Self {
        Self { is_viewed, bell: Some(bell), ..Self::default() }
    }

    /// Leaves a call for the viewer to be told of, in place of one that it was not told of yet.
    fn tell(&self, call: EndedBy, now: Snapshot) {
        let before = self.fired.lock().unwrap_or_else(PoisonError::into_inner).replace((call, now));
        if let (None, Some(mut bell)) = (before, self.bell.as_ref()) {
            // One byte finds room; and the end of the watch is seen without a bell.
            let _ = bell.write_all(b"!");
        }
    }

    /// The call that the viewer is to be told of, once.
    pub(super) fn told(&self) -> Option<(EndedBy, Snapshot)> {
        self.fired.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The counts so far, from the tracer thread, which `wake` wakes; it returns whether that
    /// thread is still running. `None` where it is not.
    pub(super) fn snapshot(&self, mut wake: impl FnMut() -> bool) -> Option<Snapshot> {
        /// Between two attempts at waking a thread that was just about to sleep.
        const AGAIN: Duration = Duration::from_millis(2);
        let mut answer = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        *answer = None;
        self.asked.store(true, Ordering::Relaxed);
        loop {
            if let Some(snapshot) = answer.take() {
                return Some(snapshot);
            }
            if !wake() {
                return None;
            }
            let waited = self.answered.wait_timeout(answer, AGAIN);
            answer = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The tracer thread's side.
    fn answer(&self, snapshot: impl FnOnce() -> Snapshot) {
        if !self.asked.swap(false, Ordering::Relaxed) {
            return;
        }
        let snapshot = snapshot();
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot);
        self.answered.notify_one();
    }
}

/// The result of a watch.
#[derive(Debug)]
pub(super) struct SessionResult {
    pub(super) tally: Tally,
    /// Connections by peer, where they are counted.
    pub(super) connections: Option<ConnectionBook<ImageId>>,
    /// How the last root ended, if all did; it has been waited for then.
    pub(super) exit: Option<Exit>,
    /// When the root or, if that lived on, the watch ended.
    pub(super) ended: Instant,
    pub(super) still_running: Vec<Running>,
    /// Calls for which the filter's condition divided by zero.
    pub(super) divided_by_zero: u64,
    /// Calls for which the condition that ends the watch divided by zero.
    pub(super) end_divided_by_zero: u64,
    /// Calls that the filter's condition left out.
    pub(super) left_out: u64,
    /// Tasks that watched ones made so that they are not traced.
    pub(super) untraced_tasks: u64,
    /// The call that ended the watch, with the place of its image as its number.
    pub(super) ended_by: Option<EndedBy>,
    /// Calls by what they are grouped by.
    pub(super) groups: Option<Groups>,
    /// The counts at the end, for a viewer.
    pub(super) last: Option<Snapshot>,
}

impl SessionResult {
    /// Of a command that a signal ended before it could be watched.
    pub(super) fn nothing(exit: Exit) -> Self {
        let (ended, still_running) = (Instant::now(), Vec::new());
        let (tally, exit) = (Tally::with_room(0, 0), Some(exit));
        let (divided_by_zero, end_divided_by_zero) = (0, 0);
        Self {
            tally,
            connections: None,
            exit,
            ended,
            still_running,
            divided_by_zero,
            end_divided_by_zero,
            left_out: 0,
            untraced_tasks: 0,
            ended_by: None,
            groups: None,
            last: None,
        }
    }
}

impl PtraceSession {
    fn new(roots: Vec<u32>, request: &Request) -> Self {
        Self {
            roots,
            only: false,
            wait: request.wait,
            takes_slowest: request.takes_slowest,
            files: request.files,
            paths: request.paths,
            sockets: Sockets::new(),
            peer_texts: PeerTexts::default(),
            connections: request.peers.then(|| Connections::with_room(request.rows)),
            tracees: Tracees::default(),
            tally: match request.threads {
                true => Tally::with_room(request.rows, request.slowest).by_thread(request.rows),
                false => Tally::with_room(request.rows, request.slowest),
            },
            exec_calls: ExecCalls::new(),
            calls: request.calls.clone(),
            filter: request.filter.clone(),
            divided_by_zero: 0,
            sums: Sums::default(),
            end_divided_by_zero: 0,
            left_out: 0,
            untraced_tasks: 0,
            ended_by: None,
            fired: None,
            asks_again: None,
            groups: GroupBook::default(),
            rows: request.rows,
            began: Instant::now(),
            end: None,
        }
    }

    /// Seizes a child of this process that has yet to execute its program.
    pub(super) fn launcher(pid: u32, request: &Request) -> io::Result<Self> {
        let mut session = Self::new(vec![pid], request);
        ptrace::seize(pid)?;
        session.tracees.add_launcher(pid);
        // Its calls are seen from the next stop on, which comes before it executes anything.
        ptrace::interrupt(pid)?;
        Ok(session)
    }

    /// Seizes processes with all their threads, and their descendants.
    ///
    /// # Errors
    /// The process that could not be seized, and the kernel's error.
    pub(super) fn running(
        selection: &Selection,
        request: &Request,
    ) -> Result<Self, (u32, io::Error)> {
        let mut session = Self::new(selection.processes.clone(), request);
        session.only = selection.only;
        for pid in &selection.processes {
            session.seize_process(*pid).map_err(|error| (*pid, error))?;
        }
        let mut tried: BTreeSet<u32> = selection.processes.iter().copied().collect();
        loop {
            let mut new = selection.running();
            new.retain(|pid| !tried.contains(pid));
            if new.is_empty() {
                return Ok(session);
            }
            for pid in new {
                // It may have ended, be another user's, or have been made by a thread that is
                // traced and so is, too.
                let _ = session.seize_process(pid);
                tried.insert(pid);
            }
        }
    }

    fn seize_process(&mut self, pid: u32) -> io::Result<()> {
        self.tracees.look_at(pid);
        // It may have ended before the others.
        let first = self.seize_thread(pid, pid);
        let mut is_seized = first.is_ok();
        let mut tried = vec![pid];
        loop {
            let mut new = procfs::threads(pid);
            new.retain(|tid| !tried.contains(tid));
            if new.is_empty() {
                return if is_seized { Ok(()) } else { first };
            }
            for tid in new {
                is_seized |= self.seize_thread(pid, tid).is_ok();
                tried.push(tid);
            }
        }
    }

    /// Whether the call `name` is reported.
    pub(super) fn is_wanted(&self, name: &str) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls.contains(plain_name(name)))
            && self.filter.of_call(name) != Verdict::None
    }

    /// Whether the call `name` is none of the slowest because it waits for work.
    pub(super) fn is_left_idle(&self, name: &str, arguments: &[u64; 6]) -> bool {
        let are_chosen = self.calls.is_some() || self.filter.restricts();
        let count = iotomy_sys::syscalls::polls(plain_name(name));
        let is_sleep = count.is_some_and(|at| arguments[usize::from(at)] == 0);
        !are_chosen && !is_sleep && iotomy_record::calls::is_idle_wait(plain_name(name))
    }

    fn seize_thread(&mut self, pid: u32, tid: u32) -> io::Result<()> {
        match self.only {
            true => ptrace::seize_without_children(tid)?,
            false => ptrace::seize(tid)?,
        }
        self.tracees.add_running(pid, tid, &mut self.tally);
        let _ = ptrace::interrupt(tid);
        Ok(())
    }

    /// Watches until the end, or until told to stop.
    pub(super) fn run(mut self, flags: &Flags) -> SessionResult {
        // An error of `waitpid` ends the watch, never the command.
        while !self.is_over()
            && self.ended_by.is_none()
            && !flags.stop.load(Ordering::Relaxed)
            && let Ok(waited) = self.next()
        {
            match waited {
                WaitResult::Task(tid, status) => self.note(tid, status),
                WaitResult::Nothing => {}
                WaitResult::Nobody => break,
            }
            if let Some(call) = self.fired.take() {
                flags.tell(call, self.snapshot());
            }
            flags.answer(|| self.snapshot());
            if self.end.is_some() {
                flags.root_ended.store(true, Ordering::Relaxed);
            }
        }
        let last = flags.is_viewed.then(|| self.snapshot());
        SessionResult { last, ..self.finish() }
    }

    fn snapshot(&mut self) -> Snapshot {
        let slowest = if self.takes_slowest { self.tally.take_slowest() } else { Vec::new() };
        let wanted = |name: &str| self.is_wanted(name);
        let mut snapshot = self.tally.snapshot(&wanted);
        self.tracees.show(&mut snapshot, &self.tally, &wanted);
        let ended = self.ended_by.as_ref().map(|(_, _, at)| *at);
        snapshot.elapsed_ns = nanoseconds(self.began, ended.unwrap_or_else(Instant::now));
        snapshot.slowest = slowest;
        snapshot
    }

    /// A call that fulfilled the condition has returned: it ends the watch, or the viewer is told of it.
    pub(super) fn fulfilled(&mut self, image: ImageId, call: WholeCall, now: Instant) {
        let Some(pause) = self.filter.pause() else {
            self.ended_by = Some((image, call, now));
            return;
        };
        let call = self.tally.of_image(image, call);
        self.fired = Some(self.filter.ended_by(WholeCall { image: 0, ..call }, self.sums));
        self.sums = Sums::default();
        self.asks_again = now.checked_add(pause);
    }

    fn next(&mut self) -> io::Result<WaitResult> {
        let Some(began) = self.tracees.early_since() else { return ptrace::next_of_thread(true) };
        // A task waits for its parent's event, which takes microseconds unless the parent was
        // killed.
        let waited = ptrace::next_of_thread(false)?;
        if waited == WaitResult::Nothing {
            self.adopt_overdue();
            if began.elapsed() < Duration::from_millis(1) {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(waited)
    }

    /// The roots have ended and nothing else is waited for.
    fn is_over(&self) -> bool {
        self.tracees.len() == 0 || (self.end.is_some() && !self.wait)
    }

    /// Counts everything up to now, and closes every account.
    fn finish(mut self) -> SessionResult {
        // News there are already, of each tracee once: more come as long as they are answered.
        let news = if self.ended_by.is_some() { 0 } else { self.tracees.len() };
        for _ in 0..news {
            let Ok(WaitResult::Task(tid, status)) = ptrace::next_of_thread(false) else { break };
            self.note(tid, status);
        }
        let now = self.ended_by.as_ref().map_or_else(Instant::now, |(_, _, at)| *at);
        let threads = self.tracees.one_of_each_process();
        let connections = self.connections.take();
        let connections = connections.map(|all| all.end(&self.sockets, &threads, Instant::now()));
        let still_running = self.tracees.close_all(now, &mut self.tally);
        let (exit, ended) = match self.end {
            Some((exit, at)) => (Some(exit), at),
            None => (None, now),
        };
        let divided_by_zero = self.divided_by_zero;
        let groups = self.groups.into_groups(&self.filter.by);
        let ended_by = self.ended_by.map(|(image, call, _)| {
            self.filter.ended_by(self.tally.of_image(image, call), self.sums)
        });
        SessionResult {
            tally: self.tally,
            connections,
            exit,
            ended,
            still_running,
            divided_by_zero,
            end_divided_by_zero: self.end_divided_by_zero,
            left_out: self.left_out,
            untraced_tasks: self.untraced_tasks,
            ended_by,
            groups,
            last: None,
        }
    }
}
