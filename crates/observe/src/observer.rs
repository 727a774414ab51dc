//! The contract of observers, and their declaration.

use iotomy_record::Trace;

use crate::error::ObserveError;
use crate::request::Request;
use crate::viewer::OptionalViewer;

/// The declaration of an observer; help, docs and the contract tests are made from it.
#[derive(Debug, Clone, Copy)]
pub struct ObserverDeclaration {
    /// Its name, as `--observer` and the record have it.
    pub name: &'static str,
    /// A one-line summary.
    pub summary: &'static str,
    /// Its mechanism, its overhead and its blind spots.
    pub description: &'static str,
    /// The privilege it needs.
    pub privilege: &'static str,
    /// Whether it slows calls so much that their times cannot be taken at face value.
    pub times_inflated: bool,
    /// Whether it separates on-CPU time, blocked time and run queue delay, and so can fill a
    /// ledger.
    pub splits_time: bool,
    /// Whether it can watch all processes at once.
    pub watches_machine: bool,
}

/// Whether a piece can work here, found by trying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// It works.
    Ready,
    /// It does not.
    Unsupported {
        /// The attempt and the kernel's error.
        reason: String,
        /// The remedy.
        remedy: String,
    },
}

/// A mechanism to watch a process tree.
pub trait Observer: Sync {
    /// Its declaration.
    fn declaration(&self) -> &'static ObserverDeclaration;

    /// Tries whether it works here, without side effects that last.
    fn probe(&self) -> Probe;

    /// Watches until the request is fulfilled. For a command: until it has ended (and, with
    /// [`Request::wait`], every process it left), or the duration is over; signals to this process
    /// are passed on to the command meanwhile. For a process or the machine: until it ends, the
    /// duration is over, or a signal ends the watch.
    ///
    /// # Errors
    /// The error that kept the watch from starting. Once a command runs, its run is never lost to
    /// an error.
    fn watch(&self, request: &Request) -> Result<Trace, ObserveError> {
        self.watch_before(request, None)
    }

    /// The same, before a viewer.
    ///
    /// # Errors
    /// As [`Observer::watch`].
    fn watch_before(
        &self,
        request: &Request,
        viewer: OptionalViewer<'_>,
    ) -> Result<Trace, ObserveError>;
}
