//! Reading a target back.
//!
//! The written bytes are synced first and then dropped from the page cache, so that a file system
//! with a device answers from the device. The kernel is free to keep pages all the same.
//!
//! The number of bytes to compare does not depend on the mover: of a source with a known length,
//! everything that it had and that was requested is due. As a length is only a hint, nothing may come behind it either, unless
//! the source has grown.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use iotomy_movers::Kind;
use iotomy_record::path_text;
use iotomy_sys::buffer::Aligned;
use rustix::fs::{
    Advice, AtFlags, CWD, FileType, Mode, OFlags, SeekFrom, fadvise, fdatasync, fstat, open, seek,
    statat, tell,
};
use rustix::io::{Errno, pread, retry_on_intr};

use crate::error::{Result, number, unsuited};
use crate::names::{is_standard_input, is_standard_output};
use crate::session::CopySession;
use crate::source::Source;
use crate::target::{Target, TargetPlace, articled};
use crate::{CopyError, Options, Placement};

/// Bytes compared at a time.
const BLOCK: usize = 1 << 20;

/// Where a part began at both ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begin {
    source: u64,
    target: u64,
    /// How many bytes the source has from there on, where it says.
    there: Option<u64>,
}

/// Says no when the ends could not be read again.
///
/// # Errors
/// Which of them cannot.
pub(crate) fn can_be_read_again(source: &Source, target: &Target<'_>) -> Result<()> {
    for (end, name) in [(source.end(), &source.name), (target.end(), &target.name)] {
        if !matches!(end.kind(), Kind::Regular | Kind::Block) {
            return unverifiable(name, end.kind());
        }
    }
    Ok(())
}

fn unverifiable(name: &str, kind: Kind) -> Result<()> {
    let what = articled(kind.name());
    unsuited(format!(
        "cannot verify {name}: it is {what}, which cannot be read again; leave out --verify"
    ))
}

/// Refuses a FIFO that the options do not allow before it is opened: that would wait for its other end.
///
/// # Errors
/// The option and the FIFO.
pub(crate) fn refuse_pipes(
    options: &Options,
    sources: &[PathBuf],
    place: TargetPlace<'_>,
) -> Result<()> {
    let seeks = matches!(options.placement, Placement::At(_));
    if !(options.verify || options.fsync || options.preserve || seeks) {
        return Ok(());
    }
    let is_pipe = |folder: BorrowedFd<'_>, name: &Path| {
        let stat = statat(folder, name, AtFlags::empty());
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
    };
    let source = sources.iter().find(|path| !is_standard_input(path) && is_pipe(CWD, path));
    let is_named = place.folder.is_some() || !is_standard_output(place.path);
    let target = (is_named && is_pipe(place.folder(), place.name)).then_some(place.path);
    let pipe = source.map(PathBuf::as_path).or(target);
    match (pipe.map(path_text), target.map(path_text)) {
        (Some(pipe), _) if options.verify => unverifiable(&pipe, Kind::Pipe),
        (Some(pipe), _) if options.preserve => {
            unsuited(format!("cannot preserve attributes: {pipe} is a pipe; leave out --preserve"))
        }
        (_, Some(pipe)) if options.fsync => unsuited(format!(
            "cannot sync {pipe}: it is a pipe, which is not stored on disk; leave out --fsync"
        )),
        (_, Some(pipe)) if seeks => {
            unsuited(format!("cannot seek in {pipe}: it is a pipe; leave out --seek"))
        }
        _ => Ok(()),
    }
}

/// Has what was written stored, so that it is read back from there.
///
/// # Errors
/// It cannot be stored.
pub(crate) fn settle(session: &mut CopySession<'_>, target: &Target<'_>) -> Result<()> {
    let begun = Instant::now();
    match fdatasync(target.fd()) {
        Ok(()) => session.synced(begun.elapsed()),
        // Files that have nothing to sync say so by this.
        Err(Errno::INVAL) => {}
        Err(e) => return Err(CopyError::failed(format!("sync {}", target.name), e)),
    }
    Ok(())
}

impl Begin {
    /// Where the next part will begin.
    ///
    /// # Errors
    /// When the positions are unknown.
    pub(crate) fn now(source: &Source, target: &Target<'_>) -> Result<Self> {
        let cannot = |e: Errno| CopyError::failed(format!("verify {}", target.name), e);
        let at = if target.end().is_append() {
            fstat(target.fd()).map_err(cannot)?.st_size.cast_unsigned()
        } else {
            tell(target.fd()).map_err(cannot)?
        };
        let from = tell(source.fd()).map_err(cannot)?;
        let there = size(source, from).map_err(cannot)?.map(|size| size.saturating_sub(from));
        Ok(Self { source: from, target: at, there })
    }

