//! The choice among the movers: which may serve a pair of descriptors, fastest first, and why.
//!
//! The order on a route is that of the ranks that the movers declare ([`crate::route`]). A mover
//! that cannot serve is listed with its reason, so that a choice can be explained.
//!
//! The one invariant: another mover is tried only while nothing has moved. After the first byte an
//! error is an error.

use std::fmt;

use rustix::io::Errno;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

use crate::declaration::{Choice, MoverDeclaration};
use crate::end::{End, Kind};
use crate::job::{BLOCK_SIZE, Job};
use crate::mover::Mover;
use crate::outcome::{MoveError, Moved, Outcome};
use crate::registry::MOVERS;
use crate::route::{ONE_ROUND, Route};
use crate::splice::PIPE_SIZE;
use crate::{holes, memory};

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
pub struct MoverPlan {
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
    /// The kernel's error; `None` where it moved nothing without an error.
    pub errno: Option<Errno>,
}

/// The result of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The mover that did it; `None` when every one of the plan was refused.
    pub mover: Option<&'static str>,
    /// The bytes it moved.
    pub moved: Moved,
    /// Those that were refused before it, in the order they were tried.
    pub refused: Vec<Refused>,
}

/// A plan that an error has ended, once it was clear that a mover serves.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failed {
    /// The error, and the bytes moved until then.
    pub error: MoveError,
    /// Those that were refused before the mover that failed.
    pub refused: Vec<Refused>,
}

/// Chooses among all movers for this pair of descriptors, and gives a reason for each that is not
/// tried.
pub fn choose(source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> MoverPlan {
    let mut plan = choose_only(source, target, job);
    let job = &memory::fitted(source, job);
    let order = in_order(Route::between(source, target, job));
    let in_order = order.iter().map(|(mover, _)| *mover);
    let is_in_order = |name| order.iter().any(|(known, _)| known.declaration().name == name);
    let others = MOVERS.iter().copied().filter(|mover| !is_in_order(mover.declaration().name));
    for mover in in_order.chain(others) {
        let MoverDeclaration { name, calls, .. } = *mover.declaration();
        let reason = match suits_unasked(mover, source, target, job) {
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
pub fn choose_only(source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> MoverPlan {
    let job = &memory::fitted(source, job);
    let order = in_order(Route::between(source, target, job)).into_iter();
    let steps = order
        .filter(|(mover, _)| suits_unasked(*mover, source, target, job).is_ok())
        .map(|(mover, choice)| Step { mover, reason: choice.reason })
        .collect();
    MoverPlan { steps, unsuited: Vec::new(), block_size: block_of(source, target) }
}

/// The movers that are tried on a route, by rank.
pub(crate) fn in_order(route: Route) -> Vec<(&'static dyn Mover, &'static Choice)> {
    let mut order: Vec<(&'static dyn Mover, &'static Choice)> = Vec::with_capacity(MOVERS.len());
    for mover in MOVERS {
        let mut choices = mover.declaration().chosen.iter();
        let choice = choices.find(|choice| choice.routes.contains(&route));
        order.extend(choice.map(|choice| (*mover, choice)));
    }
    order.sort_by_key(|(_, choice)| choice.rank);
    order
}

/// Whether any mover can treat holes as the job requires between these ends; if not, a plan has no
/// steps.
///
/// # Errors
/// Why it cannot.
pub fn possible(target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
    holes::possible(target, job)
}

/// The reason why a mover cannot serve this pair for this job, if it cannot.
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

/// Calls that pass on pages of the page cache. Where a file has no bytes, these are zeros until its file system has told
/// where it ends.
const PASSING_PAGES: [&str; 3] = ["copy_file_range", "sendfile", "splice"];

/// The reason why a mover is not tried unasked, if it is not.
fn suits_unasked(
    mover: &dyn Mover,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> Result<(), String> {
    suits(mover, source, target, job)?;
    let passes_pages = mover.declaration().calls.iter().any(|call| PASSING_PAGES.contains(call));
    if passes_pages && source.has_true_size() && !source.gives_its_size() {
        return Err(
            "the source may hold less than it claims, and read as zeros behind its end".to_owned()
        );
    }
    Ok(())
}

/// The plan of one mover that was requested by name.
///
/// # Errors
/// Why it cannot serve this pair.
pub fn only(
    mover: &'static dyn Mover,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> Result<MoverPlan, String> {
    suits(mover, source, target, &memory::fitted(source, job))?;
    let step = Step { mover, reason: "asked for by name" };
    let block_size = block_of(source, target);
    Ok(MoverPlan { steps: vec![step], unsuited: Vec::new(), block_size })
}

/// The job with a size of blocks.
fn with_block<'a>(plan: &MoverPlan, source: &End<'_>, job: &Job<'a>) -> Job<'a> {
    let block_size = job.block_size.or(Some(plan.block_size));
    memory::fitted(source, &Job { block_size, ..*job })
}

/// Whether a mover of the plan can allocate its buffers now: to be checked before the target is
/// emptied for a run.
///
/// # Errors
/// When none can: the number of bytes that the first of them needs is refused.
pub fn has_memory(
    plan: &MoverPlan,
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
/// Pipes of the default size at the ends are widened to 1 MiB where the kernel allows it, and stay
/// so: each wake-up of the other side then moves sixteen times as much. A pipe that was made
/// narrower is left so: its owner wants the other side close behind. A mover that is run by itself
/// leaves all pipes as they are.
///
/// Holes of a source are treated as [`Job::sparse`] requires. Kept holes split a file into several
/// runs of the mover; only a refusal of the first run with data counts as a refusal, and later ones
/// are errors like any other.
///
/// # Errors
/// As [`Mover::run`]: any error once a mover is sure to serve.
pub fn run(
    plan: &MoverPlan,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> Result<Report, Failed> {
    run_and_tell(plan, source, target, job, &|_| {})
}

/// As [`run`]; `begins` gets the name of each mover before it is tried.
///
/// # Errors
/// As [`run`].
pub fn run_and_tell(
    plan: &MoverPlan,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
    begins: &dyn Fn(&'static str),
) -> Result<Report, Failed> {
    let mut refused = Vec::new();
    let job = &with_block(plan, source, job);
    if !(source.has_true_size() && source.size() <= ONE_ROUND) {
        widen(source);
        widen(target);
    }
    for step in &plan.steps {
        let name = step.mover.declaration().name;
        begins(name);
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

/// Widens a pipe; a refusal, as for users with many pipes, does not matter.
fn widen(end: &End<'_>) {
    // The default capacity of a pipe.
    let unsized_size = ONE_ROUND as usize;
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
