//! Duplicates of a descriptor that the library has not met: the functions that make them, such as `dup(2)` and
//! `fcntl(2)`, are the C library's own.

use std::mem::MaybeUninit;
use std::ops::RangeInclusive;
use std::os::fd::RawFd;

use iotomy_sys::same_file;
use rustix::fs::{Mode, OFlags, RawDir, open};

/// Another descriptor of the open file `own`, which is the library's, besides those of the range. None where
/// `/proc` or `kcmp(2)` cannot tell.
pub(crate) fn find(own: RawFd, besides: &RangeInclusive<u32>) -> Option<RawFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = open("/proc/self/fd", flags, Mode::empty()).ok()?;
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&folder, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        let number = entry.file_name().to_str().ok().and_then(|name| name.parse().ok());
        let is_other = |fd: &RawFd| *fd != own && !besides.contains(&fd.cast_unsigned());
        let is_duplicate = |fd: &RawFd| same_file::is_same(*fd, own).unwrap_or(false);
        if let Some(fd) = number.filter(is_other).filter(is_duplicate) {
            return Some(fd);
        }
    }
    None
}
