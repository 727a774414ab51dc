//! The choice among the movers: which may serve a pair of descriptors, fastest first, and why.
//!
//! The order is reasoned here from what the kernel does on each route; the benches hold it against
//! the clock. What cannot serve is kept with its reason, so that a choice can be explained.
//!
//! The one invariant: another mover is tried only while nothing has moved. After the first byte an
//! error is an error.

use std::fmt;
use std::thread::available_parallelism;

use rustix::io::Errno;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

use crate::copy_file_range::may_share;
use crate::splice::PIPE_SIZE;
use crate::{
    BLOCK_SIZE, Declaration, End, Job, Kind, MOVERS, MoveError, Moved, Mover, Outcome, Reflink,
    Sparse, holes, memory,
};

/// A mover to be tried.
#[derive(Clone, Copy)]
pub struct Step {
    /// The mover.
    pub mover: &'static dyn Mover,
    /// Why it stands where it stands.
    pub reason: &'static str,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.mover.declaration().name, self.reason)
    }
}

/// A mover that is not tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsuited {
    /// Its name.
    pub mover: &'static str,
    /// Why not.
    pub reason: String,
}

/// Which movers are to be tried, in this order, and which are not.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Those to be tried, fastest first.
    pub steps: Vec<Step>,
    /// All others.
    pub unsuited: Vec<Unsuited>,
    /// Bytes a request on this route, where the job leaves it to the plan.
    pub block_size: usize,
}

/// A mover that the kernel refused before anything had moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The mover.
    pub mover: &'static str,
    /// The call that was refused.
    pub call: &'static str,
    /// What the kernel said; `None` where it moved nothing without an error.
    pub errno: Option<Errno>,
}

/// What came of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The mover that did it; `None` when every one of the plan was refused.
    pub mover: Option<&'static str>,
    /// What it moved.
    pub moved: Moved,
    /// Those that were refused before it, in the order they were tried.
    pub refused: Vec<Refused>,
}

/// A plan that an error has ended, once it was clear that a mover serves.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failed {
    /// What went wrong, and what had been moved by then.
    pub error: MoveError,
    /// Those that were refused before the mover that failed.
    pub refused: Vec<Refused>,
}

