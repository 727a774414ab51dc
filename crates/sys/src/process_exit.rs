//! How a process ended that need not be a child: its status as wait(2) has it, by its pidfd.

use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct pidfd_info`, as far as all kernels that have it know it.
#[repr(C)]
#[derive(Debug, Default)]
struct PidfdInfo {
    mask: u64,
    control_group: u64,
    ids: [u32; 11],
    exit_code: i32,
}

/// `PIDFD_INFO_EXIT`.
const EXIT: u64 = 1 << 3;
/// `PIDFD_GET_INFO`: read and written, 64 bytes, type 0xFF, number 11.
const GET_INFO: libc::c_ulong = 3 << 30 | 64 << 16 | 0xff << 8 | 11;

/// The status of a child that has ended, which stays to be waited for; of another process one that was
/// waited for. `None` where the kernel does not tell, or it has not ended.
#[must_use]
pub fn status(pidfd: BorrowedFd<'_>) -> Option<i32> {
    of_child(pidfd).or_else(|| of_reaped(pidfd))
}

fn of_child(pidfd: BorrowedFd<'_>) -> Option<i32> {
    // SAFETY: a zeroed `siginfo_t` is a valid value of the type (plain integers).
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    let id = pidfd.as_raw_fd().cast_unsigned();
    // SAFETY: the kernel writes one `siginfo_t`.
    if unsafe { libc::waitid(libc::P_PIDFD, id, &raw mut info, options) } < 0 {
        return None;
    }
    // SAFETY: the call that filled it in is one that tells of a child.
    let status = unsafe { info.si_status() };
    match info.si_code {
        libc::CLD_EXITED => Some((status & 0xff) << 8),
        libc::CLD_KILLED => Some(status),
        libc::CLD_DUMPED => Some(status | 0x80),
        _ => None,
    }
}

fn of_reaped(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let mut info = PidfdInfo { mask: EXIT, ..PidfdInfo::default() };
    // SAFETY: the kernel reads and writes 64 bytes, the size of the structure.
    let done = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO, &raw mut info) };
    (done == 0 && info.mask & EXIT != 0).then_some(info.exit_code)
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, FromRawFd, OwnedFd};
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_that_has_ended_has_its_status() {
        for (script, expected) in [("exit 7", 7 << 8), ("kill -9 $$", 9), ("read x", 0)] {
            let mut command = Command::new("sh");
            let command = command.args(["-c", script]).stdin(std::process::Stdio::piped());
            let mut child = command.spawn().unwrap();
            // SAFETY: plain integers.
            let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
            assert!(fd >= 0, "{}", std::io::Error::last_os_error());
            // SAFETY: the kernel just made the descriptor and nobody else owns it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
            if expected == 0 {
                assert_eq!(status(pidfd.as_fd()), None, "it has not ended");
                child.stdin.take();
                let _ = child.wait().unwrap();
                continue;
            }
            iotomy_test_requirements::wait::until("it has ended", || {
                status(pidfd.as_fd()).is_some()
            });
            assert_eq!(status(pidfd.as_fd()), Some(expected));
            let _ = child.wait().unwrap();
        }
    }
}
