//! A trial of requests that the kernel may refuse as a whole, before the target is emptied for
//! them.
//!
//! The invariant: no content is removed for a plan that may fail untried. A plan that cannot be
//! tried is refused.

use std::sync::atomic::AtomicU64;

use iotomy_movers::chooser::{self, MoverPlan};
use iotomy_movers::{End, Kind};
use rustix::fs::{SeekFrom, seek, tell};

use crate::error::Result;
use crate::fault::all_refused;
use crate::source::Source;
use crate::target::Target;
use crate::{CopyError, Options};

/// Bytes a mover is tried with that could be refused: whole blocks of every file system.
const REHEARSAL: u64 = 1 << 20;

/// Bytes of room requested in one call, which is refused as a whole.
const ROOM: u64 = 1 << 30;

/// Tries a plan that the kernel may refuse as a whole on an invisible file, before the target is
/// emptied for it. A plan with a mover that is never refused needs no trial. With several
/// `sources`, the second could still be refused when the first has been copied.
///
/// # Errors
/// Every mover was refused, or could not be tried; the target is as it was.
pub(crate) fn rehearse(
    options: &Options,
    source: &Source,
    target: &Target<'_>,
    plan: &MoverPlan,
    sources: usize,
) -> Result<()> {
    let has = |name| plan.steps.iter().any(|step| step.mover.declaration().name == name);
    if has("read-write") || !target.has_what_goes() {
        return Ok(());
    }
    let from = source.end();
    let no = |why: &str| untried(source, target, plan, why);
    if sources > 1 {
        return Err(no(
            "only a single source can be tried; use --atomic, which keeps the old file",
        ));
    }
    let begins = tell(source.fd()).ok().filter(|_| gives_again(&from));
    let once = "the source can be read only once; use --atomic, which keeps the old file";
    let at = begins.ok_or_else(|| no(once))?;
    let stand_in = target.stand_in().map_err(|why| {
        let hint = "empty it first, or leave out --mover and --reflink";
        no(&format!("{why}; {hint}"))
    })?;
    let to = End::new(stand_in.file()).map_err(|e| no(&e.to_string()))?;
    let left = options.job.count.unwrap_or(u64::MAX);
    let count = match () {
        // A clone is one call, and costs nothing.
        () if has("reflink") => options.job.count,
        () if has("fallocate") => Some(left.min(ROOM)),
        () => Some(left.min(REHEARSAL)),
    };
    let moved = AtomicU64::new(0);
    let outcome = chooser::run(plan, &from, &to, &options.job(count, &moved));
    // Otherwise the copy would begin behind the bytes of the trial.
    seek(source.fd(), SeekFrom::Start(at))
        .map_err(|e| CopyError::failed(format!("seek in {}", source.name), e))?;
    match outcome {
        Ok(report) if report.mover.is_none() => Err(all_refused(source, target, &report, 0)),
        // Any other failure happens again, and is reported then.
        _ => Ok(()),
    }
}

/// Whether the bytes read for the trial can be read again.
fn gives_again(source: &End<'_>) -> bool {
    source.has_true_size() || source.kind() == Kind::Block || source.is_zero_device()
}

fn untried(source: &Source, target: &Target<'_>, plan: &MoverPlan, why: &str) -> CopyError {
    let movers: Vec<&str> = plan.steps.iter().map(|step| step.mover.declaration().name).collect();
    let (movers, old) = (movers.join(" or "), &target.name);
    CopyError::Unsuited(format!(
        "cannot copy {} to {old} by {movers}: if the kernel refuses, the content of {old} is \
         lost, and no trial copy is possible: {why}",
        source.name
    ))
}
