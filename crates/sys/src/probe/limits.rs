//! Limits of a process, tried where a number does not decide.

use super::Refusal;
use super::child::{check, in_child};

/// Enough to show that a high limit is real; a table of descriptors costs the kernel 8 bytes each.
const HIGHEST_TRIED: u64 = 1 << 20;

/// In a child: raises the soft limit of descriptors to `hard`, and puts a descriptor at the top.
///
/// # Errors
/// The kernel's refusal.
pub fn raise_descriptors(hard: u64) -> Result<(), Refusal> {
    let limit = libc::rlimit { rlim_cur: hard, rlim_max: hard };
    let top = i32::try_from(hard.clamp(1, HIGHEST_TRIED) - 1).unwrap_or(0);
    let work = || {
        // SAFETY: `limit` is readable; this process is a child about to end.
        check(0, unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
        // SAFETY: takes plain integers.
        let event = unsafe { libc::eventfd(0, 0) };
        check(1, event)?;
        // SAFETY: takes plain integers; the descriptor was just made.
        check(2, unsafe { libc::fcntl(event, libc::F_DUPFD, top) })
    };
    // SAFETY: the work makes system calls only.
    unsafe { in_child(&["setrlimit RLIMIT_NOFILE", "eventfd", "fcntl F_DUPFD"], work) }
}

/// In a child: locks `bytes` of memory, which is counted but, on fault only, not filled.
///
/// # Errors
/// The kernel's refusal.
pub fn lock_memory(bytes: usize) -> Result<(), Refusal> {
    const MLOCK_ONFAULT: libc::c_uint = 1;
    let work = || {
        // SAFETY: asks for fresh memory at an address the kernel chooses.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        check(0, if at == libc::MAP_FAILED { -1 } else { 0 })?;
        // SAFETY: the range is the mapping just made.
        check(1, unsafe { libc::mlock2(at, bytes, MLOCK_ONFAULT) })
    };
    // SAFETY: the work makes system calls only.
    unsafe { in_child(&["mmap", "mlock2"], work) }
}
