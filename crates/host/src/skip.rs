//! Why something was not measured.

use std::io;

use iotomy_sys::errno::message;

/// Why something was not measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip(pub String);

impl Skip {
    /// A refusal by the kernel: `io_uring_setup: EPERM, operation not permitted`.
    pub fn refused(call: &str, error: impl Into<io::Error>) -> Self {
        Self(format!("{call}: {}", message(&error.into())))
    }
}
