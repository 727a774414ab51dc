//! The `reflink` mover.
//!
//! ```text
//! source ──ioctl(FICLONE)──▶ target: the same extents, until one of the two is written to
//! ```
//!
//! No byte moves: the file system notes that two files share extents. One crossing, however large
//! the file. The next write to either takes new extents, so nothing shows through.
//!
//! A file is cloned whole (`FICLONE`), or from an offset to its end or for a count
//! (`FICLONERANGE`), which the file system wants to be of whole blocks.

use rustix::fs::{fstat, ioctl_ficlone};
use rustix::io::Errno;

use iotomy_sys::clone_range::clone_range;

use crate::patience::uninterrupted;
use crate::position::Positions;
use crate::read_write::read_on;
use crate::refusal::{only, plain};
use crate::route::Route;
use crate::sharing::may_share;
use crate::{
    Choice, End, Holes, Job, Kind, MoveError, Moved, Mover, MoverDeclaration, Outcome,
    Reflink as Wish, Side, Sparse, Traffic,
};

pub(crate) struct Reflink;

static DECLARATION: MoverDeclaration = MoverDeclaration {
    name: "reflink",
    summary: "ioctl(FICLONE): both files share their extents",
    description: "The file system lets two files share extents until one is written to: one \
        crossing, and no byte moves.",
    man: &["ioctl_ficlone(2)"],
    calls: &["ioctl", "fstat", "lseek", "read", "write", "ppoll"],
    by_reference: false,
    positioned: true,
    holes: Holes::Kept,
    chosen: &[
        Choice {
            routes: &[Route::OnlyShared],
            rank: 0,
            reason: "the request is for shared extents only",
        },
        Choice {
            routes: &[Route::SmallFile, Route::LargeFile, Route::FileToFile],
            rank: 0,
            reason: "no byte moves: the files share extents",
        },
    ],
    tunings: &[],
};

impl Mover for Reflink {
    fn declaration(&self) -> &'static MoverDeclaration {
        &DECLARATION
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        only(source, "source", &[Kind::Regular])?;
        only(target, "target", &[Kind::Regular])?;
        plain(source, target)?;
        if job.reflink == Wish::Never {
            return Err("extents must not be shared".to_owned());
        }
        if job.sparse == Sparse::Never {
            return Err("it keeps holes, and the options ask for zeros".to_owned());
        }
        if source.magic() != target.magic() {
            return Err("source and target are on different file systems".to_owned());
        }
        if !may_share(target) {
            return Err("the file system does not share extents".to_owned());
        }
        if source.identity() == target.identity() {
            return Err("source and target are the same file".to_owned());
        }
        if target.size() != 0 {
            return Err("the target is not empty".to_owned());
        }
        Ok(())
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        let refused = |call, errno| Ok(Outcome::Refused { call, errno: Some(errno) });
        let start = match Positions::read(source, target) {
            Ok(start) => start,
            Err(errno) => return refused("lseek", errno),
        };
        let size = match fstat(source.fd()) {
            Ok(stat) => stat.st_size.cast_unsigned(),
            Err(errno) => return refused("fstat", errno),
        };
        let left = size.saturating_sub(start.source);
        let length = job.count.map_or(left, |count| count.min(left));
        if length == 0 {
            return Ok(Outcome::Done(Moved::default()));
        }
        if let Err(errno) = clone(source, target, start, (length, left)) {
            // Nothing has moved, whatever the reason: another mover may succeed, or reports more.
            return refused("ioctl", errno);
        }
        // A source cloned to its end may have grown since it was examined.
        let shared = |bytes| {
            let traffic = Traffic { referenced: bytes, ..Traffic::default() };
            Moved { bytes, traffic }
        };
        let moved = fstat(target.fd())
            .map(|stat| shared(stat.st_size.cast_unsigned().saturating_sub(start.target)))
            .map_err(|e| MoveError::new(&DECLARATION, "fstat", Side::Target, shared(length), e))?;
        job.advance(moved.bytes);
        start.settle(&DECLARATION, source, target, moved)?;
        if job.reflink == Wish::Always {
            return Ok(Outcome::Done(moved));
        }
        read_on(&DECLARATION, source, target, job, moved).map(Outcome::Done)
    }
}

fn clone(
    source: &End<'_>,
    target: &End<'_>,
    start: Positions,
    (length, left): (u64, u64),
) -> Result<(), Errno> {
    uninterrupted(|| {
        if start.source == 0 && start.target == 0 && length == left {
            return ioctl_ficlone(target.fd(), source.fd());
        }
        // 0 is up to the end, which need not be a whole block.
        let length = if length == left { 0 } else { length };
        clone_range(source.fd(), start.source, length, target.fd(), start.target)
            .map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))
    })
}
