//! Windows' I/O completion port, as far as it is a queue that feeds threads: programs post completions, threads
//! retrieve them, and no more than a *concurrency value* of those threads run at once.
//!
//! The words of Microsoft's pages (CreateIoCompletionPort, GetQueuedCompletionStatusEx, PostQueuedCompletionStatus)
//! are the specification. Completions are retrieved in the order in which they were posted; threads that wait are
//! released last-in first-out, so that as few threads as possible work, with warm caches; a thread belongs to the port
//! from which it retrieved last, and one of them that blocks elsewhere frees its place. When it runs again, there are
//! briefly more than the value; none is released then until there are fewer.
//!
//! A thread counts as running from its return to its next call, unless it is known to be blocked. Who knows that is a
//! [`RunWatch`]. The watch that every user may have, [`ProcWatch`], looks: while completions are queued, threads
//! wait and as many as the value run, one of those that wait looks at the others every now and then, and more often
//! while it finds some that are blocked. In all other cases nobody looks, and a watch that is told by the kernel has [`CompletionPort::look`] called when something has
//! changed.
//!
//! The tricky invariant: a completion is given to a thread under the lock, before the thread is woken. So who is
//! released is decided by the order of the stack alone, and a thread whose time is up at that moment has it still.

mod run_watch;
mod state;

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use iotomy_sys::forks;
use rustix::io::Errno;

use crate::retrieve::Deadline;
pub use run_watch::{Look, ProcWatch, RunWatch};
use state::State;
pub use state::{Completion, PortCounts};

/// A completion port. Clones are the same port.
#[derive(Debug, Clone)]
pub struct CompletionPort {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    watch: Box<dyn RunWatch>,
    depth: u64,
}

/// A thread's place in the port from which it retrieved last.
struct Seat {
    port: Weak<Shared>,
    thread: usize,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(port) = self.port.upgrade() {
            port.leave(self.thread);
        }
    }
}

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

impl CompletionPort {
    /// Makes a port with this concurrency value; 0 stands for the number of CPUs that the process may use.
    #[must_use]
    pub fn new(concurrency: usize) -> Self {
        Self::with_watch(concurrency, Box::new(ProcWatch::default()))
    }

    /// Makes a port that learns by `watch` which of its threads run.
    #[must_use]
    pub fn with_watch(concurrency: usize, watch: Box<dyn RunWatch>) -> Self {
        let cpus = || thread::available_parallelism().map_or(1, usize::from);
        let concurrency = if concurrency == 0 { cpus() } else { concurrency };
        let state = Mutex::new(State::new(concurrency));
        let shared = Arc::new(Shared { state, watch, depth: forks::depth() });
        let port = Arc::downgrade(&shared);
        shared.watch.start(Box::new(move || {
            if let Some(port) = port.upgrade() {
                port.look();
            }
        }));
        Self { shared }
    }

    /// Queues a completion, and releases a thread for it if fewer than the concurrency value run.
    ///
    /// # Errors
    /// `EBADF` after a close, and in a child of the process that made the port.
    pub fn post(&self, completion: Completion) -> Result<(), Errno> {
        let mut state = self.shared.open()?;
        state.queue.push_back(completion);
        self.shared.settle(state);
        Ok(())
    }

    /// Retrieves a completion, and waits for it until the time-out, or without end. `None` after the time-out.
    ///
    /// # Errors
    /// As [`Self::get_each`].
    pub fn get(&self, timeout: Option<Duration>) -> Result<Option<Completion>, Errno> {
        let mut got = None;
        self.get_each(1, timeout, |completion| got = Some(completion))?;
        Ok(got)
    }

    /// Retrieves completions, as many as there are and there is room for, and waits for the first one until the
    /// time-out, or without end. Returns their number, 0 after the time-out. The thread runs from then on to its
    /// next call, as far as the port is concerned, or to its end.
    ///
    /// # Errors
    /// `EINVAL` without room, `EBADF` after a close, and in a child of the process that made the port.
    pub fn get_each(
        &self,
        room: usize,
        timeout: Option<Duration>,
        put: impl FnMut(Completion),
    ) -> Result<usize, Errno> {
        self.post_and_get([], room, timeout, put)
    }

