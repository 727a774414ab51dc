//! What this process does about signals that would end it.

use std::sync::atomic::{AtomicBool, Ordering};

/// Makes a write past the limit on the size of files (`RLIMIT_FSIZE`, `ulimit -f`) fail with `EFBIG`,
/// which can be told, and not end this process by `SIGXFSZ`. A command under study does not have that
/// from it.
pub fn ignore_file_size() {
    // SAFETY: no handler is set that could run. It cannot fail: the signal exists and can be ignored.
    let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    if !IS_CHANGED.swap(true, Ordering::Relaxed) {
        WAS_IGNORED.store(before == libc::SIG_IGN, Ordering::Relaxed);
    }
}

static IS_CHANGED: AtomicBool = AtomicBool::new(false);
static WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether `SIGXFSZ` was ignored before [`ignore_file_size`], if that was called.
pub(crate) fn changed_file_size() -> Option<bool> {
    IS_CHANGED.load(Ordering::Relaxed).then(|| WAS_IGNORED.load(Ordering::Relaxed))
}

/// Gives signals that end a program their usual effect, here and in what this process starts: a shell
/// that is no user's has what it starts in the background ignore SIGINT and SIGQUIT.
pub fn be_ended_by_signals() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: sets a disposition that needs no handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
