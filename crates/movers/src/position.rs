//! Positions of descriptors: where a run begins, and where it leaves them.

use rustix::fs::{SeekFrom, fstat, ftruncate, seek, tell};
use rustix::io::{Errno, pread};

use crate::patience::uninterrupted;
use crate::{End, Job, Kind, MoveError, Moved, MoverDeclaration, Side};

/// Where a positioned mover began, at both ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Positions {
    pub(crate) source: u64,
    pub(crate) target: u64,
}

impl Positions {
    /// The positions now.
    pub(crate) fn read(source: &End<'_>, target: &End<'_>) -> Result<Self, Errno> {
        Ok(Self { source: tell(source.fd())?, target: tell(target.fd())? })
    }

    /// The positions this many bytes behind them.
    pub(crate) fn behind(self, bytes: u64) -> Self {
        Self { source: self.source + bytes, target: self.target + bytes }
    }

    /// Sets both positions behind the moved bytes.
    pub(crate) fn settle(
        self,
        of: &MoverDeclaration,
        source: &End<'_>,
        target: &End<'_>,
        moved: Moved,
    ) -> Result<(), MoveError> {
        seek(source.fd(), SeekFrom::Start(self.source + moved.bytes))
            .map_err(|e| MoveError::new(of, "lseek", Side::Source, moved, e))?;
        seek(target.fd(), SeekFrom::Start(self.target + moved.bytes))
            .map_err(|e| MoveError::new(of, "lseek", Side::Target, moved, e))?;
        Ok(())
    }

    /// Truncates the target behind the `moved` bytes, up to `reached`: the source ended before it.
    /// Where another process has made the target longer, it stays.
    pub(crate) fn cut(
        self,
        of: &MoverDeclaration,
        target: &End<'_>,
        reached: u64,
        moved: Moved,
    ) -> Result<(), MoveError> {
        if reached <= moved.bytes {
            return Ok(());
        }
        let failed = |call| move |e| MoveError::new(of, call, Side::Target, moved, e);
        let size = fstat(target.fd()).map_err(failed("fstat"))?.st_size;
        if u64::try_from(size) == Ok(self.target + reached) {
            let end = target.size().max(self.target + moved.bytes);
            uninterrupted(|| ftruncate(target.fd(), end)).map_err(failed("ftruncate"))?;
        }
        Ok(())
    }

    /// Settles after a failure, as far as that works, and passes the failure on.
    pub(crate) fn settle_after(
        self,
        source: &End<'_>,
        target: &End<'_>,
        error: MoveError,
    ) -> MoveError {
        // The failure being passed on is the one to report; a second one is dropped.
        let _ = seek(source.fd(), SeekFrom::Start(self.source + error.moved.bytes));
        let _ = seek(target.fd(), SeekFrom::Start(self.target + error.moved.bytes));
        error
    }
}

/// The start of a run between regular files, and its number of bytes, as far as known.
pub(crate) fn begin(
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> Result<(Positions, u64), (&'static str, Errno)> {
    let start = Positions::read(source, target).map_err(|e| ("lseek", e))?;
    let length = remaining(source, start.source, job).map_err(|e| ("fstat", e))?;
    Ok((start, length))
}

/// The position of an end, if its kind has one.
pub(crate) fn start(end: &End<'_>) -> Result<Option<u64>, Errno> {
    match end.kind() {
        Kind::Regular | Kind::Block => tell(end.fd()).map(Some),
        _ => Ok(None),
    }
}

/// Puts the source's position back by bytes that were taken and went nowhere; returns how many are
/// lost, which is all of them where there is no position.
pub(crate) fn give_back(source: &End<'_>, bytes: u64) -> u64 {
    let Ok(back) = i64::try_from(bytes) else { return bytes };
    if bytes == 0 || !matches!(source.kind(), Kind::Regular | Kind::Block) {
        return missed(source, bytes);
    }
    match seek(source.fd(), SeekFrom::Current(-back)) {
        Ok(_) => 0,
        Err(_) => bytes,
    }
}

/// How many of `bytes` that were taken from a source without a position, and went nowhere, are lost.
pub(crate) fn missed(source: &End<'_>, bytes: u64) -> u64 {
    if source.gives_for_ever() { 0 } else { bytes }
}

/// How many bytes a regular source has behind position `from`, as its size is now, at most as many
/// as the job wants.
pub(crate) fn remaining(source: &End<'_>, from: u64, job: &Job<'_>) -> Result<u64, Errno> {
    let size = u64::try_from(rustix::fs::fstat(source.fd())?.st_size).unwrap_or(0);
    let left = size.saturating_sub(from);
    Ok(job.count.map_or(left, |count| count.min(left)))
}

/// Whether the byte in front of offset `end` can be read, so that the source is really as long as that, or has failed
/// there, which shows later.
pub(crate) fn reaches(source: &End<'_>, end: u64) -> bool {
    end == 0 || uninterrupted(|| pread(source.fd(), &mut [0], end - 1)) != Ok(0)
}

/// The reason for a refusal when source and target are one file and written bytes would be read
/// again, or overwrite bytes not yet read.
pub(crate) fn apart(source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
    if source.kind() != Kind::Regular || source.identity() != target.identity() {
        return Ok(());
    }
    let Ok(mut at) = Positions::read(source, target) else {
        return Err("source and target are the same file".to_owned());
    };
    if target.is_append() {
        at.target = source.size();
    }
    // Without a count the source never ends when the writes are behind the reads.
    let length = job.count.unwrap_or(u64::MAX);
    if at.source < at.target.saturating_add(length) && at.target < at.source.saturating_add(length)
    {
        return Err("source and target are the same bytes of the same file".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mover;
    use crate::parallel::Parallel;

    #[test]
    fn bytes_that_cannot_be_cut_off_are_an_error() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(90).unwrap();
        // A descriptor that is open for reading only.
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let readable = std::fs::File::open(path).unwrap();
        let target = End::new(&readable).unwrap();
        let start = Positions { source: 0, target: 0 };
        let moved = Moved { bytes: 60, ..Moved::default() };
        let error = start.cut(Parallel.declaration(), &target, 90, moved).unwrap_err();
        assert_eq!((error.call, error.side, error.moved), ("ftruncate", Side::Target, moved));
    }

    #[test]
    fn only_what_was_written_behind_the_moved_bytes_is_cut_off() {
        let start = Positions { source: 0, target: 10 };
        // The size before, the size now, and the size that is left: 60 bytes were moved behind the
        // first 10, and the writes reached byte 90.
        for (old, now, left) in [(10, 100, 70), (0, 100, 70), (80, 100, 80), (10, 101, 101)] {
            let file = tempfile::tempfile().unwrap();
            file.set_len(old).unwrap();
            let target = End::new(&file).unwrap();
            file.set_len(now).unwrap();
            let moved = Moved { bytes: 60, ..Moved::default() };
            start.cut(Parallel.declaration(), &target, 90, moved).unwrap();
            assert_eq!(file.metadata().unwrap().len(), left, "{old}, {now}");
            start.cut(Parallel.declaration(), &target, 60, moved).unwrap();
            assert_eq!(file.metadata().unwrap().len(), left, "{old}, {now}");
        }
    }
}