    /// Queues completions and retrieves as [`Self::get_each`]: the caller, which came last, before those that wait.
    /// For a thread that finds what is to be posted.
    ///
    /// # Errors
    /// As [`Self::get_each`]; nothing is posted then.
    pub fn post_and_get(
        &self,
        posted: impl IntoIterator<Item = Completion>,
        room: usize,
        timeout: Option<Duration>,
        mut put: impl FnMut(Completion),
    ) -> Result<usize, Errno> {
        if room == 0 {
            return Err(Errno::INVAL);
        }
        let deadline = Deadline::after(timeout);
        let thread = self.seat()?;
        let mut state = self.shared.open()?;
        state.stop(thread);
        state.queue.extend(posted);
        loop {
            if let Some(got) = state.take(thread, room, &mut put) {
                self.shared.settle(state);
                return Ok(got);
            }
            if state.is_closed {
                return Err(Errno::BADF);
            }
            if deadline.has_passed() {
                state.go_on(thread);
                self.shared.settle(state);
                return Ok(0);
            }
            state.fall_asleep(thread);
            if self.shared.watch.interval().is_none() && state.is_stuck() && !state.is_wanted() {
                self.shared.settle(state);
                state = self.shared.lock();
                continue;
            }
            let interval = self.shared.watch.interval();
            let is_lookout = state.is_lookout(thread, interval.is_some());
            let nap = interval.filter(|_| is_lookout).map(|interval| state.nap(interval));
            drop(state);
            let slept = Instant::now();
            match nap.into_iter().chain(deadline.left()).min() {
                Some(left) => thread::park_timeout(left),
                None => thread::park(),
            }
            if nap.is_some_and(|nap| slept.elapsed() >= nap) {
                self.shared.look_out(thread);
            }
            state = self.shared.lock();
        }
    }

    /// Looks at which threads run now, and releases others in the places of those that are blocked. Ports whose
    /// watch has an interval do so themselves.
    pub fn look(&self) {
        if self.shared.depth == forks::depth() {
            self.shared.look();
        }
    }

    /// Ends the port: threads that wait return with `EBADF`, and completions that are queued are lost.
    pub fn close(&self) {
        let Ok(mut state) = self.shared.open() else { return };
        state.is_closed = true;
        state.queue.clear();
        let sleepers = state.wake_all();
        drop(state);
        sleepers.iter().for_each(Thread::unpark);
    }

    /// How the port knows which threads run.
    #[must_use]
    pub fn watch(&self) -> &dyn RunWatch {
        &*self.shared.watch
    }

    /// How many threads may run at once.
    #[must_use]
    pub fn concurrency(&self) -> usize {
        self.shared.lock().concurrency
    }

    /// How many completions are queued.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.shared.lock().queue.len()
    }

    /// How many threads run, as far as is known.
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.lock().running
    }

    /// How many threads wait for completions.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.lock().waiting()
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> PortCounts {
        self.shared.lock().counts
    }

    /// The caller's place in this port. A thread that had one in another port leaves that.
    fn seat(&self) -> Result<usize, Errno> {
        SEAT.with(|seat| {
            let mut seat = seat.borrow_mut();
            match &*seat {
                Some(seat) if std::ptr::eq(seat.port.as_ptr(), Arc::as_ptr(&self.shared)) => {
                    Ok(seat.thread)
                }
                _ => {
                    *seat = None;
                    let mut state = self.shared.open()?;
                    let id = rustix::thread::gettid().as_raw_nonzero().get();
                    let thread = state.join(thread::current(), id);
                    drop(state);
                    self.shared.watch.joined(id);
                    *seat = Some(Seat { port: Arc::downgrade(&self.shared), thread });
                    Ok(thread)
                }
            }
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of a port that is there. A child never waits for the lock, which a thread may hold that it has not.
    fn open(&self) -> Result<MutexGuard<'_, State>, Errno> {
        if self.depth != forks::depth() {
            return Err(Errno::BADF);
        }
        let state = self.lock();
        if state.is_closed { Err(Errno::BADF) } else { Ok(state) }
    }

    /// Releases the threads that may run now, and sees to it that one looks where one must.
    fn settle(&self, mut state: MutexGuard<'_, State>) {
        let is_told = self.watch.interval().is_none();
        let mut woken = state.release();
        woken.extend(state.appoint_lookout(!is_told));
        let change = if is_told { state.change_of_want() } else { None };
        if let Some(is_wanted) = change {
            self.watch.want(is_wanted);
        }
        drop(state);
        woken.iter().for_each(Thread::unpark);
        if change == Some(true) {
            // Those that have blocked before are told no more.
            self.look();
        }
    }

    /// What a thread does that looks, when its nap is over.
    fn look_out(&self, thread: usize) {
        let mut state = self.lock();
        if !state.is_lookout(thread, false) {
            return;
        }
        if !state.is_stuck() {
            state.dismiss_lookout();
            return;
        }
        drop(state);
        self.look();
    }

    fn look(&self) {
        let began = Instant::now();
        let outside = self.lock().outside();
        let look = |(thread, id, turn)| Some((thread, turn, self.watch.runs(id)?));
        let seen: Vec<_> = outside.into_iter().filter_map(look).collect();
        let mut state = self.lock();
        state.apply(&seen, began.elapsed());
        self.settle(state);
    }

    fn leave(&self, thread: usize) {
        if self.depth != forks::depth() {
            return;
        }
        let mut state = self.lock();
        let id = state.leave(thread);
        self.settle(state);
        self.watch.left(id);
    }
}
