//! The parts of a trial: a check with the function that tries it, the facts a trial may depend
//! on, and the wording of its outcome.

use std::path::{Path, PathBuf};

use iotomy_observe::Probe;
use iotomy_sys::errno;
use iotomy_sys::probe::Refusal;

/// Something a part of iotomy needs.
#[derive(Debug)]
pub struct Check {
    /// Its name, unique among all.
    pub name: &'static str,
    /// The parts of iotomy that need it.
    pub purpose: &'static str,
    /// Tries it, without effects that last.
    pub try_it: fn(&Context) -> Outcome,
}

/// Checks of one kind.
#[derive(Debug)]
pub struct Group {
    /// Their common subject.
    pub name: &'static str,
    /// In the order to show them.
    pub checks: &'static [Check],
}

/// The facts a trial may depend on.
#[derive(Debug, Clone)]
pub struct Context {
    /// The directory whose file system is tried.
    pub folder: PathBuf,
}

impl Default for Context {
    /// The current directory.
    fn default() -> Self {
        // Its name is for messages; where it has none (it was removed) the short one does.
        Self { folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")) }
    }
}

/// The outcome of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It works; the text gives an amount or a method, and may be empty.
    Ready(String),
    /// It does not.
    Missing {
        /// The attempt and the kernel's error.
        reason: String,
        /// The remedy.
        remedy: String,
    },
}

impl Outcome {
    pub(crate) fn ready(detail: impl Into<String>) -> Self {
        Self::Ready(detail.into())
    }

    pub(crate) fn missing(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Missing { reason: reason.into(), remedy: remedy.into() }
    }

    pub(crate) fn refused(refusal: &Refusal, remedy: impl Into<String>) -> Self {
        Self::missing(refusal_text(refusal), remedy)
    }

    /// Whether it works.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready(_))
    }
}

impl From<Probe> for Outcome {
    fn from(probe: Probe) -> Self {
        match probe {
            Probe::Ready => Self::Ready(String::new()),
            Probe::Unsupported { reason, remedy } => Self::Missing { reason, remedy },
        }
    }
}

/// `io_uring_setup: EPERM, operation not permitted`.
pub(crate) fn refusal_text(refusal: &Refusal) -> String {
    format!("{}: {}", refusal.call, errno::message(&refusal.source))
}

/// The number a file of `/proc` or `/sys` holds.
pub(crate) fn number_in(path: impl AsRef<Path>) -> Option<u64> {
    iotomy_host::kernel_text(path).ok()?.trim().parse().ok()
}