    /// Compares from here on what was `moved`, and at least what was due of `count` bytes, once it is
    /// [settled](settle); returns how many bytes are the same.
    ///
    /// # Errors
    /// They differ, and where first; or one of them cannot be read.
    pub(crate) fn compare(
        self,
        source: &Source,
        target: &Target<'_>,
        (moved, count): (u64, Option<u64>),
    ) -> Result<u64> {
        let cannot =
            |what: &str, name: &str, e: Errno| CopyError::failed(format!("{what} {name}"), e);
        let back = read_back(target.fd()).map_err(|e| cannot("read back", &target.name, e))?;
        // Where pages cannot be dropped, they are compared as they are.
        let _ = fadvise(&back, self.target, None, Advice::DontNeed);
        let buffer = || Aligned::try_new(BLOCK);
        let (mut left, mut right) = buffer()
            .and_then(|left| Ok((left, buffer()?)))
            .map_err(|e| CopyError::failed(format!("verify {}", target.name), e))?;
        let mut bytes = self.there.map_or(0, |there| there.min(count.unwrap_or(there))).max(moved);
        let mut at = 0;
        while at < bytes {
            let mut want = usize::try_from(bytes - at).map_or(BLOCK, |rest| rest.min(BLOCK));
            let wanted = fill(source.fd(), &mut left[..want], self.source + at)
                .map_err(|e| cannot("read", &source.name, e))?;
            if wanted < want && at + wanted as u64 >= moved {
                // It has become shorter, or never was as long as it claimed.
                want = wanted;
                bytes = at + wanted as u64;
            }
            let got = fill(back_fd(&back), &mut right[..want], self.target + at)
                .map_err(|e| cannot("read back", &target.name, e))?;
            if wanted < want || got < want || left[..want] != right[..want] {
                let common = wanted.min(got);
                let same = left[..common].iter().zip(&right[..common]);
                let offset = same.take_while(|(a, b)| a == b).count() as u64;
                let is_short = got < wanted && offset == got as u64;
                let place = (at + offset, if is_short { ", where it ends" } else { "" });
                return Err(self.differs(source, target, place));
            }
            at += want as u64;
        }
        if count.is_none_or(|count| bytes < count) && self.goes_on(source, bytes) {
            return Err(CopyError::Differs(format!(
                "{} ends behind byte {}, and {} does not; copy it again",
                target.name,
                number(self.target + bytes),
                source.name,
            )));
        }
        Ok(bytes)
    }

    /// Whether the source gives more than so many bytes, and its size does not say that it has grown meanwhile.
    fn goes_on(self, source: &Source, bytes: u64) -> bool {
        let has_grown = || fstat(source.fd()).is_ok_and(|now| now.st_size > source.stat.st_size);
        let next = || retry_on_intr(|| pread(source.fd(), &mut [0], self.source + bytes));
        source.end().kind() == Kind::Regular && next() == Ok(1) && !has_grown()
    }

    fn differs(
        self,
        source: &Source,
        target: &Target<'_>,
        (offset, how): (u64, &str),
    ) -> CopyError {
        CopyError::Differs(format!(
            "{} differs from {} at byte {} (of the target; {} of the source){how}; copy it again, and \
             suspect the device if {0} did not change meanwhile",
            target.name,
            source.name,
            number(self.target + offset),
            number(self.source + offset),
        ))
    }
}

/// Checks that a target which is to end behind this many bytes does.
///
/// # Errors
/// When it has more or fewer, or cannot be examined.
pub(crate) fn ends_behind(target: &Target<'_>, bytes: u64) -> Result<()> {
    if !target.ends_with_the_copy() {
        return Ok(());
    }
    let stat =
        fstat(target.fd()).map_err(|e| CopyError::failed(format!("verify {}", target.name), e))?;
    let size = stat.st_size.cast_unsigned();
    if size == bytes {
        return Ok(());
    }
    let (name, size, bytes) = (&target.name, number(size), number(bytes));
    Err(CopyError::Differs(format!(
        "{name} has {size} bytes and should have {bytes}; copy it again, and check whether \
         another process writes to it"
    )))
}

/// Where the source ends, where it says so; the position is `at`, and stays.
fn size(source: &Source, at: u64) -> Result<Option<u64>, Errno> {
    match source.end().kind() {
        Kind::Regular if source.end().has_true_size() => {
            fstat(source.fd()).map(|stat| Some(stat.st_size.cast_unsigned()))
        }
        Kind::Block => {
            let end = seek(source.fd(), SeekFrom::End(0))?;
            seek(source.fd(), SeekFrom::Start(at))?;
            Ok(Some(end))
        }
        _ => Ok(None),
    }
}

fn back_fd(fd: &OwnedFd) -> BorrowedFd<'_> {
    std::os::fd::AsFd::as_fd(fd)
}

/// A description of the target's file that can be read.
fn read_back(fd: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
    open(name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Fills the buffer as far as there is something to read.
fn fill(fd: BorrowedFd<'_>, buffer: &mut [u8], at: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        let got = retry_on_intr(|| pread(fd, &mut buffer[filled..], at + filled as u64))?;
        if got == 0 {
            break;
        }
        filled += got;
    }
    Ok(filled)
}
