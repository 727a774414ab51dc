//! The `fallocate` mover.
//!
//! ```text
//! zero device ─ ─ ─ nothing is read ─ ─ ─ ▶ fallocate(2): room in the target that reads as zeros
//! ```
//!
//! No byte moves: zeros are known without reading them. The file system reserves the space and
//! notes that it holds zeros; behind the target's end by plain `fallocate(2)`, over old content by
//! `FALLOC_FL_ZERO_RANGE`. The target has no holes and a later write finds its space. A crossing a
//! GiB.
//!
//! The one invariant: it serves only where the bytes are zeros by definition and their number is
//! known. To have zeros written, use `Sparse::Never`.

use rustix::event::PollFlags;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fstat, seek, tell};

use crate::in_kernel::MOST;
use crate::patience::patiently;
use crate::read_write::pump;
use crate::refusal::only;
use crate::route::Route;
use crate::{
    Choice, End, Holes, Job, Kind, MoveError, Moved, Mover, MoverDeclaration, Outcome, Side, Sparse,
};

pub(crate) struct Fallocate;

static DECLARATION: MoverDeclaration = MoverDeclaration {
    name: "fallocate",
    summary: "fallocate(2): space that reads as zeros, for zeros",
    description: "From the zero device to a regular file no byte moves: the file system reserves \
        the space and marks it as zeros. Only for a known number of bytes.",
    man: &["fallocate(2)", "zero(4)"],
    calls: &["fallocate", "fstat", "lseek", "read", "write", "ppoll"],
    by_reference: false,
    positioned: false,
    holes: Holes::Filled,
    chosen: &[Choice {
        routes: &[Route::ZerosToFile],
        rank: 0,
        reason: "no byte moves: reserved space reads as zeros",
    }],
    tunings: &[],
};

impl Mover for Fallocate {
    fn declaration(&self) -> &'static MoverDeclaration {
        &DECLARATION
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        if !source.is_zero_device() {
            return Err("the source is not the zero device".to_owned());
        }
        only(target, "target", &[Kind::Regular])?;
        if target.is_append() {
            return Err("the target is open for appending".to_owned());
        }
        if job.sparse == Sparse::Never {
            return Err("the options ask for written zeros".to_owned());
        }
        if job.count.is_none() {
            return Err("zeros without a count never end".to_owned());
        }
        Ok(())
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        let refused = |call, errno| Ok(Outcome::Refused { call, errno: Some(errno) });
        let start = match tell(target.fd()) {
            Ok(start) => start,
            Err(errno) => return refused("lseek", errno),
        };
        let size = match fstat(target.fd()) {
            Ok(stat) => u64::try_from(stat.st_size).unwrap_or(0),
            Err(errno) => return refused("fstat", errno),
        };
        let mode = if size > start { FallocateFlags::ZERO_RANGE } else { FallocateFlags::empty() };
        let mut bytes = 0;
        let mut whole = true;
        loop {
            let want = job.want(bytes, MOST) as u64;
            if want == 0 {
                break;
            }
            let answer = patiently(target.fd(), PollFlags::OUT, || {
                fallocate(target.fd(), mode, start + bytes, want)
            });
            match answer {
                Ok(()) => {
                    bytes += want;
                    job.advance(want);
                }
                // A plain write reports any error better, and how far it came.
                Err(errno) if bytes == 0 => return refused("fallocate", errno),
                Err(_) => {
                    whole = false;
                    break;
                }
            }
        }
        let reserved = Moved { bytes, ..Moved::default() };
        seek(target.fd(), SeekFrom::Start(start + bytes))
            .map_err(|e| MoveError::new(&DECLARATION, "lseek", Side::Target, reserved, e))?;
        if whole {
            return Ok(Outcome::Done(reserved));
        }
        pump(&DECLARATION, source, target, job, reserved).map(Outcome::Done)
    }
}
