//! Restrictions that a process may impose on itself: a filter of calls, a scheduling class.

use super::Refusal;
use super::child::{check, in_child};

/// In a child: a filter that allows every call.
///
/// # Errors
/// The kernel's refusal.
pub fn seccomp_filter() -> Result<(), Refusal> {
    const BPF_RET_K: u16 = 0x06;
    let mut allow = libc::sock_filter { code: BPF_RET_K, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let filter = libc::sock_fprog { len: 1, filter: &raw mut allow };
    let work = || {
        // SAFETY: takes plain integers; this process is a child about to end.
        check(0, unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
        let mode = libc::SECCOMP_MODE_FILTER;
        // SAFETY: `filter` and the instruction it points to were made before the fork.
        check(1, unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter) })
    };
    // SAFETY: the work makes system calls only.
    unsafe { in_child(&["prctl PR_SET_NO_NEW_PRIVS", "prctl PR_SET_SECCOMP"], work) }
}

/// In a child: the lowest real-time priority.
///
/// # Errors
/// The kernel's refusal.
pub fn real_time() -> Result<(), Refusal> {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: `lowest` is readable; this process is a child about to end.
    let work =
        || check(0, unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) });
    // SAFETY: the work makes one system call.
    unsafe { in_child(&["sched_setscheduler SCHED_FIFO"], work) }
}
