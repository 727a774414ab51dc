//! Signals that end a race or an experiment: taken from a descriptor, so that neither is cut short
//! without its clean-up.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use iotomy_sys::signals::is_let_pass;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The signals with which users and supervisors end a program.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Signals held back for as long as this lives.
pub struct Interrupts {
    original: SigSet,
    descriptor: SignalFd,
}

impl Interrupts {
    /// Holds them back.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn hold() -> io::Result<Self> {
        iotomy_sys::startup::reset_sigchld();
        let held: SigSet = ENDING.into_iter().collect();
        let mut original = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&held), Some(&mut original))?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let descriptor = SignalFd::with_flags(&held, flags)?;
        Ok(Self { original, descriptor })
    }

    /// The mask this process had before, which a command shall have.
    pub(super) fn original_mask(&self) -> &SigSet {
        &self.original
    }

    /// The number of a signal that came and ends this process, if one has.
    pub fn next(&self) -> Option<i32> {
        loop {
            let info = self.descriptor.read_signal().ok()??;
            let signal = info.ssi_signo.cast_signed();
            if !is_let_pass(signal, info.ssi_code) {
                return Some(signal);
            }
        }
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // Signals that arrive from now on have their usual effect.
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.original), None);
    }
}
