//! The `pipelined` mover.
//!
//! ```text
//!          thread 2                                     thread 1
//! source ──read(2)──▶ full buffers, in their order ──▶ ──write(2)──▶ target
//!          copy 1  ◀── empty ones, half of them at once ◀── copy 2
//! ```
//!
//! Two copies as in `read-write`, by two threads: the second copy is out of the CPUs' caches, and
//! the first costs no time where the second takes longer. Both ends see one call after the other in
//! the order of the bytes. So the written bytes have no gap at any moment, and the kernel reads
//! ahead.
//!
//! The one invariant: only the calling thread writes, and it writes the bytes in the order they
//! were read. A failure to read is reported behind all bytes that were read before it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use iotomy_sys::buffer::Aligned;

use crate::join::join;
use crate::memory::buffer;
use crate::position::{apart, remaining, start};
use crate::read_write::{pump, put_all, take};
use crate::refusal::only;
use crate::route::Route;
use crate::{
    Choice, End, Holes, Job, Kind, MoveError, Moved, Mover, MoverDeclaration, Outcome, Side,
};

pub(crate) struct Pipelined;

static DECLARATION: MoverDeclaration = MoverDeclaration {
    name: "pipelined",
    summary: "read(2) by one thread, write(2) by another",
    description: "One thread reads ahead into up to eight buffers, and another writes them in \
        order: two concurrent copies in the time of one.",
    man: &["read(2)", "write(2)"],
    calls: &["read", "write", "ppoll", "lseek", "fstat"],
    by_reference: false,
    positioned: false,
    holes: Holes::Filled,
    chosen: &[Choice {
        routes: &[Route::LargeFile, Route::LargeFileCopied],
        rank: 20,
        reason: "two copies by two concurrent threads, the second from the CPU caches",
    }],
    tunings: &["block-size=131072", "block-size=262144", "block-size=524288"],
};

/// Buffers in use at once: together they fit into the CPUs' caches, and the threads do not wait for
/// one another at each.
const BUFFERS: usize = 8;

/// Bytes of all of them, where blocks are so large that eight would be more; two there are always.
const ROOM: usize = 32 << 20;

/// The number of buffers for blocks of this many bytes.
fn buffers_of(block: usize) -> usize {
    (ROOM / block.max(1)).clamp(2, BUFFERS)
}

/// Of so few bytes the second thread costs more than it saves.
const LEAST: u64 = 1 << 20;

impl Mover for Pipelined {
    fn declaration(&self) -> &'static MoverDeclaration {
        &DECLARATION
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        // Bytes that were read ahead of a failed write are given back to the source, and a read
        // that waits for a peer could not be ended.
        only(source, "source", &[Kind::Regular, Kind::Block])?;
        apart(source, target, job)
    }

    fn buffers(&self, _: &End<'_>, _: &End<'_>, job: &Job<'_>) -> u64 {
        job.want(0, job.block().saturating_mul(buffers_of(job.block()))) as u64
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        let refused = |call, errno| Ok(Outcome::Refused { call, errno: Some(errno) });
        let from = match start(source) {
            Ok(from) => from.unwrap_or(0),
            Err(errno) => return refused("lseek", errno),
        };
        let is_small = || remaining(source, from, job).is_ok_and(|bytes| bytes <= LEAST);
        if source.has_true_size() && is_small() {
            return pump(&DECLARATION, source, target, job, Moved::default()).map(Outcome::Done);
        }
        let Some(ring) = Ring::new(job) else {
            return refused("mmap", Errno::NOMEM);
        };
        let mut moved = Moved::default();
        let answer = thread::scope(|scope| {
            let reader = thread::Builder::new().spawn_scoped(scope, || ring.fill(source, job));
            let reader =
                reader.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
            let drained = ring.drain(source, target, job, &mut moved);
            join(reader);
            Ok(drained)
        });
        match answer {
            Err(errno) => refused("clone", errno),
            Ok(Ok(())) => Ok(Outcome::Done(moved)),
            Ok(Err(error)) => {
                // The failure being passed on is the one to report; a second one is dropped.
                let _ = seek(source.fd(), SeekFrom::Start(from + moved.bytes));
                Err(MoveError { lost: 0, ..error })
            }
        }
    }
}

