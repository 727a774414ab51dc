//! The `copy-file-range` mover.
//!
//! ```text
//! source ──copy_file_range(2)──▶ target
//!          copy 1, or extents shared, or none on a server that copies itself
//! ```
//!
//! The file system uses its best method: it shares extents (btrfs, xfs), asks the server (NFS,
//! CIFS), or copies from one page cache to the other. One crossing a GiB and at most one copy.
//! Shared extents part at the next write, so later writes to the source never show through.
//!
//! The kernel does not report which of the three it used, but one call uses only one of them. So
//! after each call, on file systems that may share, the disk positions of the first moved extents
//! are compared (`FIEMAP`): if they are equal, the whole call was a reference; if they differ, or
//! are not allocated yet, it was a copy. Where that is not available either (NFS, CIFS), a
//! reference is counted, which then only means that no copy made here is known.

use rustix::fs::copy_file_range;
use rustix::io::Errno;

use iotomy_sys::extent::first_place;

use crate::in_kernel::{probed, repeat};
use crate::position::{Positions, apart};
use crate::refusal::{only, plain};
use crate::route::Route;
use crate::sharing::may_share;
use crate::{
    Choice, End, Holes, Job, Kind, MoveError, Mover, MoverDeclaration, Outcome, Probe, Reflink,
    Sparse, Traffic,
};

pub(crate) struct CopyFileRange;

static DECLARATION: MoverDeclaration = MoverDeclaration {
    name: "copy-file-range",
    summary: "copy_file_range(2): the file system copies or shares",
    description: "Between regular files: the file system shares extents if it supports that, \
        otherwise the kernel copies once from page cache to page cache. One crossing per GiB.",
    man: &["copy_file_range(2)"],
    calls: &["copy_file_range", "ppoll", "fstat", "lseek", "ioctl", "read", "write", "pread64"],
    by_reference: false,
    positioned: false,
    holes: Holes::AsItComes,
    chosen: &[
        Choice {
            routes: &[Route::SmallFile],
            rank: 10,
            reason: "one copy inside the kernel in one crossing, or none",
        },
        Choice {
            routes: &[Route::LargeFile, Route::FileToFile],
            rank: 10,
            reason: "one copy inside the kernel, or none where the file system shares",
        },
        Choice {
            routes: &[Route::LargeFileCopied, Route::FileToFileCopied],
            rank: 40,
            reason: "one copy inside the kernel, in rounds of 64 KiB",
        },
    ],
    tunings: &[],
};

/// The traffic of `bytes` that one call of copy_file_range(2) moved from these positions.
pub(crate) fn traffic(source: &End<'_>, target: &End<'_>, at: Positions, bytes: u64) -> Traffic {
    if may_share(target) && shares(source, target, at, bytes) {
        return Traffic { referenced: bytes, ..Traffic::default() };
    }
    Traffic { copied: bytes, ..Traffic::default() }
}

/// Whether both begin with the same extent, or with none, as far as that can be known.
fn shares(source: &End<'_>, target: &End<'_>, at: Positions, bytes: u64) -> bool {
    let ours = first_place(source.fd(), at.source, bytes);
    let copys = first_place(target.fd(), at.target, bytes);
    match (ours, copys) {
        (Ok(ours), Ok(copys)) => ours == copys && ours.is_none_or(|(_, place)| place != 0),
        _ => true,
    }
}

impl Mover for CopyFileRange {
    fn declaration(&self) -> &'static MoverDeclaration {
        &DECLARATION
    }

    fn probe(&self) -> Probe {
        let Ok((out, into)) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC) else {
            return Probe::Unsupported("pipe2: no pipe available".to_owned());
        };
        // Pipes are refused with EINVAL by a kernel that has the call and lets it be made.
        let answer = copy_file_range(&out, None, &into, None, 1);
        probed("copy_file_range", answer, &[Errno::INVAL])
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        only(source, "source", &[Kind::Regular])?;
        only(target, "target", &[Kind::Regular])?;
        for (end, role) in [(source, "source"), (target, "target")] {
            if !end.has_true_size() {
                return Err(format!(
                    "the {role} is generated, and no file system copies to or from it"
                ));
            }
        }
        plain(source, target)?;
        match job.reflink {
            Reflink::Auto => {}
            Reflink::Never if may_share(target) => {
                return Err("extents could be shared, which the options forbid".to_owned());
            }
            Reflink::Never => {}
            Reflink::Always => return Err("extents might not be shared".to_owned()),
        }
        if job.sparse == Sparse::Never && may_share(target) {
            return Err("holes could be kept, and the options ask for zeros".to_owned());
        }
        apart(source, target, job)
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        // Where nothing can be shared, no check is needed.
        let start = match may_share(target).then(|| Positions::read(source, target)).transpose() {
            Ok(start) => start,
            Err(errno) => return Ok(Outcome::Refused { call: "lseek", errno: Some(errno) }),
        };
        let call = |want| copy_file_range(source.fd(), None, target.fd(), None, want);
        let figures = |before, bytes| match start {
            Some(start) => traffic(source, target, start.behind(before), bytes),
            None => Traffic { copied: bytes, ..Traffic::default() },
        };
        repeat(&DECLARATION, source, target, job, call, figures)
    }
}
