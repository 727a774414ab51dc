//! The parts of a waiter: its declaration, and the set of descriptors it watches.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::abilities::Abilities;
use crate::calls::Calls;
use crate::error::WaitError;
use crate::events::Events;
use crate::ready::Interest;

/// The declaration of a waiter; docs and the contract tests are made from it.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Its name, as experiments and records have it.
    pub name: &'static str,
    /// A one-line summary.
    pub summary: &'static str,
    /// The path of an event: what the kernel keeps, what is told anew, what a wait costs.
    pub description: &'static str,
    /// Manual pages that describe the calls.
    pub man: &'static [&'static str],
    /// The calls it makes, and no others.
    pub calls: Calls,
    /// Its features.
    pub abilities: Abilities,
    /// Tries whether it works here, without side effects that last.
    pub probe: fn() -> Probe,
    /// Opens one that watches nothing yet. It stays in the thread that opened it.
    pub open: fn(&Settings) -> Result<Box<dyn Waiter>, WaitError>,
}

/// Whether a waiter can work on this machine, found by trying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// It works.
    Ready,
    /// It does not, for this reason.
    Unsupported(String),
}

/// The settings a waiter is opened with. They only reserve room: a waiter also accepts more than it
/// was told to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How many descriptors will be watched, or about so many.
    pub descriptors: usize,
    /// Bytes a buffer holds, for waiters that receive by themselves.
    pub buffer_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { descriptors: 1024, buffer_bytes: 4096 }
    }
}

/// A set of watched descriptors, and a way to wait for them.
pub trait Waiter {
    /// Its declaration.
    fn declaration(&self) -> &'static Declaration;

    /// Watches a descriptor from now on; its events carry `token`. A descriptor that is ready
    /// already is an event of the next wait.
    ///
    /// # Errors
    /// `EEXIST` when it is watched already; a reason when this kind of descriptor cannot be watched
    /// here, or not for that.
    fn add(&mut self, fd: BorrowedFd<'_>, interest: Interest, token: u64) -> Result<(), WaitError>;

    /// Watches it for something else, or under another token; arms one that has fired again where
    /// the trigger is [`crate::Trigger::OneShot`].
    ///
    /// # Errors
    /// `ENOENT` when it is not watched.
    fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> Result<(), WaitError>;

    /// Watches it no more. No later wait tells of it.
    ///
    /// # Errors
    /// `ENOENT` when it is not watched.
    fn remove(&mut self, fd: BorrowedFd<'_>) -> Result<(), WaitError>;

    /// Waits until something has happened, or for the time-out, which is never early; no time-out is
    /// for ever, a zero one looks and does not wait. `events` holds what happened then, and nothing
    /// else; what it had no room for comes with the next wait. How many there are. A descriptor is
    /// told of once a wait at most, but for bytes that were received, which are in their order.
    ///
    /// A signal's handler is run and the wait goes on.
    ///
    /// # Errors
    /// The kernel's error, which concerns no single descriptor.
    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<usize, WaitError>;

    /// Takes all that has happened by now and does not sleep: waits with a time-out of zero, each
    /// batch of which is handed to `take`, until one finds nothing. How many there were. Take from the
    /// descriptor what made it ready, or arm it no more: where the trigger is [`crate::Trigger::Level`], what
    /// is left is told again, and this ends no sooner than that does.
    ///
    /// # Errors
    /// As [`Waiter::wait`]; what was found before has been handed over.
    fn drain(
        &mut self,
        events: &mut Events,
        take: &mut dyn FnMut(&Events),
    ) -> Result<u64, WaitError> {
        let mut all = 0;
        while let found @ 1.. = self.wait(events, Some(Duration::ZERO))? {
            all += found as u64;
            take(events);
            // A waiter that makes no call finds everything each time.
            if self.declaration().calls.wait.is_empty() {
                break;
            }
        }
        Ok(all)
    }

    /// The counts of everything besides events.
    fn counts(&self) -> Counts {
        Counts::default()
    }

    /// Another hold on the same set, for another thread: it waits beside this one, or changes what is
    /// watched while this one waits. `None` where the abilities say so.
    fn share(&self) -> Option<Box<dyn Waiter + Send>> {
        None
    }
}

/// Counts of everything that happened in a waiter besides events: nothing of it is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Calls that a signal's handler interrupted, as far as the kernel said so; the waits went on.
    pub interrupted: u64,
    /// Times the kernel had no room to tell of events.
    pub overflows: u64,
    /// Looks at every descriptor, made because of an overflow.
    pub sweeps: u64,
    /// Requests that ended by themselves and were made again.
    pub rearmed: u64,
    /// Events of descriptors that were no longer watched; they are dropped.
    pub stale: u64,
}
