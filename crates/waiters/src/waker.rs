//! Waking a waiter from another thread: a pair of sockets, one of which is watched like any other
//! descriptor.
//!
//! Sockets, and not eventfd(2), because every waiter can watch them.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use crate::{Interest, WaitError, Waiter};

/// Wakes a waiter. To be shared between threads; lives longer than the last wait that it is to end.
#[derive(Debug)]
pub struct Waker {
    watched: UnixStream,
    other: UnixStream,
}

impl Waker {
    /// Has `waiter` watch a new pair under `token`.
    ///
    /// # Errors
    /// When no sockets can be created, or the waiter cannot watch them.
    pub fn new(waiter: &mut dyn Waiter, token: u64) -> Result<Self, WaitError> {
        let name = waiter.declaration().name;
        let pair = || -> io::Result<Self> {
            let (watched, other) = UnixStream::pair()?;
            watched.set_nonblocking(true)?;
            other.set_nonblocking(true)?;
            Ok(Self { watched, other })
        };
        let waker = pair().map_err(|e| WaitError::kernel(name, "make a waker", "socketpair", e))?;
        waiter.add(waker.watched.as_fd(), Interest::READ, token)?;
        Ok(waker)
    }

    /// Ends a wait: the current one, or else the next one.
    pub fn wake(&self) {
        // A pair that is full wakes as well as one that is not.
        let _ = (&self.other).write(&[1]);
    }

    /// To be called when the waiter has reported it: reads the byte. Rearms it where events come
    /// only once.
    ///
    /// # Errors
    /// As [`Waiter::modify`].
    pub fn clear(&self, waiter: &mut dyn Waiter, token: u64) -> Result<(), WaitError> {
        let capabilities = &waiter.declaration().capabilities;
        let mut bytes = [0; 64];
        while !capabilities.receives && matches!((&self.watched).read(&mut bytes), Ok(1..)) {}
        if capabilities.trigger == crate::Trigger::OneShot {
            waiter.modify(self.watched.as_fd(), Interest::READ, token)?;
        }
        Ok(())
    }
}
