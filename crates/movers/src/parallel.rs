//! The `parallel` mover.
//!
//! ```text
//!          ┌─ range 0 ──copy_file_range(2), thread 1─┐
//! source ──┼─ range 1 ──copy_file_range(2), thread 2─┼──▶ target
//!          └─ range 2 ──whoever is free first ───────┘
//! ```
//!
//! Regular file to regular file: threads take ranges in turn and each moves its own inside the
//! kernel, or by pread64(2) and pwrite64(2) where that is refused. As many copies as one thread
//! would make, on several CPUs; the locks that file systems take for each write remain.
//!
//! The one invariant: ranges are handed out in order, and a thread works on its range until it is
//! done or has failed. So everything before the first unfinished range has reached the target, and
//! that counts as moved, with its traffic. Later ranges may have reached it too: after a failure
//! the target can hold bytes behind its position.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rustix::fs::copy_file_range;
use rustix::io::{Errno, pread, pwrite};

use iotomy_sys::buffer::Aligned;

use crate::copy_file_range::traffic;
use crate::in_kernel::side_of;
use crate::join::join;
use crate::patience::patiently_both;
use crate::position::{Positions, apart, begin};
use crate::read_write::{self, pump};
use crate::refusal::{is_refusal, only, plain};
use crate::sharing::may_share;
use crate::{
    End, Holes, Job, Kind, MoveError, Moved, Mover, MoverDeclaration, Outcome, Reflink, Side,
    Sparse, memory,
};

pub(crate) struct Parallel;

static DECLARATION: MoverDeclaration = MoverDeclaration {
    name: "parallel",
    summary: "ranges of a file in several threads",
    description: "Threads take ranges of a regular file in turn; each moves its ranges with \
        copy_file_range(2), or with pread(2) and pwrite(2) if the kernel refuses that.",
    man: &["copy_file_range(2)", "pread(2)", "pwrite(2)"],
    calls: &[
        "copy_file_range",
        "pread64",
        "pwrite64",
        "read",
        "write",
        "ppoll",
        "lseek",
        "fstat",
        "ioctl",
    ],
    by_reference: false,
    positioned: true,
    holes: Holes::AsItComes,
    chosen: &[],
    tunings: &[
        "threads=2 block-size=65536",
        "threads=2 block-size=262144",
        "threads=2 block-size=1048576",
        "threads=4 block-size=262144",
    ],
};

/// Blocks a range: enough that handing out does not count.
const BLOCKS: u64 = 16;

/// Bytes a range at least.
const LEAST: u64 = 64 * 1024;

impl Mover for Parallel {
    fn declaration(&self) -> &'static MoverDeclaration {
        &DECLARATION
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        only(source, "source", &[Kind::Regular])?;
        only(target, "target", &[Kind::Regular])?;
        if !source.has_true_size() {
            return Err("the source is generated when read".to_owned());
        }
        plain(source, target)?;
        if job.reflink == Reflink::Always {
            return Err("extents might not be shared".to_owned());
        }
        apart(source, target, job)
    }

    fn buffers(&self, _: &End<'_>, _: &End<'_>, job: &Job<'_>) -> u64 {
        u64::from(job.threads.max(1)) * job.block() as u64
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        let refused = |call, errno| Ok(Outcome::Refused { call, errno: Some(errno) });
        let (start, length) = match begin(source, target, job) {
            Ok(begin) => begin,
            Err((call, errno)) => return refused(call, errno),
        };
        let ranges = Ranges::new(source, target, job, start, length);
        ranges.share_out();

        let Ranges { done, short, .. } = ranges;
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let short = short.into_inner().unwrap_or_else(PoisonError::into_inner);
        let bulk = done.moved;
        let reached = done.reached();
        if let Some((call, side, errno)) = short.and_then(|short| short.failure) {
            if done.is_empty() && is_refusal(errno) {
                return refused(call, errno);
            }
            let error = MoveError::new(&DECLARATION, call, side, bulk, errno);
            return Err(start.settle_after(source, target, error));
        }
        start.settle(&DECLARATION, source, target, bulk)?;
        // The bytes by which the source has grown meanwhile; most often none.
        let all = pump(&DECLARATION, source, target, job, bulk)?;
        start.cut(&DECLARATION, target, reached, all)?;
        Ok(Outcome::Done(all))
    }
}

/// Whether the file system may do it: sharing keeps holes besides, and either can be forbidden.
fn offloads(target: &End<'_>, job: &Job<'_>) -> bool {
    let forbidden = job.reflink == Reflink::Never || job.sparse == Sparse::Never;
    !forbidden || !may_share(target)
}

/// The ranges of a run, and their state.
struct Ranges<'a, 'fd> {
    source: &'a End<'fd>,
    target: &'a End<'fd>,
    job: &'a Job<'a>,
    start: Positions,
    length: u64,
    range: u64,
    next: AtomicU64,
    stop: AtomicBool,
    /// Whether copy_file_range(2) has not been refused yet.
    offload: AtomicBool,
    done: Mutex<Done>,
    short: Mutex<Option<Short>>,
}

/// The bytes that have reached the target.
#[derive(Default)]
struct Done {
    /// From the beginning on, without a gap.
    moved: Moved,
    /// Of ranges behind that, by where they begin.
    behind: BTreeMap<u64, Moved>,
}

impl Done {
    /// Adds the moved bytes of the range that begins at `from`; returns by how much the bytes
    /// without a gap have grown.
    fn add(&mut self, from: u64, moved: Moved) -> u64 {
        let before = self.moved.bytes;
        if moved.bytes > 0 {
            self.behind.insert(from, moved);
        }
        while let Some(next) = self.behind.remove(&self.moved.bytes) {
            self.moved = self.moved + next;
        }
        self.moved.bytes - before
    }