/// Chooses among all movers for this pair of descriptors, and says of each other why it is not tried.
pub fn choose(source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Plan {
    let mut plan = choose_only(source, target, job);
    let job = &memory::fitted(source, job);
    let order = order(source, target, job);
    let in_order = order.iter().filter_map(|(name, _)| crate::mover(name));
    let is_in_order = |name| order.iter().any(|(known, _)| *known == name);
    let others = MOVERS.iter().copied().filter(|mover| !is_in_order(mover.declaration().name));
    for mover in in_order.chain(others) {
        let Declaration { name, calls, .. } = *mover.declaration();
        let reason = match suits(mover, source, target, job) {
            Err(reason) => reason,
            Ok(()) if is_in_order(name) => continue,
            Ok(()) if calls.is_empty() => "it moves nothing".to_owned(),
            Ok(()) => "others are faster on this route".to_owned(),
        };
        plan.unsuited.push(Unsuited { mover: name, reason });
    }
    plan
}

/// As [`choose`], without a word about the others: to find their reasons takes longer than all else
/// between the calls of a small copy.
pub fn choose_only(source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Plan {
    let job = &memory::fitted(source, job);
    let order = order(source, target, job);
    let mut steps = Vec::with_capacity(order.len());
    for &(name, reason) in order {
        match crate::mover(name) {
            Some(mover) if suits(mover, source, target, job).is_ok() => {
                steps.push(Step { mover, reason });
            }
            _ => {}
        }
    }
    Plan { steps, unsuited: Vec::new(), block_size: block_of(source, target) }
}

/// Whether what the job wants of holes can be had between these ends, by whatever mover; where not,
/// a plan has no steps.
///
/// # Errors
/// Why it cannot.
pub fn possible(target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
    holes::possible(target, job)
}

/// Says why not when a mover cannot serve this pair as the job wants it.
fn suits(
    mover: &dyn Mover,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> Result<(), String> {
    holes::possible(target, job)?;
    mover.serves(source, target, job)?;
    holes::suits(mover, job)?;
    memory::suits(mover, source, target, job)
}

/// The plan of one mover that was asked for by name.
///
/// # Errors
/// Why it cannot serve this pair.
pub fn only(
    mover: &'static dyn Mover,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> Result<Plan, String> {
    suits(mover, source, target, &memory::fitted(source, job))?;
    let step = Step { mover, reason: "asked for by name" };
    let block_size = block_of(source, target);
    Ok(Plan { steps: vec![step], unsuited: Vec::new(), block_size })
}

/// The job with a size of blocks.
fn with_block<'a>(plan: &Plan, source: &End<'_>, job: &Job<'a>) -> Job<'a> {
    let block_size = job.block_size.or(Some(plan.block_size));
    memory::fitted(source, &Job { block_size, ..*job })
}

/// Whether a mover of the plan can have its buffers now: to be asked before the target is emptied for a
/// run.
///
/// # Errors
/// None can: those of so many bytes that the first of them wants are refused.
pub fn has_memory(
    plan: &Plan,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> Result<(), u64> {
    let job = &with_block(plan, source, job);
    let is_there = |step: &Step| memory::is_there(step.mover, source, target, job);
    match plan.steps.first() {
        Some(first) if !plan.steps.iter().any(is_there) => {
            Err(first.mover.buffers(source, target, job))
        }
        _ => Ok(()),
    }
}

/// Carries a plan out: tries its movers in order until one is not refused.
///
/// Pipes at the ends that nobody has sized are widened to 1 MiB where the kernel allows it, and stay
/// so: each wake-up of the other side moves sixteen times as much. Who has made one narrower wants the
/// other side close behind. A mover run by itself leaves them as they are.
///
/// Holes of a source become what [`Job::sparse`] says. Kept holes part a file into runs of the mover;
/// only of the first with data is a refusal one, and afterwards it is an error as any other.
///
/// # Errors
/// As [`Mover::run`]: whatever goes wrong once it is clear that a mover serves.
pub fn run(
    plan: &Plan,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> Result<Report, Failed> {
    let mut refused = Vec::new();
    let job = &with_block(plan, source, job);
    if !(source.has_true_size() && source.size() <= NARROW) {
        widen(source);
        widen(target);
    }
    for step in &plan.steps {
        let name = step.mover.declaration().name;
        match holes::run(step.mover, source, target, job) {
            Ok(Outcome::Done(moved)) => return Ok(Report { mover: Some(name), moved, refused }),
            Ok(Outcome::Refused { call, errno }) => {
                refused.push(Refused { mover: name, call, errno });
            }
            Err(error) => return Err(Failed { error, refused }),
        }
    }
    Ok(Report { mover: None, moved: Moved::default(), refused })
}

/// The size of a pipe nobody has changed, in bytes.
const NARROW: u64 = 64 * 1024;

/// Makes a pipe hold more; refused to users who have many pipes, which is no matter.
fn widen(end: &End<'_>) {
    let unsized_size = NARROW as usize;
    if end.kind() == Kind::Pipe && fcntl_getpipe_size(end.fd()) == Ok(unsized_size) {
        let _ = fcntl_setpipe_size(end.fd(), PIPE_SIZE);
    }
}

/// Bytes a request from a file through the loopback, where they are copied: within the noise of the best that
/// dd(1) was tried with there (`bench copy`).
const LOOPBACK_BLOCK: usize = 512 * 1024;

/// Bytes a request on a route.
fn block_of(source: &End<'_>, target: &End<'_>) -> usize {
    let is_loopback = target.kind() == Kind::Socket && target.is_loopback();
    if source.kind() == Kind::Regular && is_loopback { LOOPBACK_BLOCK } else { BLOCK_SIZE }
}

type Order = &'static [(&'static str, &'static str)];

/// What is worth trying on a route, fastest first.
fn order(source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Order {
    // A plain copy is no reflink: who wants only that gets nothing else.
    if job.reflink == Reflink::Always {
        return ONLY_SHARED;
    }
    if job.sparse == Sparse::Always {
        return LOOKING;
    }
    match (source.kind(), target.kind()) {
        (Kind::Regular, _) if !source.has_true_size() => MADE_UP,
        (_, Kind::Regular) if target.is_append() => APPENDING,
        (Kind::Char, Kind::Regular) if source.is_zero_device() => ZEROS_TO_FILE,
        (Kind::Regular, Kind::Regular) if source.size() <= NARROW => SMALL_FILE,
        (Kind::Regular, Kind::Regular) => match (may_share(target), is_for_two(source, job)) {
            (true, true) => LARGE_FILE,
            (true, false) => FILE_TO_FILE,
            (false, true) => LARGE_FILE_COPIED,
            (false, false) => FILE_TO_FILE_COPIED,
        },
        (Kind::Regular | Kind::Block, Kind::Pipe) => FILE_TO_PIPE,
        (Kind::Regular, Kind::Socket) if target.is_loopback() => FILE_TO_LOOPBACK,
        (Kind::Regular | Kind::Block, Kind::Socket) => FILE_TO_SOCKET,
        (Kind::Regular | Kind::Block, _) if target.is_null_device() => FILE_TO_NULL,
        (Kind::Pipe, Kind::Char) if !target.is_null_device() => STREAM_TO_DEVICE,
        (Kind::Pipe, _) => FROM_PIPE,
        (Kind::Socket, Kind::Pipe | Kind::Regular | Kind::Socket) => FROM_SOCKET,
        (Kind::Char, Kind::Pipe) => DEVICE_TO_PIPE,
        _ => ANYTHING,
    }
}

/// Bytes of which a second thread saves more than it costs to start.
const LARGE: u64 = 64 << 20;

/// Whether there is enough to copy at once for two threads, and a CPU for each.
fn is_for_two(source: &End<'_>, job: &Job<'_>) -> bool {
    let bytes = job.count.map_or(source.size(), |count| count.min(source.size()));
    let has_two = || available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    // Each extent between holes is a run of its own, with threads of its own.
    bytes >= LARGE && !source.may_have_holes() && job.threads > 1 && has_two()
}

const BY_COPY: (&str, &str) =
    ("read-write", "serves every pair that the others do not: two copies");

static ONLY_SHARED: Order = &[("reflink", "the request is for shared extents only")];

static LOOKING: Order =
    &[("read-write", "it inspects the bytes, and a block of zeros becomes a hole")];

// Sizes mean nothing and offloads end at once; such files are small.
static MADE_UP: Order =
    &[("read-write", "the source is generated when read, and offloads end at once")];

// O_APPEND is refused by every offload, and its flag is not ours to clear.
static APPENDING: Order =
    &[("mmap-write", "the target appends: one copy, from the source's page cache"), BY_COPY];

// No byte moves in a reflink, and copy_file_range may share or ask a server. All else copies once, in
// the kernel, in rounds of what a pipe holds: 1 MiB in splice's own, 64 KiB in that of sendfile and of
// copy_file_range where it has to copy. Larger rounds make larger folios on file systems that have them.
// Of a large file two copies by two threads take less time than one: a write out of the CPUs' caches is
// shorter, and less is done for each page. Two threads that both write (`parallel`) take turns at the
// file's lock.
static LARGE_FILE: Order = &[SHARED, SHARED_OR_COPIED, PIPELINED, SPLICED, BY_SENDFILE, BY_COPY];

static FILE_TO_FILE: Order = &[SHARED, SHARED_OR_COPIED, SPLICED, BY_SENDFILE, BY_COPY];

const SHARED: (&str, &str) = ("reflink", "no byte moves: the files share extents");

const SHARED_OR_COPIED: (&str, &str) =
    ("copy-file-range", "one copy inside the kernel, or none where the file system shares");

const PIPELINED: (&str, &str) =
    ("pipelined", "two copies by two concurrent threads, the second from the CPU caches");

const BY_SENDFILE: (&str, &str) = ("sendfile", "one copy inside the kernel, in rounds of 64 KiB");

const SPLICED: (&str, &str) = ("splice", "one copy inside the kernel, in rounds of 1 MiB");

// A file of one round: a wide pipe costs more to make than it saves.
static SMALL_FILE: Order = &[
    SHARED,
    ("copy-file-range", "one copy inside the kernel in one crossing, or none"),
    ("sendfile", "one copy inside the kernel in one crossing"),
    BY_COPY,
];

// The file system shares nothing, so copy_file_range is a splice in small rounds.
static LARGE_FILE_COPIED: Order = &[PIPELINED, SPLICED, IN_SMALL_ROUNDS, BY_SENDFILE, BY_COPY];

static FILE_TO_FILE_COPIED: Order = &[SPLICED, IN_SMALL_ROUNDS, BY_SENDFILE, BY_COPY];

const IN_SMALL_ROUNDS: (&str, &str) =
    ("copy-file-range", "one copy inside the kernel, in rounds of 64 KiB");

static ZEROS_TO_FILE: Order =
    &[("fallocate", "no byte moves: reserved space reads as zeros"), BY_COPY];

// References to the page cache, no copy. vmsplice would save one of read-write's two copies, for a
// page fault and a fresh page each 4 KiB, which cost more than copying within the CPU's cache.
static FILE_TO_PIPE: Order =
    &[("splice", "no copy: the pipe gets references to the page cache"), BY_COPY];

// sendfile splices through a pipe of the task's own, which saves the second crossing of splice.
static FILE_TO_SOCKET: Order = &[
    ("sendfile", "no copy: the socket gets references to the page cache"),
    ("splice", "no copy, through a pipe"),
    BY_COPY,
];

// No wire: the reader copies in any case, out of the file's pages in rounds of 1 MiB, or out of large fresh
// buffers, into which they are copied first. On one machine that takes about as long, or less by a
// fifth; on another 1.8 times as long (`results`, notes of copying).
static FILE_TO_LOOPBACK: Order = &[
    ("splice", "no copy except the reader's: the socket gets references to the page cache"),
    BY_COPY,
];

// The null device looks at nothing. Of a mapping it is not given a page; splicing finds each.
static FILE_TO_NULL: Order = &[
    ("mmap-write", "no copy: the null device reads no page of the mapping"),
    ("sendfile", "no copy: the null device drops references to the page cache"),
    ("splice", "no copy, through a pipe"),
    BY_COPY,
];

static FROM_PIPE: Order =
    &[("splice", "pages move inside the kernel, and a file copies them once"), BY_COPY];

// A terminal gains nothing from pages.
static STREAM_TO_DEVICE: Order = &[BY_COPY];

static FROM_SOCKET: Order = &[("splice", "received pages move inside the kernel"), BY_COPY];

// splice from a device is a read into pages the kernel allocates for it: no second copy.
static DEVICE_TO_PIPE: Order =
    &[("splice", "one copy inside the kernel, in one crossing"), BY_COPY];

static ANYTHING: Order = &[BY_COPY];
