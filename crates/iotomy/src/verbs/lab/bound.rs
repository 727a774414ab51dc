//! Ends a command that is watched for an experiment whose time is up.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use iotomy_observe::{TakeSnapshot, Viewer, ViewerRequest, WatchStart};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Kills the command at a moment, if it has not ended by then.
pub(super) struct Bound {
    at: Option<Instant>,
    command: Option<OwnedFd>,
    has_ended_it: bool,
}

impl Bound {
    /// At that moment; `None` is never.
    pub(super) fn at(at: Option<Instant>) -> Self {
        Self { at, command: None, has_ended_it: false }
    }

    /// Whether it was this that ended the command.
    pub(super) fn has_ended_it(&self) -> bool {
        self.has_ended_it
    }
}

impl Viewer for Bound {
    fn begin(&mut self, outset: &WatchStart) {
        let pid = outset.pid.and_then(|pid| Pid::from_raw(pid.cast_signed()));
        // Without it the run is late, and whole.
        self.command = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn deadline(&self) -> Option<Instant> {
        self.at
    }

    fn update(&mut self, _: Option<&mut TakeSnapshot<'_>>) -> ViewerRequest {
        if self.at.is_some_and(|at| Instant::now() >= at) {
            // Once: a failed attempt is not repeated.
            self.at = None;
            let kill = |command: &OwnedFd| pidfd_send_signal(command, Signal::KILL).is_ok();
            self.has_ended_it = self.command.as_ref().is_some_and(kill);
        }
        ViewerRequest::GoOn
    }

    fn takes_signal(&mut self, _: i32) -> bool {
        false
    }
}
