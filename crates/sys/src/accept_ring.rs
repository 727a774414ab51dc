//! An `io_uring(7)` for multishot accepts: connections come until a request ends.
//!
//! The one invariant: at most one request per listening socket is in flight, so that there is
//! always room for another.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use io_uring::{IoUring, cqueue, opcode, types};

/// A ring.
pub struct AcceptRing {
    ring: IoUring,
}

/// The result of a request.
#[derive(Debug)]
pub struct Accepted {
    /// A connection, or why there is none.
    pub connection: io::Result<OwnedFd>,
    /// Whether its request has ended with this.
    pub has_ended: bool,
}

impl AcceptRing {
    /// One with room for this many listening sockets.
    ///
    /// # Errors
    /// As `io_uring_setup(2)`.
    pub fn new(sockets: usize) -> io::Result<Self> {
        let room = u32::try_from(sockets).unwrap_or(u32::MAX);
        Ok(Self { ring: IoUring::new(room.next_power_of_two())? })
    }

    /// Queues the request to accept from a socket until it ends.
    pub fn arm(&mut self, listener: BorrowedFd<'_>) {
        let request = opcode::AcceptMulti::new(types::Fd(listener.as_raw_fd())).build();
        // SAFETY: the request refers to no memory.
        let queued = unsafe { self.ring.submission().push(&request) };
        // There is room for one request a socket, and no more are ever queued.
        let _ = queued;
    }

    /// Hands the queued requests over and waits for one completion at least.
    ///
    /// # Errors
    /// As `io_uring_enter(2)`.
    pub fn wait(&mut self) -> io::Result<()> {
        self.ring.submit_and_wait(1).map(|_| ())
    }

    /// The next completion, if there is one.
    pub fn next_accepted(&mut self) -> Option<Accepted> {
        let entry = self.ring.completion().next()?;
        let connection = match entry.result() {
            // SAFETY: the kernel has just made the descriptor and nobody else owns it.
            fd @ 0.. => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
            error => Err(io::Error::from_raw_os_error(-error)),
        };
        Some(Accepted { connection, has_ended: !cqueue::more(entry.flags()) })
    }
}
