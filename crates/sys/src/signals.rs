//! What this process does about signals that would end it.

/// Makes a write past the limit on the size of files (`RLIMIT_FSIZE`, `ulimit -f`) fail with `EFBIG`,
/// which can be told, and not end this process by `SIGXFSZ`. A program it starts has the same from it.
pub fn ignore_file_size() {
    // SAFETY: no handler is set that could run. It cannot fail: the signal exists and can be ignored.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Gives signals that end a program their usual effect, here and in what this process starts: a shell
/// that is no user's has what it starts in the background ignore SIGINT and SIGQUIT.
pub fn be_ended_by_signals() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: sets a disposition that needs no handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