    /// Nothing behind it has reached the target.
    fn reached(&self) -> u64 {
        self.behind.last_key_value().map_or(self.moved.bytes, |(from, moved)| from + moved.bytes)
    }

    fn is_empty(&self) -> bool {
        self.moved.bytes == 0 && self.behind.is_empty()
    }
}

/// The first place that was not moved: a failure, or the end of a source that has shrunk.
struct Short {
    at: u64,
    failure: Option<(&'static str, Side, Errno)>,
}

impl<'a, 'fd> Ranges<'a, 'fd> {
    fn new(
        source: &'a End<'fd>,
        target: &'a End<'fd>,
        job: &'a Job<'a>,
        start: Positions,
        length: u64,
    ) -> Self {
        Self {
            source,
            target,
            job,
            start,
            length,
            range: (job.block() as u64).saturating_mul(BLOCKS).max(LEAST),
            next: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            offload: AtomicBool::new(offloads(target, job)),
            done: Mutex::default(),
            short: Mutex::new(None),
        }
    }

    /// Moves all ranges, in this thread and as many others as the job allows and the system grants.
    fn share_out(&self) {
        // Of a file that may be shorter than it claims, a range behind its end may be read as zeros while another
        // thread makes its size known again.
        let threads = if self.source.gives_its_size() { self.job.threads } else { 1 };
        let useful = self.length.div_ceil(self.range).min(threads.into());
        thread::scope(|scope| {
            let spawned = (1..useful)
                .map_while(|_| thread::Builder::new().spawn_scoped(scope, || self.work()).ok());
            let others: Vec<_> = spawned.collect();
            self.work();
            others.into_iter().for_each(join);
        });
    }

    fn work(&self) {
        let mut buffer = None;
        while !self.stop.load(Ordering::Relaxed) {
            let from = self.next.fetch_add(1, Ordering::Relaxed).saturating_mul(self.range);
            if from >= self.length {
                return;
            }
            let until = self.length.min(from + self.range);
            let mut moved = Moved::default();
            let outcome = self.move_range(from, until, &mut moved, &mut buffer);
            let more = self.done.lock().unwrap_or_else(PoisonError::into_inner).add(from, moved);
            self.job.advance(more);
            if let Err(short) = outcome {
                self.stop.store(true, Ordering::Relaxed);
                let mut first = self.short.lock().unwrap_or_else(PoisonError::into_inner);
                if first.as_ref().is_none_or(|known| short.at < known.at) {
                    *first = Some(short);
                }
                return;
            }
        }
    }

    fn move_range(
        &self,
        from: u64,
        until: u64,
        moved: &mut Moved,
        buffer: &mut Option<Aligned>,
    ) -> Result<(), Short> {
        while from + moved.bytes < until {
            let at = from + moved.bytes;
            let want = usize::try_from(until - at).unwrap_or(usize::MAX);
            if self.offload.load(Ordering::Relaxed) {
                match self.offload(at, want) {
                    // A refusal, or an end that reading reports better.
                    Ok(0) => self.offload.store(false, Ordering::Relaxed),
                    Err(e) if is_refusal(e) => self.offload.store(false, Ordering::Relaxed),
                    Ok(bytes) => {
                        let bytes = bytes as u64;
                        let places = self.start.behind(at);
                        let traffic = traffic(self.source, self.target, places, bytes);
                        *moved = *moved + Moved { bytes, traffic };
                    }
                    Err(e) => {
                        let side = side_of(e, self.source, self.start.source + at);
                        let failure = Some(("copy_file_range", side, e));
                        return Err(Short { at, failure });
                    }
                }
            } else {
                let buffer = memory::kept(buffer, self.job.block()).map_err(|e| {
                    let failure = Some(("mmap", Side::Either, e));
                    Short { at, failure }
                })?;
                let most = want.min(buffer.len());
                self.read_and_write(at, &mut buffer[..most], moved)?;
            }
        }
        Ok(())
    }

    fn offload(&self, at: u64, want: usize) -> Result<usize, Errno> {
        patiently_both(self.source.fd(), self.target.fd(), || {
            let (mut from, mut to) = (self.start.source + at, self.start.target + at);
            let (source, target) = (self.source.fd(), self.target.fd());
            copy_file_range(source, Some(&mut from), target, Some(&mut to), want)
        })
    }

    /// Moves one block.
    fn read_and_write(&self, at: u64, block: &mut [u8], moved: &mut Moved) -> Result<(), Short> {
        let (source, target) = (self.source.fd(), self.target.fd());
        let short = |at, call, side, errno| Short { at, failure: Some((call, side, errno)) };
        let got =
            patiently_both(source, target, || pread(source, &mut *block, self.start.source + at))
                .map_err(|e| short(at, "pread64", Side::Source, e))?;
        if got == 0 {
            return Err(Short { at, failure: None });
        }
        let mut put = 0;
        while put < got {
            let at = at + put as u64;
            let n = patiently_both(source, target, || {
                pwrite(target, &block[put..got], self.start.target + at)
            })
            .and_then(|n| if n == 0 { Err(Errno::IO) } else { Ok(n) })
            .map_err(|e| short(at, "pwrite64", Side::Target, e))?;
            put += n;
            let bytes = n as u64;
            let traffic = read_write::traffic(self.target, bytes);
            *moved = *moved + Moved { bytes, traffic };
        }
        Ok(())
    }
}
