//! The memory for the buffers of a run, and whether it is available.
//!
//! The invariant: all of it is checked before anything has moved, so that a copy does not fail for
//! lack of memory in the middle.

use iotomy_sys::buffer::{ALIGNMENT, Aligned};
use rustix::io::Errno;
use rustix::system::sysinfo;

use crate::{BLOCK_SIZE, End, Job, Mover};

/// Buffers that need no check: twice what the movers use by default, and little on any machine.
const FREELY: u64 = 64 << 20;

/// The job with blocks no larger than the bytes to move, where their number is known.
pub(crate) fn fitted<'a>(source: &End<'_>, job: &Job<'a>) -> Job<'a> {
    let there = source.has_true_size().then(|| source.size());
    let most = there.into_iter().chain(job.count).min();
    let most = most.and_then(|most| usize::try_from(most).ok());
    let most = most.and_then(|most| most.checked_next_multiple_of(ALIGNMENT));
    let most = most.map_or(usize::MAX, |most| most.max(BLOCK_SIZE));
    Job { block_size: job.block_size.map(|block| block.min(most)), ..*job }
}

/// The reason for a refusal when a mover's buffers would take more memory than one process should:
/// half of the machine's, as with tmpfs. A ring's buffers are pinned, too.
pub(crate) fn suits(
    mover: &dyn Mover,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> Result<(), String> {
    let wanted = mover.buffers(source, target, job);
    if wanted <= FREELY {
        return Ok(());
    }
    let machine = sysinfo();
    let half = (machine.totalram as u64).saturating_mul(machine.mem_unit.into()) / 2;
    if wanted <= half {
        return Ok(());
    }
    Err(format!(
        "its buffers would take {} MiB, and half of this machine's memory is {} MiB; use smaller \
         blocks, or fewer in flight",
        wanted.div_ceil(1 << 20),
        half >> 20
    ))
}

/// Whether the buffers of a run can be allocated now, found by allocating them.
pub(crate) fn is_there(
    mover: &dyn Mover,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> bool {
    match mover.buffers(source, target, job) {
        0 => true,
        wanted => usize::try_from(wanted).is_ok_and(|wanted| buffer(wanted).is_ok()),
    }
}

/// A buffer of this many bytes.
pub(crate) fn buffer(bytes: usize) -> Result<Aligned, Errno> {
    Aligned::try_new(bytes).map_err(|_| Errno::NOMEM)
}

/// The buffer that is there, or a new one.
pub(crate) fn kept(place: &mut Option<Aligned>, bytes: usize) -> Result<&mut Aligned, Errno> {
    let kept = match place.take() {
        Some(kept) => kept,
        None => buffer(bytes)?,
    };
    Ok(place.insert(kept))
}
