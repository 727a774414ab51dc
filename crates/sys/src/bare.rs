//! The cheapest calls there are, each made in one exact way: the least cost of a crossing into the
//! kernel, and of avoiding one.

use std::arch::asm;

/// `getppid(2)` by the `syscall` instruction, with nothing around it.
#[inline]
pub fn getppid() -> i64 {
    let mut register: i64 = libc::SYS_getppid;
    // SAFETY: the call takes no arguments, touches no memory of ours and cannot fail; the instruction
    // overwrites rcx and r11, which are named.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") register,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    register
}

/// `getppid(2)` through the C library's function.
#[inline]
pub fn getppid_by_libc() -> i64 {
    // SAFETY: takes no arguments and cannot fail.
    i64::from(unsafe { libc::getppid() })
}

/// `clock_gettime(CLOCK_MONOTONIC)` through the C library, which uses the vDSO; in ns.
#[inline]
pub fn monotonic_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is room for the one structure that is written; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Faults this thread has taken that needed no reading, as getrusage(2) counts them.
pub fn minor_faults() -> i64 {
    // SAFETY: a zeroed `rusage` is a valid value of the type (plain integers).
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is room for the one structure that is written.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_minflt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_call_give_the_same_answer() {
        assert_eq!(getppid(), getppid_by_libc());
        assert_eq!(getppid(), i64::from(std::os::unix::process::parent_id()));
    }

    #[test]
    fn the_clock_does_not_go_back() {
        let first = monotonic_ns();
        assert!(first > 0 && monotonic_ns() >= first);
    }
}
