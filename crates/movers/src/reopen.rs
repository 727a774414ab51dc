//! A second, private open file description of a descriptor's file, with other flags: those of the
//! first may be shared with other processes and are not ours to change.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

/// Opens the file behind `fd` again. Its position is 0.
///
/// When `/proc` is missing, or the file's mode refuses what the first opener could do.
pub(crate) fn reopen(fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    open(format!("/proc/self/fd/{}", fd.as_raw_fd()), flags | OFlags::CLOEXEC, Mode::empty())
}
