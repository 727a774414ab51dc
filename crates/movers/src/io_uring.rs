//! The `io-uring` mover.
//!
//! ```text
//! file to file:  source ──read──▶ slot's buffer ──write──▶ target    linked, `depth` slots at once
//!                         copy 1                  copy 2
//! else:          source ──read──▶ buffer A/B ─────write──▶ target    one of each at once, in order
//! ```
//!
//! The copies of `read-write`, but one crossing submits several moves to the kernel, which reads
//! while it writes. Descriptors and buffers are registered, so it looks them up and pins them once.
//! A buffer belongs to the kernel from the request to its completion; `iotomy_sys::copy_ring`
//! ensures that.
//!
//! The one invariant: the order of a stream is kept by having at most one read and one write in
//! flight. Between files there is no order to keep; blocks are started in order and all started
//! ones are completed, so everything before the first unfinished one has reached the target.
//!
//! A request that does not complete for too long is cancelled by the ring and submitted again here:
//! a cancelled one has moved nothing, and between files it has the offsets it had before.

mod files;
mod stream;

use std::io;

use rustix::io::Errno;

use iotomy_sys::copy_ring::CopyRing;

use crate::position::{apart, begin};
use crate::read_write::{pump, traffic};
use crate::refusal::{plain, refused_or_failed};
use crate::{
    End, Holes, Job, Kind, MoveError, Moved, Mover, MoverDeclaration, MoverSession, Outcome, Probe,
    Side,
};

pub(crate) struct IoUring;

static DECLARATION: MoverDeclaration = MoverDeclaration {
    name: "io-uring",
    summary: "io_uring(7): reads and writes submitted together",
    description: "Reads linked to writes: several blocks in flight between files, one of each \
        between streams. The same copies as read-write, with fewer crossings.",
    man: &["io_uring(7)", "io_uring_enter(2)"],
    calls: &[
        "io_uring_setup",
        "io_uring_register",
        "io_uring_enter",
        "read",
        "write",
        "ppoll",
        "lseek",
        "fstat",
        "ring:read_fixed",
        "ring:write_fixed",
        "ring:read",
        "ring:write",
    ],
    by_reference: false,
    positioned: true,
    holes: Holes::Filled,
    chosen: &[],
    tunings: &[
        "block-size=65536",
        "block-size=262144",
        "block-size=1048576",
        "block-size=131072 depth=2",
        "block-size=131072 depth=8",
        "block-size=1048576 depth=2",
        "block-size=1048576 depth=8",
    ],
};

/// Bytes a slot's buffer holds at most: a request's length is 32 bits wide.
const MOST: usize = 1 << 30;

/// Slots at most: more than any device has use for.
const MOST_SLOTS: u32 = 1024;

impl Mover for IoUring {
    fn declaration(&self) -> &'static MoverDeclaration {
        &DECLARATION
    }

    fn probe(&self) -> Probe {
        match iotomy_sys::probe::io_uring::setup() {
            Ok(_) => Probe::Ready,
            Err(refusal) => Probe::Unsupported(refusal.to_string()),
        }
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        for (end, role) in [(source, "source"), (target, "target")] {
            if matches!(end.kind(), Kind::Directory | Kind::Other) {
                return Err(format!("the {role} is a {}", end.kind().name()));
            }
        }
        if source.has_true_size() && !source.gives_its_size() {
            return Err("its file system answers a ring's reads by the size it claims".to_owned());
        }
        plain(source, target)?;
        apart(source, target, job)
    }

    fn buffers(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> u64 {
        let (slots, block) = slots(source, target, job);
        u64::from(slots) * block as u64
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        self.session(source, target).run(job)
    }

    fn session<'a>(
        &'a self,
        source: &'a End<'a>,
        target: &'a End<'a>,
    ) -> Box<dyn MoverSession + 'a> {
        Box::new(Ring { source, target, ring: None })
    }
}

