//! Processes and threads that only start and end: the cost of a start.
//!
//! The one invariant: each has been waited for when a function returns.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use crate::startup;

/// `fork(2)` of this process, a child that leaves at once, and the wait for it.
///
/// # Errors
/// As fork(2): `EAGAIN`, `ENOMEM`.
pub fn fork_and_wait() -> io::Result<()> {
    // SAFETY: the child makes one async-signal-safe call, which ends it.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: ends this process at once, without the parent's exit handlers.
        0 => unsafe { libc::_exit(0) },
        pid => wait(pid),
    }
}

/// The smallest program: an ELF file of one segment whose code is `exit(0)`.
pub fn smallest_program() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    // mov eax, 60 (exit); xor edi, edi; syscall
    const CODE: [u8; 9] = [0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05];
    let size = HEADERS + CODE.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let halves = |numbers: &[u16]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
    // e_type EXEC, e_machine X86_64, e_version 1
    file.extend(halves(&[2, 62, 1, 0]));
    for place in [BASE + HEADERS, 64, 0] {
        file.extend(place.to_le_bytes());
    }
    // e_flags, then the sizes and numbers of headers: one of a segment, none of sections.
    file.extend(halves(&[0, 0, 64, 56, 1, 64, 0, 0]));
    // PT_LOAD, readable and executable
    file.extend(halves(&[1, 0, 5, 0]));
    for number in [0, BASE, BASE, size, size, 0x1000] {
        file.extend(number.to_le_bytes());
    }
    file.extend(CODE);
    file
}

/// `posix_spawn(3)` of the program that is open as `program`, by its name in /proc, and the wait for
/// its end.
///
/// # Errors
/// As posix_spawn(3): `EACCES` where such files cannot be executed, `ENOENT` without /proc.
pub fn spawn_and_wait(program: BorrowedFd<'_>) -> io::Result<()> {
    let path = CString::new(format!("/proc/self/fd/{}", program.as_raw_fd()))?;
    let mut pid = 0;
    let arguments = [path.as_ptr().cast_mut(), ptr::null_mut()];
    let environment = [ptr::null_mut()];
    // SAFETY: the path and the two lists end in NUL and null, and outlive the call; no actions or
    // attributes are given.
    let error = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            path.as_ptr(),
            ptr::null(),
            ptr::null(),
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    wait(pid)
}

/// `pthread_create(3)` of a thread that ends at once, and `pthread_join(3)`: without the additional
/// work of a thread library.
///
/// # Errors
/// As pthread_create(3): `EAGAIN`.
pub fn thread_and_join() -> io::Result<()> {
    let mut thread: libc::pthread_t = 0;
    // SAFETY: `thread` is room for one id; the function takes no argument that it reads.
    let error =
        unsafe { libc::pthread_create(&raw mut thread, ptr::null(), end_at_once, ptr::null_mut()) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: the thread was just made, is joined once and gives nothing back.
    match unsafe { libc::pthread_join(thread, ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

extern "C" fn end_at_once(_: *mut libc::c_void) -> *mut libc::c_void {
    ptr::null_mut()
}

/// Lets this process learn how its children end.
pub fn reset_sigchld() {
    startup::reset_sigchld();
}

fn wait(pid: libc::pid_t) -> io::Result<()> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is room for the one integer the call writes.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } == pid {
            let code = libc::WEXITSTATUS(status);
            let ended_well = libc::WIFEXITED(status) && code == 0;
            return if ended_well {
                Ok(())
            } else {
                Err(io::Error::other("the child did not end well"))
            };
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::{AsFd, FromRawFd, OwnedFd};

    use super::*;

    #[test]
    fn children_end_well() {
        fork_and_wait().unwrap();
        thread_and_join().unwrap();
        // SAFETY: the name ends in NUL.
        let fd = unsafe { libc::memfd_create(c"smallest".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: the kernel just made the descriptor and nobody else owns it.
        let memory = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut file = std::fs::File::from(memory);
        file.write_all(&smallest_program()).unwrap();
        match spawn_and_wait(file.as_fd()) {
            Ok(()) => {}
            Err(e) => assert_eq!(e.raw_os_error(), Some(libc::EACCES), "{e}"),
        }
    }
}
