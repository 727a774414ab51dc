//! Which process this is, without a system call: a child that was forked learns that it is one.
//!
//! The one invariant: what is remembered of the process is forgotten in the child before its `fork`
//! returns (`pthread_atfork`). Only raw `clone(2)` goes past that.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

static FORKS: AtomicU64 = AtomicU64::new(0);
static CHILDREN: AtomicU64 = AtomicU64::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);
static HANDLER: Once = Once::new();

extern "C" fn in_parent() {
    CHILDREN.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::SeqCst);
    PROCESS.store(0, Ordering::SeqCst);
}

/// How many forks lie between the process in which this was first called, and this one.
pub fn depth() -> u64 {
    listen();
    FORKS.load(Ordering::Relaxed)
}

/// Whether this process, or the one that it is a copy of, has forked since this was first called.
pub fn has_forked() -> bool {
    listen();
    CHILDREN.load(Ordering::Relaxed) > 0
}

/// The id of this process.
#[inline]
pub fn process_id() -> u32 {
    match PROCESS.load(Ordering::Relaxed) {
        0 => {
            listen();
            let id = std::process::id();
            PROCESS.store(id, Ordering::Relaxed);
            id
        }
        id => id,
    }
}

/// Whether this process runs in the memory of another one, as the child of a `vfork(2)` does: what it
/// changes there, it changes for its parent.
pub fn is_borrower() -> bool {
    std::process::id() != process_id()
}

/// Whether there is a process of this id.
pub fn is_alive(process: u32) -> bool {
    // SAFETY: plain integers; signal 0 is sent to nobody.
    let code = unsafe { libc::kill(process.cast_signed(), 0) };
    code == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

fn listen() {
    HANDLER.call_once(|| {
        // SAFETY: the handler touches atomics only. It fails only without memory; a child is taken
        // for its parent then.
        unsafe { libc::pthread_atfork(None, Some(in_parent), Some(in_child)) };
    });
}
