//! What this process does about signals that would end it.

/// Makes a write past the limit on the size of files (`RLIMIT_FSIZE`, `ulimit -f`) fail with `EFBIG`,
/// which can be told, and not end this process by `SIGXFSZ`. A program it starts has the same from it.
pub fn ignore_file_size() {
    // SAFETY: no handler is set that could run. It cannot fail: the signal exists and can be ignored.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
