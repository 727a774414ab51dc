//! The account of a copy, as its record stores it: the two ends, the contract, every mover with the
//! reason why it was tried, kept for later or not considered, and the traffic.
//!
//! A part is recorded in two steps: before anything moves, and with the result.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iotomy_host::file_systems;
use iotomy_movers::chooser::{MoverPlan, Report};
use iotomy_movers::{End, Kind, Moved, Mover, Probe};
use iotomy_record::path_text;
use iotomy_record::{
    CopyPart, CopyPlan, CopyRun, Machine, MoverReason, MoverRefusal, TriedMover, bytes_of,
};
use iotomy_sys::probe::memory;

use crate::CopyError;
use crate::error::{message, number};
use crate::options::{Detail, Options};
use crate::source::Source;
use crate::target::Target;

/// What came of a copy.
#[derive(Debug, Default)]
pub struct Account {
    /// The bytes that reached their targets, and how.
    pub moved: Moved,
    /// The errors of single sources, in the order of [`crate::Watcher::failed`].
    pub errors: Vec<CopyError>,
    /// Whether all that was read back was right; `None` where nothing was read back.
    pub verified: Option<bool>,
    /// The time that syncs took; `None` without any.
    pub fsync: Option<Duration>,
    /// The time of the whole; zero without [`Detail::Parts`], as are the next two.
    pub wall: Duration,
    /// The guarantees about later writes, holes and extents.
    pub contract: String,
    /// A part for each source that was begun.
    pub parts: Vec<CopyPart>,
}

impl Account {
    /// The record of a copy, without findings. How many of the written bytes are still dirty is looked up now.
    pub fn record(
        self,
        started: String,
        machine: Machine,
        (sources, target): (&[PathBuf], &Path),
    ) -> CopyRun {
        let Self { moved, errors, verified, fsync, wall, contract, mut parts } = self;
        for part in &mut parts {
            part.dirty_bytes = dirty_bytes(Path::new(&OsString::from_vec(bytes_of(&part.target))));
        }
        let mover = parts.first().and_then(|part| part.mover.clone());
        CopyRun {
            schema: CopyRun::SCHEMA.to_owned(),
            started,
            machine,
            sources: sources.iter().map(path_text).collect(),
            target: path_text(target),
            mover: mover.filter(|_| parts.iter().all(|part| part.mover == parts[0].mover)),
            bytes: moved.bytes,
            referenced_bytes: moved.traffic.referenced,
            copied_bytes: moved.traffic.copied,
            touched_bytes: moved.traffic.touched,
            wall_ns: nanoseconds(wall),
            fsync_ns: fsync.map(nanoseconds),
            verified,
            errors: errors.len() as u64,
            messages: errors.iter().map(ToString::to_string).collect(),
            contract,
            copies: parts,
            findings: Vec::new(),
        }
    }
}

/// A source on its way, of which nothing has moved yet.
pub(crate) fn begin(
    options: &Options,
    source: &Source,
    target: &Target<'_>,
    plan: &MoverPlan,
) -> CopyPart {
    let new = if target.changes_its_folder() { "new " } else { "" };
    let spare = plan.steps.iter().map(|step| MoverReason {
        mover: step.mover.declaration().name.to_owned(),
        reason: step.reason.to_owned(),
        probed: if options.detail >= Detail::Probes { probed(step.mover) } else { None },
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
pub(crate) fn settle(part: &mut CopyPart, report: &Report, took: Duration) {
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
fn nanoseconds(duration: Duration) -> u64 {
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

/// How many of the written pages of a regular target are still dirty.
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
