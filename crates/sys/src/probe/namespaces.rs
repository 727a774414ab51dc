//! Namespaces of a child's own, whose content disappears with it.

use super::Refusal;
use super::child::{check, in_child};

/// `nobody`, by the number it has in every distribution.
const NOBODY: libc::uid_t = 65_534;

/// In a child: a network of its own.
///
/// # Errors
/// The kernel's refusal.
pub fn network() -> Result<(), Refusal> {
    // SAFETY: takes a plain integer; this process is a child about to end.
    let work = || check(0, unsafe { libc::unshare(libc::CLONE_NEWNET) });
    // SAFETY: the work makes one system call.
    unsafe { in_child(&["unshare CLONE_NEWNET"], work) }
}

/// In a child without privilege: a user namespace, and in it a network, which only a namespace
/// that grants capabilities allows.
///
/// # Errors
/// The kernel's refusal.
pub fn user_and_network() -> Result<(), Refusal> {
    // SAFETY: takes nothing and cannot fail.
    let privileged = unsafe { libc::geteuid() } == 0;
    let work = || {
        if privileged {
            // SAFETY: takes plain integers; this process is a child about to end.
            check(0, unsafe { libc::setgid(NOBODY) })?;
            // SAFETY: as above.
            check(1, unsafe { libc::setuid(NOBODY) })?;
        }
        // SAFETY: takes a plain integer; this process is a child about to end.
        check(2, unsafe { libc::unshare(libc::CLONE_NEWUSER) })?;
        // SAFETY: as above.
        check(3, unsafe { libc::unshare(libc::CLONE_NEWNET) })
    };
    let calls = ["setgid", "setuid", "unshare CLONE_NEWUSER", "unshare CLONE_NEWNET"];
    // SAFETY: the work makes system calls only. (The C library's setuid signals its other threads;
    // a child of fork has none.)
    unsafe { in_child(&calls, work) }
}
