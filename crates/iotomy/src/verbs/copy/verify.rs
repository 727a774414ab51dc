//! Reading a target back.
//!
//! What was written is synced first and then dropped from the page cache, so that a file system with
//! a device answers from the device. A kernel is free to keep pages all the same.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use anyhow::{Result, anyhow};
use iotomy_movers::Kind;
use iotomy_sys::buffer::Aligned;
use rustix::fs::{Advice, Mode, OFlags, fadvise, fdatasync, open, tell};
use rustix::io::{Errno, pread, retry_on_intr};

use super::fault::{Stop, number, said};
use super::source::Source;
use super::target::{Target, articled};

/// Bytes compared at a time.
const BLOCK: usize = 1 << 20;

/// Where a part began at both ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begin {
    source: u64,
    target: u64,
}

/// Says no when the ends could not be read again.
///
/// # Errors
/// Which of them cannot.
pub(super) fn can_be_read_again(source: &Source, target: &Target<'_>) -> Result<()> {
    for (end, name) in [(source.end(), &source.name), (target.end(), &target.name)] {
        if !matches!(end.kind(), Kind::Regular | Kind::Block) {
            let what = articled(end.kind().name());
            return Err(anyhow!(
                "cannot verify {name}: it is {what}, which cannot be read again; leave --verify out"
            ));
        }
    }
    Ok(())
}

impl Begin {
    /// Where the next part will begin.
    ///
    /// # Errors
    /// The positions cannot be told.
    pub(super) fn now(source: &Source, target: &Target<'_>) -> Result<Self> {
        let cannot = |e: Errno| anyhow!("cannot verify {}: {}", target.name, said(&e.into()));
        let at = if target.end().is_append() {
            rustix::fs::fstat(target.fd()).map_err(cannot)?.st_size.cast_unsigned()
        } else {
            tell(target.fd()).map_err(cannot)?
        };
        Ok(Self { source: tell(source.fd()).map_err(cannot)?, target: at })
    }

    /// Compares `bytes` bytes from here on.
    ///
    /// # Errors
    /// They differ, and where first; or one of them cannot be read.
    pub(super) fn compare(
        self,
        source: &Source,
        target: &Target<'_>,
        bytes: u64,
    ) -> Result<(), Stop> {
        let cannot = |what: &str, name: &str, e: Errno| {
            Stop::Failed(anyhow!("cannot {what} {name}: {}", said(&e.into())))
        };
        match fdatasync(target.fd()) {
            // Files that have nothing to sync say so by this.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(e) => return Err(cannot("sync", &target.name, e)),
        }
        let back = read_back(target.fd()).map_err(|e| cannot("read back", &target.name, e))?;
        // Where pages cannot be dropped, they are compared as they are.
        let _ = fadvise(&back, self.target, None, Advice::DontNeed);
        let (mut left, mut right) = (Aligned::new(BLOCK), Aligned::new(BLOCK));
        let mut at = 0;
        while at < bytes {
            let want = usize::try_from(bytes - at).map_or(BLOCK, |rest| rest.min(BLOCK));
            let wanted = fill(source.fd(), &mut left[..want], self.source + at)
                .map_err(|e| cannot("read", &source.name, e))?;
            let got = fill(back_fd(&back), &mut right[..want], self.target + at)
                .map_err(|e| cannot("read back", &target.name, e))?;
            if wanted < want || got < want || left[..want] != right[..want] {
                let common = wanted.min(got);
                let same = left[..common].iter().zip(&right[..common]);
                let offset = same.take_while(|(a, b)| a == b).count() as u64;
                return Err(Stop::Differs(self.differs(source, target, at + offset)));
            }
            at += want as u64;
        }
        Ok(())
    }

    fn differs(self, source: &Source, target: &Target<'_>, offset: u64) -> anyhow::Error {
        anyhow!(
            "{} differs from {} at byte {} (of the target; {} of the source); copy it again, and \
             suspect the device if {0} did not change meanwhile",
            target.name,
            source.name,
            number(self.target + offset),
            number(self.source + offset),
        )
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
