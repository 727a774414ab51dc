//! An eventfd in the port's set that is readable as long as events are queued, so that threads that
//! sleep in the set, and others that poll the port, learn of them.
//!
//! The tricky invariant: whoever queues an event rings, and whoever finds the queue empty silences
//! and *then* looks again. `rung` saves the system call to all who ring a bell that is rung.

use std::os::fd::{AsFd, BorrowedFd};

use iotomy_sys::private_fd::PrivateFd;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::shared::{Locked, Shared};

#[derive(Debug)]
pub(crate) struct Bell(PrivateFd);

impl Bell {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?.into()))
    }

    pub(crate) fn ring(&self, shared: &Shared) {
        if !shared.swap_rung(true) {
            self.ring_again();
        }
    }

    /// Rings whether it is rung or not.
    pub(crate) fn ring_again(&self) {
        // It fails only if it is rung 2⁶⁴ − 1 times.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Silences the bell if nothing is queued, and rings it if something is.
    pub(crate) fn settle(&self, shared: &Shared, locked: &Locked<'_>) {
        let is_needed = || !locked.is_empty() || locked.alert().is_some() || locked.alerted() > 0;
        if is_needed() {
            self.ring(shared);
        } else if shared.is_rung() {
            shared.swap_rung(false);
            // Fails if another receiver was first.
            let _ = rustix::io::read(&self.0, &mut [0u8; 8][..]);
            if is_needed() {
                shared.swap_rung(true);
                self.ring_again();
            }
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
