//! `ptrace(2)` on a child made for it.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::Refusal;
use super::child::{errno, exit_now, pipe, wait_for_end};

/// Seizes a child, stops it, reads its current call, and ends it.
///
/// # Errors
/// The kernel's refusal.
pub fn seize_child() -> Result<(), Refusal> {
    let (read, write) = pipe()?;
    // SAFETY: the child makes system calls only and leaves by _exit.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(Refusal::last("fork"));
    }
    if pid == 0 {
        wait_for_parent(&read, &write);
    }
    let result = examine(pid);
    // SAFETY: takes plain integers; the child is not yet reaped, so the number is still its own.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    wait_for_end(pid);
    result
}

/// Copies a descriptor of this process, by pidfd_getfd(2).
///
/// # Errors
/// The kernel's refusal.
pub fn copy_descriptor() -> Result<(), Refusal> {
    let (read, _write) = pipe()?;
    let owned = |call, fd: libc::c_long| match i32::try_from(fd) {
        // SAFETY: the kernel has just made the descriptor for this process, and nothing else has it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(Refusal::last(call)),
    };
    // SAFETY: takes plain integers.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0) };
    let process = owned("pidfd_open", process)?;
    let (process, fd) = (process.as_raw_fd(), read.as_raw_fd());
    // SAFETY: takes plain integers.
    let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process, fd, 0) };
    owned("pidfd_getfd", copy).map(drop)
}

/// The child: waits until the parent closes its end, which its death does too.
fn wait_for_parent(read: &OwnedFd, write: &OwnedFd) -> ! {
    // SAFETY: closes this process's copy; the owner object is never dropped on this side.
    unsafe { libc::close(write.as_raw_fd()) };
    let mut byte = 0u8;
    // SAFETY: `byte` is room for the one byte asked for.
    while unsafe { libc::read(read.as_raw_fd(), (&raw mut byte).cast(), 1) } < 0
        && errno() == libc::EINTR
    {}
    exit_now()
}

fn examine(pid: libc::pid_t) -> Result<(), Refusal> {
    // SAFETY: takes plain integers; the child dies with this process by the option.
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0usize, EXIT_KILL) };
    if seized < 0 {
        return Err(Refusal::last("ptrace PTRACE_SEIZE"));
    }
    // SAFETY: takes plain integers.
    if unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, pid, 0usize, 0usize) } < 0 {
        return Err(Refusal::last("ptrace PTRACE_INTERRUPT"));
    }
    wait_for_stop(pid)?;
    // More than any `struct ptrace_syscall_info` so far (88 bytes); the kernel writes as much as
    // fits.
    let mut info = [0u64; 16];
    let (size, place) = (size_of_val(&info), info.as_mut_ptr());
    // SAFETY: `place` is writable for `size` bytes.
    let got = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, size, place) };
    if got < 0 { Err(Refusal::last("ptrace PTRACE_GET_SYSCALL_INFO")) } else { Ok(()) }
}

/// Waits until the child has stopped (or ended), and leaves it to be waited for again, so that its
/// number stays its own.
fn wait_for_stop(pid: libc::pid_t) -> Result<(), Refusal> {
    // SAFETY: a zeroed `siginfo_t` is a valid value of the type.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let kinds = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT | libc::__WALL;
    loop {
        // SAFETY: `info` is writable; a child's number is not negative.
        let got = unsafe { libc::waitid(libc::P_PID, pid.cast_unsigned(), &raw mut info, kinds) };
        if got == 0 {
            return Ok(());
        }
        if errno() != libc::EINTR {
            return Err(Refusal::last("waitid"));
        }
    }
}

/// `PTRACE_O_EXITKILL`.
const EXIT_KILL: usize = 1 << 20;
