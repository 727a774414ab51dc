//! `ioctl(FICLONERANGE)`, which no library wraps.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Lets `target` share the extents of `source`: `length` bytes from one offset to the other, all in
/// blocks of the file system; 0 is up to the source's end.
///
/// # Errors
/// As ioctl_ficlonerange(2): `EOPNOTSUPP`, `EXDEV`, `EINVAL` where it cannot be done.
pub fn clone_range(
    source: BorrowedFd<'_>,
    from: u64,
    length: u64,
    target: BorrowedFd<'_>,
    to: u64,
) -> io::Result<()> {
    let range = libc::file_clone_range {
        src_fd: source.as_raw_fd().into(),
        src_offset: from,
        src_length: length,
        dest_offset: to,
    };
    // SAFETY: the kernel reads one `file_clone_range`.
    let answer = unsafe { libc::ioctl(target.as_raw_fd(), libc::FICLONERANGE, &raw const range) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
