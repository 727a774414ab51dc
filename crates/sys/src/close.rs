//! close(2) with its error: network file systems, those in user space and those with quotas write
//! at a close, and report errors of earlier writes then.

use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};

/// Closes a descriptor. It is closed afterwards, whatever the kernel returns.
///
/// # Errors
/// As close(2): `EIO`, `ENOSPC`, `EDQUOT` of earlier writes.
pub fn close(fd: OwnedFd) -> io::Result<()> {
    let fd = fd.into_raw_fd();
    // SAFETY: its owner has given it up, so nobody uses the number afterwards.
    match unsafe { libc::close(fd) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a file system write and report errors as at a close of `fd`, which stays open: every close
/// of a duplicate does that. Without a free number for a duplicate (`RLIMIT_NOFILE`) this is
/// skipped, which says nothing about the file.
///
/// # Errors
/// As [`close`].
pub fn close_duplicate(fd: BorrowedFd<'_>) -> io::Result<()> {
    match fd.try_clone_to_owned() {
        Err(e) if e.raw_os_error() == Some(libc::EMFILE) => Ok(()),
        duplicate => close(duplicate?),
    }
}