/// Runs over one ring, which the first of them makes.
struct Ring<'a> {
    source: &'a End<'a>,
    target: &'a End<'a>,
    /// None after an error: it accepts no more requests.
    ring: Option<CopyRing>,
}

impl MoverSession for Ring<'_> {
    fn run(&mut self, job: &Job<'_>) -> Result<Outcome, MoveError> {
        let (source, target) = (self.source, self.target);
        let files = are_files(source, target);
        let mut ring = match self.ring.take().map_or_else(|| self.make(job), Ok) {
            Ok(ring) => ring,
            Err((call, e)) => return Ok(Outcome::Refused { call, errno: Some(errno(e)) }),
        };
        let outcome = if files {
            between_files(&mut ring, source, target, job)
        } else {
            stream::carry(&mut ring, source, target, job)
                .map(|bytes| Outcome::Done(moved(target, bytes)))
                .or_else(|failure| failure.into_outcome(target))
        };
        if matches!(outcome, Ok(Outcome::Done(_))) {
            self.ring = Some(ring);
        }
        outcome
    }
}

impl Ring<'_> {
    fn make(&self, job: &Job<'_>) -> Result<CopyRing, (&'static str, io::Error)> {
        let (slots, block) = slots(self.source, self.target, job);
        CopyRing::new(self.source.fd(), self.target.fd(), slots, block, job.patience)
    }
}

/// Whether there are offsets at both ends, and no order to keep.
fn are_files(source: &End<'_>, target: &End<'_>) -> bool {
    source.has_true_size() && target.kind() == Kind::Regular
}

/// How many slots a ring has, and how large: no more than there is to put into them, by the size of
/// the whole file, as a ring may serve all its extents.
fn slots(source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> (u32, usize) {
    let block = job.block().clamp(1, MOST);
    if !are_files(source, target) {
        return (2, block);
    }
    let blocks = u32::try_from(source.size().div_ceil(block as u64)).unwrap_or(u32::MAX);
    (job.depth.min(blocks).clamp(1, MOST_SLOTS), block)
}

/// The traffic of `bytes` through the ring's buffers.
fn moved(target: &End<'_>, bytes: u64) -> Moved {
    Moved { bytes, traffic: traffic(target, bytes) }
}

fn between_files(
    ring: &mut CopyRing,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> Result<Outcome, MoveError> {
    let (start, length) = match begin(source, target, job) {
        Ok(begin) => begin,
        Err((call, errno)) => return Ok(Outcome::Refused { call, errno: Some(errno) }),
    };
    let carried = match files::carry(ring, start, length, job) {
        Ok(carried) => carried,
        Err(failure) => {
            return failure.into_outcome(target).map_err(|e| start.settle_after(source, target, e));
        }
    };
    let bulk = moved(target, carried.bytes);
    start.settle(&DECLARATION, source, target, bulk)?;
    // The bytes by which the source has grown meanwhile; most often none.
    let all = pump(&DECLARATION, source, target, job, bulk)?;
    start.cut(&DECLARATION, target, carried.reached, all)?;
    Ok(Outcome::Done(all))
}

/// Why a run ended early.
struct Failure {
    call: &'static str,
    side: Side,
    moved: u64,
    lost: u64,
    errno: Errno,
}

impl Failure {
    fn new(call: &'static str, side: Side, moved: u64, errno: Errno) -> Self {
        Self { call, side, moved, lost: 0, errno }
    }

    /// The mover's result: a refusal when nothing had moved and the error may be one.
    fn into_outcome(self, target: &End<'_>) -> Result<Outcome, MoveError> {
        let Self { call, side, lost, errno, .. } = self;
        let moved = moved(target, self.moved);
        if lost > 0 {
            // Another mover would continue behind the lost bytes.
            return Err(MoveError::new(&DECLARATION, call, side, moved, errno).losing(lost));
        }
        refused_or_failed(&DECLARATION, call, side, moved, errno)
    }
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
