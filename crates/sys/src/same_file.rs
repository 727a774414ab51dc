//! Whether two descriptors are one open file, by `kcmp(2)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// Whether this process has the descriptor.
#[inline]
pub fn is_open(fd: RawFd) -> bool {
    // SAFETY: plain integers.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

const KCMP_FILE: libc::c_long = 0;
const KCMP_EPOLL_TFD: libc::c_long = 7;

/// `struct kcmp_epoll_slot`.
#[repr(C)]
struct EpollSlot {
    epoll: u32,
    watched: u32,
    offset: u32,
}

/// Whether two descriptors of this process are one open file.
///
/// # Errors
/// As kcmp(2): `EBADF`, and `EPERM` or `ENOSYS` where it cannot be asked.
pub fn is_same(a: RawFd, b: RawFd) -> io::Result<bool> {
    let pid = libc::c_long::from(crate::forks::process_id().cast_signed());
    // SAFETY: plain integers.
    let order = unsafe {
        libc::syscall(
            libc::SYS_kcmp,
            pid,
            pid,
            KCMP_FILE,
            libc::c_long::from(a),
            libc::c_long::from(b),
        )
    };
    if order < 0 { Err(io::Error::last_os_error()) } else { Ok(order == 0) }
}

/// Whether a descriptor is still the open file that was added to an `epoll(7)` set by its number.
/// Several files may have been added by that number; any of them counts.
///
/// # Errors
/// As kcmp(2): `EBADF` if there is no such descriptor, and `EPERM` or `ENOSYS` where it cannot be asked.
pub fn is_watched(epoll: BorrowedFd<'_>, fd: RawFd) -> io::Result<bool> {
    let pid = libc::c_long::from(crate::forks::process_id().cast_signed());
    let mut slot = EpollSlot {
        epoll: epoll.as_raw_fd().cast_unsigned(),
        watched: fd.cast_unsigned(),
        offset: 0,
    };
    loop {
        let at = &raw const slot;
        // SAFETY: the kernel reads one slot.
        let order = unsafe {
            libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_EPOLL_TFD, libc::c_long::from(fd), at)
        };
        match order {
            0 => return Ok(true),
            1.. => slot.offset += 1,
            _ => {
                let error = io::Error::last_os_error();
                // No further file of that number is in the set.
                let is_last = error.raw_os_error() == Some(libc::ENOENT);
                return if is_last { Ok(false) } else { Err(error) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoll::{Change, EpollEvent, epoll_create1, epoll_ctl};
    use std::os::fd::AsFd;

    #[test]
    fn a_number_that_is_another_file_by_now_is_told_from_the_one_that_was_added() {
        let epoll = epoll_create1().unwrap();
        let (out, _into) = io::pipe().unwrap();
        let number = out.as_raw_fd();
        epoll_ctl(epoll.as_fd(), Change::Add, number, EpollEvent::default()).unwrap();
        assert!(is_watched(epoll.as_fd(), number).unwrap());
        let kept = out.try_clone().unwrap();
        assert!(is_same(number, kept.as_raw_fd()).unwrap());
        drop(out);
        assert!(is_watched(epoll.as_fd(), number).is_err());
        let (other, _into) = io::pipe().unwrap();
        // The lowest free number: the one that was closed, unless another thread took it.
        if other.as_raw_fd() == number {
            assert!(!is_watched(epoll.as_fd(), number).unwrap());
        }
        assert!(!is_same(kept.as_raw_fd(), other.as_raw_fd()).unwrap());
    }
}
