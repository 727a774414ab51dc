//! Keeps holes: runs a mover over the data extents of a source and keeps the holes between them.
//!
//! ```text
//! source  data ······hole······ data ····hole····      lseek(2), SEEK_DATA and SEEK_HOLE
//!          │ the mover           │ the mover
//! target  data ·hole or punched data ···········│      ftruncate(2) to the end
//! ```
//!
//! Behind the target's old end, writing past a gap leaves a hole. Over old content a hole is
//! punched, or zeros are written where that is refused. To turn zeros that are data into holes
//! ([`Sparse::Always`]), each block has to pass through this process: data extents, or whole
//! sources without extents, are read, examined and written here, as `read-write` does.
//!
//! A file system without `SEEK_HOLE` says that there are none. Where a file takes less room than its bytes, blocks of zeros
//! are holes then, and the bytes pass through this process too, whatever the mover.
//!
//! Holes count as moved, and neither as referenced, copied nor touched.
//!
//! The one invariant: bytes that count as moved have reached the target. A hole behind the target's
//! end (the *gap*) does not count before bytes behind it have arrived, or the file was extended.
//!
//! A source that changes meanwhile: no extents are looked for beyond its size at the start, and
//! each has a length, so the walk ends; an extent that returns fewer bytes than it had ends it too.
//! Then the source is read on from there to its end, as by any mover.

mod walk;
mod zeros;

use rustix::fs::{SeekFrom, fstat, seek};
use rustix::io::Errno;

use crate::position::Positions;
use crate::{End, Holes, Job, Kind, MoveError, Moved, Mover, Outcome, Side, Sparse};

use walk::Walk;

/// The reason why no mover can treat holes as the job requires between these ends, if none can.
///
/// # Errors
/// Zeros are to become holes, and the target has none.
pub(crate) fn possible(target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
    if job.sparse != Sparse::Always {
        return Ok(());
    }
    match target.kind() {
        Kind::Regular if !target.is_append() => Ok(()),
        Kind::Regular => Err("the target is open for appending, which creates no holes".to_owned()),
        kind => Err(format!("the target is a {}, which has no holes", kind.name())),
    }
}

/// The reason why a mover cannot treat holes as the job requires, if it cannot.
pub(crate) fn suits(mover: &dyn Mover, job: &Job<'_>) -> Result<(), String> {
    if job.sparse == Sparse::Always && mover.declaration().holes != Holes::Found {
        return Err("zeros must become holes, and it does not inspect bytes".to_owned());
    }
    Ok(())
}

/// Runs a mover so that the job's wish about holes comes true.
///
/// # Errors
/// As [`Mover::run`].
pub(crate) fn run(
    mover: &dyn Mover,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> Result<Outcome, MoveError> {
    let of = mover.declaration();
    let into_file = target.kind() == Kind::Regular && !target.is_append();
    let keeps = matches!(of.holes, Holes::Kept) || of.calls.is_empty();
    if job.sparse == Sparse::Never || !into_file || keeps {
        return mover.run(source, target, job);
    }
    let mut looks = job.sparse == Sparse::Always && of.holes == Holes::Found;
    if !source.has_true_size() {
        if !looks {
            return mover.run(source, target, job);
        }
        return Walk::new(mover, source, target, job, true).map_or_else(refused, Walk::look_at_all);
    }
    if !looks && source.size() <= SMALL && !source.may_have_holes() {
        return mover.run(source, target, job);
    }
    let extents = match Extents::for_job(source, target, job) {
        Ok(extents) => extents,
        Err(errno) => return refused(("lseek", errno)),
    };
    match extents.has_holes(source) {
        Ok(holes) if holes || looks => {}
        Ok(_) if source.may_hide_holes() => looks = true,
        Ok(_) => return mover.run(source, target, job),
        Err(errno) => {
            return Err(MoveError::new(of, "lseek", Side::Source, Moved::default(), errno));
        }
    }
    Walk::new(mover, source, target, job, looks)
        .map_or_else(refused, |walk| walk.along(extents.length))
}

fn refused((call, errno): (&'static str, Errno)) -> Result<Outcome, MoveError> {
    Ok(Outcome::Refused { call, errno: Some(errno) })
}

/// Of so few bytes in as many blocks as they need, looking for a hole costs more than it may save.
const SMALL: u64 = 128 * 1024;

/// The part of a regular source that is to be walked over.
#[derive(Debug, Clone, Copy)]
struct Extents {
    from: u64,
    length: u64,
}

impl Extents {
    fn for_job(source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Self, Errno> {
        let from = Positions::read(source, target)?.source;
        Ok(Self { from, length: crate::position::remaining(source, from, job)? })
    }

    /// Whether it has a hole, according to the file system: the number of blocks is misleading for
    /// a file that has some behind its end, or some that hold its own map.
    fn has_holes(self, source: &End<'_>) -> Result<bool, Errno> {
        if self.length == 0 {
            return Ok(false);
        }
        match place(source, SeekFrom::Hole(self.from))? {
            Place::At(hole) => {
                seek(source.fd(), SeekFrom::Start(self.from))?;
                Ok(hole < self.from + self.length)
            }
            Place::None | Place::Unknown => Ok(false),
        }
    }
}

/// The result of `SEEK_DATA` or `SEEK_HOLE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    At(u64),
    /// There is none before the end of the file, or the file has ended before.
    None,
    /// The file system does not know: everything is data.
    Unknown,
}

/// Seeks the next data or hole; if there is one, the position is there afterwards.
fn place(source: &End<'_>, of: SeekFrom) -> Result<Place, Errno> {
    match seek(source.fd(), of) {
        Ok(at) => Ok(Place::At(at)),
        Err(Errno::NXIO) => Ok(Place::None),
        Err(errno) if crate::refusal::is_refusal(errno) => Ok(Place::Unknown),
        Err(errno) => Err(errno),
    }
}

/// A regular file's size now.
fn size(file: &End<'_>) -> Result<u64, Errno> {
    Ok(u64::try_from(fstat(file.fd())?.st_size).unwrap_or(0))
}
