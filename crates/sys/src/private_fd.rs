//! A descriptor that nobody outside of its owner knows of, closed by the system call itself.
//!
//! A library that replaces `close(2)` in its program closes its own descriptors so: the replaced
//! function might ask for a lock that the library holds.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// An owned descriptor that is closed without the C library.
#[derive(Debug)]
pub struct PrivateFd(ManuallyDrop<OwnedFd>);

impl From<OwnedFd> for PrivateFd {
    fn from(fd: OwnedFd) -> Self {
        Self(ManuallyDrop::new(fd))
    }
}

impl AsFd for PrivateFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for PrivateFd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is owned, and not used afterwards.
        unsafe { libc::syscall(libc::SYS_close, self.0.as_raw_fd()) };
    }
}
