//! Errors of a waiter itself.

use std::fmt;
use std::io;
use std::os::fd::RawFd;

use rustix::io::Errno;

/// An operation of a waiter that failed, and changed nothing.
#[derive(Debug, thiserror::Error)]
pub struct WaitError {
    /// The waiter.
    pub waiter: &'static str,
    /// The operation: `watch`, `modify`, `remove`, `wait`, `open`.
    pub attempt: &'static str,
    /// The descriptor it was attempted on, where it was one.
    pub fd: Option<RawFd>,
    /// The call the kernel refused; `None` where the waiter did before any call.
    pub call: Option<&'static str>,
    /// Why.
    pub source: io::Error,
    /// Further facts, and the advice.
    pub hint: Option<&'static str>,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot {}", self.waiter, self.attempt)?;
        if let Some(fd) = self.fd {
            write!(f, " descriptor {fd}")?;
        }
        if let Some(call) = self.call {
            write!(f, ": {call}")?;
        }
        write!(f, ": {}", self.source)?;
        self.hint.map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl WaitError {
    /// The number of the error.
    pub fn errno(&self) -> i32 {
        self.source.raw_os_error().unwrap_or(0)
    }

    /// The kernel refused a call.
    pub(crate) fn kernel(
        waiter: &'static str,
        attempt: &'static str,
        call: &'static str,
        source: io::Error,
    ) -> Self {
        let hint = hint(call, &source);
        Self { waiter, attempt, fd: None, call: Some(call), source, hint }
    }

    /// The waiter itself refused, as the kernel would with `errno`.
    pub(crate) fn refused(waiter: &'static str, attempt: &'static str, errno: Errno) -> Self {
        Self { waiter, attempt, fd: None, call: None, source: errno.into(), hint: None }
    }

    /// Adds the descriptor of the operation.
    pub(crate) fn on(self, fd: RawFd) -> Self {
        Self { fd: Some(fd), ..self }
    }

    /// Adds further facts.
    pub(crate) fn hinting(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }
}

/// The meaning of the kernel's error here, where its own text does not say it.
fn hint(call: &str, error: &io::Error) -> Option<&'static str> {
    match (call, Errno::from_io_error(error)?) {
        ("epoll_ctl", Errno::PERM) => {
            Some("epoll does not support descriptors that are always ready, such as regular files")
        }
        ("epoll_ctl", Errno::NOSPC) => {
            Some("the limit is fs.epoll.max_user_watches; raise it with sysctl, as root")
        }
        ("port_associate", Errno::AGAIN) => Some(
            "a port has room for 65,536 descriptors, and fs.epoll.max_user_watches limits them, too",
        ),
        ("poll", Errno::INVAL) => {
            Some("the set exceeds the process's limit of descriptors; raise it with ulimit -n")
        }
        ("io_uring_setup", Errno::PERM) => {
            Some("check kernel.io_uring_disabled, and the container's seccomp profile")
        }
        ("io_uring_setup", Errno::NOMEM) => Some("raise the limit on locked memory with ulimit -l"),
        (_, Errno::MFILE) => Some("too many descriptors are open; raise the limit with ulimit -n"),
        _ => None,
    }
}
