//! `poll(2)` by its own number: libraries make `ppoll(2)` of it.

use std::io;

/// `struct pollfd`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollFd {
    /// The descriptor; a negative one is passed over.
    pub fd: i32,
    /// The requested events: `POLLIN`…
    pub events: i16,
    /// The returned events.
    pub revents: i16,
}

/// `int poll(struct pollfd *fds, nfds_t nfds, int timeout)`; returns the number of descriptors with
/// events.
///
/// # Errors
/// As poll(2).
#[inline]
pub fn poll(fds: &mut [PollFd], timeout_ms: i32) -> io::Result<usize> {
    // SAFETY: the kernel reads and writes as many structures as the slice holds.
    let found = unsafe { libc::syscall(libc::SYS_poll, fds.as_mut_ptr(), fds.len(), timeout_ms) };
    usize::try_from(found).map_err(|_| io::Error::last_os_error())
}

/// Whether there is a descriptor of this number, by `fcntl(F_GETFD)`.
pub fn is_open(fd: i32) -> bool {
    // SAFETY: takes numbers, and only asks.
    unsafe { libc::fcntl(fd, libc::F_GETFD) != -1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn what_is_ready_is_told_of_each_descriptor() {
        assert_eq!(size_of::<PollFd>(), size_of::<libc::pollfd>());
        let (out, mut into) = io::pipe().unwrap();
        let mut fds = [
            PollFd { fd: out.as_raw_fd(), events: libc::POLLIN, revents: 0 },
            PollFd { fd: i32::MAX, events: libc::POLLIN, revents: 0 },
        ];
        assert_eq!(poll(&mut fds[..1], 0).unwrap(), 0);
        into.write_all(b"a").unwrap();
        assert_eq!(poll(&mut fds, -1).unwrap(), 2);
        assert_eq!((fds[0].revents, fds[1].revents), (libc::POLLIN, libc::POLLNVAL));
    }
}
