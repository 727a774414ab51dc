//! The account of a copy, as its record stores it: the two ends, the contract, every mover with the
//! reason why it was tried, kept for later or not considered, and the traffic.
//!
//! It is recorded in two steps: before anything moves, and with the result.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

use iotomy_host::file_systems;
use iotomy_movers::chooser::{Plan, Report};
use iotomy_movers::{End, Kind, Mover, Probe};
use iotomy_record::{CopyPart, CopyPlan, MoverReason, MoverRefusal, TriedMover, bytes_of};
use iotomy_sys::probe::memory;

use super::messages::{message, number};
use super::options::{Choice, CopyArgs};
use super::source::Source;
use super::target::Target;

/// A source on its way, of which nothing has moved yet. With `--explain`, each mover of the plan is
/// probed.
pub(super) fn begin(
    args: &CopyArgs,
    source: &Source,
    target: &Target<'_>,
    plan: &Plan,
) -> CopyPart {
    let new = if target.changes_its_folder() { "new " } else { "" };
    let spare = plan.steps.iter().map(|step| MoverReason {
        mover: step.mover.declaration().name.to_owned(),
        reason: step.reason.to_owned(),
        probed: if args.explain { probed(step.mover) } else { None },
    });
    let unsuited = plan.unsuited.iter().map(|unsuited| MoverReason {
        mover: unsuited.mover.to_owned(),
        reason: unsuited.reason.clone(),
        probed: None,
    });
    CopyPart {
        source: source.name.clone(),
        source_is: described(&source.end()),
        target: target.name.clone(),
        target_is: new.to_owned() + &described(&target.end_as_found()),
        mover: None,
        bytes: 0,
        referenced_bytes: 0,
        copied_bytes: 0,
        touched_bytes: 0,
        wall_ns: 0,
        plan: CopyPlan { tried: Vec::new(), spare: spare.collect(), unsuited: unsuited.collect() },
        error: None,
        dirty_bytes: None,
    }
}

/// Adds the result: the movers that were tried, and the traffic.
pub(super) fn settle(part: &mut CopyPart, report: &Report, took: Duration) {
    let plan = &mut part.plan;
    let mut is_open = true;
    for MoverReason { mover, reason, probed } in std::mem::take(&mut plan.spare) {
        let refused = report.refused.iter().find(|refused| refused.mover == mover);
        let refused = refused.map(|refused| MoverRefusal {
            call: refused.call.to_owned(),
            errno: refused.errno.map(|errno| named(errno.raw_os_error())),
            said: refused.errno.map(|errno| message(&errno.into())).unwrap_or_default(),
        });
        if is_open && (refused.is_some() || report.mover == Some(&mover)) {
            is_open = refused.is_some();
            plan.tried.push(TriedMover { mover, reason, probed, refused });
        } else {
            plan.spare.push(MoverReason { mover, reason, probed });
        }
    }
    let traffic = report.moved.traffic;
    part.mover = report.mover.map(str::to_owned);
    part.bytes = report.moved.bytes;
    part.referenced_bytes = traffic.referenced;
    part.copied_bytes = traffic.copied;
    part.touched_bytes = traffic.touched;
    part.wall_ns = nanoseconds(took);
}

/// As records have it.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn named(errno: i32) -> String {
    let name = u32::try_from(errno).ok().and_then(iotomy_sys::errno::name);
    name.map_or_else(|| errno.to_string(), str::to_owned)
}

fn probed(mover: &dyn Mover) -> Option<String> {
    match mover.probe() {
        Probe::Ready => None,
        Probe::Unsupported(reason) => Some(reason),
    }
}

/// The guarantees about later writes, holes and extents.
pub(super) fn contract(args: &CopyArgs) -> String {
    let shows = if args.by_value { "must not" } else { "may" };
    let holes = match args.sparse {
        Choice::Auto => "holes of the source stay holes",
        Choice::Never => "no holes",
        Choice::Always => "blocks of zeros become holes",
    };
    let extents = match args.reflink {
        Choice::Auto => "extents may be shared",
        Choice::Never => "extents must not be shared",
        Choice::Always => "extents must be shared",
    };
    format!("later writes {shows} show through; {holes}; {extents}")
}

fn described(end: &End<'_>) -> String {
    let mut text = end.kind().name().to_owned();
    if end.kind() == Kind::Regular {
        if end.has_true_size() {
            let _ = write!(text, ", {} bytes", number(end.size()));
        } else {
            text += ", generated when read";
        }
        let _ = write!(text, ", on {}", file_systems::in_words(end.magic()));
    }
    for (holds, what) in [
        (end.is_null_device(), ", the null device"),
        (end.may_have_holes(), ", with holes"),
        (end.is_append(), ", appending"),
        (end.is_direct(), ", O_DIRECT"),
        (end.is_non_blocking(), ", O_NONBLOCK"),
    ] {
        if holds {
            text += what;
        }
    }
    text
}

/// Notes how many of the written pages of each regular target are still dirty.
pub(super) fn note_dirty(parts: &mut [CopyPart]) {
    for part in parts {
        part.dirty_bytes = dirty_bytes(Path::new(&OsString::from_vec(bytes_of(&part.target))));
    }
}

fn dirty_bytes(path: &Path) -> Option<u64> {
    // Checked first: opening a device or a FIFO may have effects.
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let cached = memory::cachestat(file.as_fd()).ok()?;
    let page = rustix::param::page_size() as u64;
    Some(cached.dirty.saturating_add(cached.writeback).saturating_mul(page))
}
