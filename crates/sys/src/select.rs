//! `select(2)` by its own number: libraries make `pselect6(2)` of it.

use std::io;
use std::time::Duration;

/// The capacity of the C library's descriptor sets; bits of higher numbers would be written outside
/// it.
pub const FD_SETSIZE: usize = libc::FD_SETSIZE;

/// A set of descriptors, a bit each.
pub type FdSet = [u64; FD_SETSIZE / 64];

/// `int select(int nfds, fd_set *readfds, fd_set *writefds, NULL, struct timeval *timeout)`, which
/// takes the descriptors that are not ready out of the sets; how many are left in both. No time-out
/// is for ever; a time-out is rounded up to µs.
///
/// # Panics
/// When `nfds` is more than the sets have room for.
///
/// # Errors
/// As select(2).
#[inline]
pub fn select(
    nfds: usize,
    read: &mut FdSet,
    write: &mut FdSet,
    timeout: Option<Duration>,
) -> io::Result<usize> {
    assert!(nfds <= FD_SETSIZE, "no more descriptors than the sets hold");
    let mut room = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let timeout = match timeout {
        None => std::ptr::null_mut(),
        Some(timeout) => {
            // Times above 68 years are equal. A fraction of a second that is rounded up to a whole
            // one is carried over by the kernel.
            room.tv_sec = timeout.as_secs().min(i32::MAX.unsigned_abs().into()).cast_signed();
            room.tv_usec = timeout.subsec_nanos().div_ceil(1000).into();
            &raw mut room
        }
    };
    // SAFETY: the kernel reads and writes `nfds` bits of each set, rounded up to words, which they
    // have; the except set may be null; the time-out is null or a structure that outlives the call.
    let found = unsafe {
        libc::syscall(
            libc::SYS_select,
            nfds,
            read.as_mut_ptr(),
            write.as_mut_ptr(),
            std::ptr::null_mut::<u64>(),
            timeout,
        )
    };
    usize::try_from(found).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn what_is_not_ready_is_taken_out_of_the_sets() {
        let (out, into) = io::pipe().unwrap();
        let (out, into) =
            (out.as_raw_fd().unsigned_abs() as usize, into.as_raw_fd().unsigned_abs() as usize);
        let (mut read, mut write) = ([0; 16], [0; 16]);
        read[out / 64] |= 1 << (out % 64);
        write[into / 64] |= 1 << (into % 64);
        let found = select(out.max(into) + 1, &mut read, &mut write, None).unwrap();
        assert_eq!((found, read[out / 64]), (1, 0));
        assert_eq!(write[into / 64], 1 << (into % 64));
    }
}
