//! Errors of system calls.

use rustix::io::Errno;

/// The error of a system call.
#[expect(clippy::needless_pass_by_value, reason = "it stands where a result's error is mapped")]
pub(crate) fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::NOMEM)
}