/// The buffers between the two threads.
struct Ring {
    state: Mutex<State>,
    has_full: Condvar,
    has_empty: Condvar,
    /// Buffers that are given back at once: to wake the reader takes longer than to hand one over.
    batch: usize,
}

struct State {
    /// The filled buffers, each with its number of bytes, in order.
    full: VecDeque<(Aligned, usize)>,
    empty: Vec<Aligned>,
    /// The error that ended the reader, if any.
    failure: Option<Errno>,
    /// One of the threads does no more.
    is_over: bool,
}

impl Ring {
    /// All buffers are made here: an allocation of the second thread would begin a heap of its own.
    /// `None` where there is no memory for one.
    fn new(job: &Job<'_>) -> Option<Self> {
        let size = job.want(0, job.block());
        let empty: Vec<_> = (0..buffers_of(size)).map_while(|_| buffer(size).ok()).collect();
        if empty.is_empty() {
            return None;
        }
        let batch = (empty.len() / 2).max(1);
        let full = VecDeque::with_capacity(empty.len());
        let state = State { full, empty, failure: None, is_over: false };
        let (has_full, has_empty) = Default::default();
        Some(Self { state: Mutex::new(state), has_full, has_empty, batch })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until the source ends, the job's count is reached, or the writer has ended.
    fn fill(&self, source: &End<'_>, job: &Job<'_>) {
        let _over = EndNotice(self);
        let mut all = 0;
        while let Some(mut buffer) = self.empty_one() {
            let want = job.want(all, buffer.len());
            if want == 0 {
                return;
            }
            match take(source, &mut buffer[..want]) {
                Ok(0) => return,
                Ok(got) => {
                    all += got as u64;
                    self.state().full.push_back((buffer, got));
                    self.has_full.notify_one();
                }
                Err(errno) => {
                    self.state().failure = Some(errno);
                    return;
                }
            }
        }
    }

    /// A buffer to be filled; `None` when the writer has ended.
    fn empty_one(&self) -> Option<Aligned> {
        let is_waiting = |state: &mut State| state.empty.is_empty() && !state.is_over;
        let state = self.has_empty.wait_while(self.state(), is_waiting);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.is_over { None } else { state.empty.pop() }
    }

    /// Writes the bytes that were read, to the end.
    fn drain(
        &self,
        source: &End<'_>,
        target: &End<'_>,
        job: &Job<'_>,
        moved: &mut Moved,
    ) -> Result<(), MoveError> {
        let _over = EndNotice(self);
        let mut written = Vec::with_capacity(self.batch);
        loop {
            let (buffer, bytes) = match self.full_one(&mut written) {
                Ok(Some(full)) => full,
                Ok(None) => return Ok(()),
                Err(errno) => {
                    return Err(MoveError::new(&DECLARATION, "read", Side::Source, *moved, errno));
                }
            };
            put_all(&DECLARATION, source, target, job, &buffer[..bytes], moved)?;
            written.push(buffer);
        }
    }

    /// The next filled buffer; `None` after the last. Returns the `written` buffers when they are
    /// enough or there is nothing else to do.
    fn full_one(&self, written: &mut Vec<Aligned>) -> Result<Option<(Aligned, usize)>, Errno> {
        let mut state = self.state();
        if written.len() >= self.batch || state.full.is_empty() {
            state.empty.append(written);
            self.has_empty.notify_one();
        }
        let is_waiting = |state: &mut State| state.full.is_empty() && !state.is_over;
        let state = self.has_full.wait_while(state, is_waiting);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        match (state.full.pop_front(), state.failure) {
            (Some(full), _) => Ok(Some(full)),
            (None, Some(errno)) => Err(errno),
            (None, None) => Ok(None),
        }
    }
}

/// Notifies the other thread at the end, also after a panic.
struct EndNotice<'a>(&'a Ring);

impl Drop for EndNotice<'_> {
    fn drop(&mut self) {
        self.0.state().is_over = true;
        self.0.has_full.notify_one();
        self.0.has_empty.notify_one();
    }
}
