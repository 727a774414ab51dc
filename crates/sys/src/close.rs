//! close(2) with what it says: file systems on a network, in user space or with quotas write at a close, and report
//! then what could not be written.

use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};

/// Closes a descriptor. It is closed afterwards, whatever the kernel says.
///
/// # Errors
/// As close(2): `EIO`, `ENOSPC`, `EDQUOT` of what was written before.
pub fn close(fd: OwnedFd) -> io::Result<()> {
    let fd = fd.into_raw_fd();
    // SAFETY: its owner has given it up, so nobody uses the number afterwards.
    match unsafe { libc::close(fd) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has a file system write and report what it would at a close of `fd`, which stays open: every close of a duplicate
/// does that. Without a number left for a duplicate (`RLIMIT_NOFILE`) it is not asked, which says nothing of the file.
///
/// # Errors
/// As [`close`].
pub fn close_duplicate(fd: BorrowedFd<'_>) -> io::Result<()> {
    match fd.try_clone_to_owned() {
        Err(e) if e.raw_os_error() == Some(libc::EMFILE) => Ok(()),
        duplicate => close(duplicate?),
    }
}
