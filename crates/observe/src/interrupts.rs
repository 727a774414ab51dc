//! Signals sent to iotomy while it watches: taken from a descriptor instead of by handlers, so
//! that a watch is never cut short without its report.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use iotomy_sys::signals::is_let_pass;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getpgid, getpgrp};

/// The signals that are held back: those a user or a supervisor ends or steers a command with.
const HELD: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// The last signal that requested an end during a watch, 0 for none. SIGHUP takes the place of no other one: it may ask
/// for less than an end.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// The signal that requested an end since the last call, if any: a watch passes it on to its
/// command, and a caller that makes several watches must know not to continue.
pub fn take_interrupt() -> Option<i32> {
    Some(ASKED.swap(0, Ordering::Relaxed)).filter(|signal| *signal != 0)
}

fn note(signal: Signal) {
    let replaces = |known: i32| {
        let is_free = known == 0 || known == Signal::SIGHUP as i32;
        (is_free || signal != Signal::SIGHUP).then_some(signal as i32)
    };
    // Where it replaces none, the other one stays.
    let _ = ASKED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, replaces);
}

/// Whether there is one for [`take_interrupt`] to take.
pub fn is_interrupted() -> bool {
    ASKED.load(Ordering::Relaxed) != 0
}

/// Signals held back for as long as this lives.
pub(crate) struct Interrupts {
    original: SigSet,
    descriptor: SignalFd,
}

/// One signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupt {
    signal: Signal,
    /// Sent by a terminal's key to the whole foreground group, the command included.
    from_terminal: bool,
    /// This process was told to ignore it.
    is_let_pass: bool,
}

impl Interrupts {
    /// Holds signals back from now on.
    pub(crate) fn hold() -> io::Result<Self> {
        iotomy_sys::startup::reset_sigchld();
        let held: SigSet = HELD.into_iter().collect();
        let mut original = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&held), Some(&mut original))?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let descriptor = SignalFd::with_flags(&held, flags)?;
        Ok(Self { original, descriptor })
    }

    /// The mask this process had before, which a command shall have.
    pub(crate) fn original_mask(&self) -> &SigSet {
        &self.original
    }

    /// The next signal that came, if one has.
    pub(crate) fn next(&self) -> Option<Interrupt> {
        let info = self.descriptor.read_signal().ok()??;
        let signal = Signal::try_from(info.ssi_signo.cast_signed()).ok()?;
        let interrupt = Interrupt {
            signal,
            from_terminal: info.ssi_code == SI_KERNEL,
            is_let_pass: is_let_pass(signal as i32, info.ssi_code),
        };
        if interrupt.ends_a_watch() {
            note(signal);
        }
        Some(interrupt)
    }
}

/// `si_code` of a signal the kernel made, as a terminal's driver does.
const SI_KERNEL: i32 = 0x80;

impl Interrupt {
    /// Passes the signal on to process `pid`. A process in this process's group has received it
    /// already when it came from a terminal; a command in a group of its own gets it as a terminal
    /// would send it, to the whole group, because its first process may be a shell that waits for
    /// the others. Returns whether there was a receiver.
    pub(crate) fn pass_on(self, pid: u32) -> bool {
        let pid = Pid::from_raw(pid.cast_signed());
        match getpgid(Some(pid)) {
            Ok(group) if group != getpgrp() => killpg(group, self.signal) != Err(Errno::ESRCH),
            Ok(_) if self.from_terminal => true,
            Ok(_) => kill(pid, self.signal) != Err(Errno::ESRCH),
            Err(_) => false,
        }
    }

    /// The signal's number.
    pub(crate) fn number(self) -> i32 {
        self.signal as i32
    }

    /// Whether the signal requests an end, where there is no command to pass it on to.
    pub(crate) fn ends_a_watch(self) -> bool {
        !self.is_let_pass && !matches!(self.signal, Signal::SIGUSR1 | Signal::SIGUSR2)
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // Signals that came too late to be read are not delivered a second time.
        while self.next().is_some() {}
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.original), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_signal_is_kept_but_a_hangup_takes_the_place_of_none() {
        use Signal::{SIGHUP, SIGINT, SIGTERM};
        for (signals, kept) in [
            (&[SIGINT, SIGTERM][..], SIGTERM),
            (&[SIGTERM, SIGHUP], SIGTERM),
            (&[SIGHUP, SIGINT], SIGINT),
            (&[SIGHUP, SIGHUP], SIGHUP),
        ] {
            signals.iter().copied().for_each(note);
            assert!(is_interrupted());
            assert_eq!(take_interrupt(), Some(kept as i32), "{signals:?}");
            assert_eq!(take_interrupt(), None);
        }
    }
}
