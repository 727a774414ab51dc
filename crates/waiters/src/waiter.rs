//! The parts of a waiter: its declaration, and the set of descriptors it watches.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::calls::Calls;
use crate::capabilities::Capabilities;
use crate::error::WaitError;
use crate::events::Events;
use crate::ready::Interest;

/// The declaration of a waiter; docs and the contract tests are made from it.
#[derive(Debug, Clone, Copy)]
pub struct WaiterDeclaration {
    /// Its name, as experiments and records have it.
    pub name: &'static str,
    /// A one-line summary.
    pub summary: &'static str,
    /// The path of an event: the state kept in the kernel, the data passed with each call, the cost
    /// of a wait.
    pub description: &'static str,
    /// Manual pages that describe the calls.
    pub man: &'static [&'static str],
    /// The calls it makes, and no others.
    pub calls: Calls,
    /// Its features.
    pub capabilities: Capabilities,
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

/// The settings a waiter is opened with. Those of numbers and bytes only reserve room: a waiter also
/// accepts more than it was told to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The expected number of watched descriptors, roughly.
    pub descriptors: usize,
    /// Bytes a buffer holds, for waiters that receive by themselves.
    pub buffer_bytes: usize,
    /// How many of the threads that share a waiter run at once at most, for waiters that can cap that
    /// (`completion-port`). A thread runs from the end of a wait to its next one, unless it is known
    /// to be blocked. 0 is no limit.
    pub concurrency: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { descriptors: 1024, buffer_bytes: 4096, concurrency: 0 }
    }
}

/// A set of watched descriptors, and a mechanism to wait for them.
pub trait Waiter {
    /// Its declaration.
    fn declaration(&self) -> &'static WaiterDeclaration;

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

    /// Stops watching it. No later wait reports it.
    ///
    /// # Errors
    /// `ENOENT` when it is not watched.
    fn remove(&mut self, fd: BorrowedFd<'_>) -> Result<(), WaitError>;

    /// Waits for events, or for the time-out, which is never early; no time-out is for ever, and a
    /// zero one polls without waiting. `events` then holds the new events and nothing else; events
    /// that found no room come with the next wait. Returns their number. A descriptor is reported
    /// at most once per wait, except for received bytes, which are in their order.
    ///
    /// A signal's handler is run and the wait goes on.
    ///
    /// # Errors
    /// The kernel's error, which concerns no single descriptor.
    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<usize, WaitError>;

    /// Handles all present events and does not sleep: waits with a time-out of zero, passing each
    /// batch to `take`, until one is empty. Returns the number of events. Read or write until the
    /// descriptor is not ready any more, or disarm it: where the trigger is
    /// [`crate::Trigger::Level`], it is reported again otherwise, and this does not end.
    ///
    /// # Errors
    /// As [`Waiter::wait`]; events found before have been handed over.
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

    /// Another handle of the same set, for another thread: it waits concurrently, or changes the
    /// set during a wait. `None` where the features exclude it.
    fn share(&self) -> Option<Box<dyn Waiter + Send>> {
        None
    }

    /// The descriptors of the set itself, for a child that closes what it inherited and goes on with the
    /// set. None where children do not inherit it ([`Capabilities::inherited`]).
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

/// Counts of everything that happened in a waiter besides events: nothing of it is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Calls that a signal's handler interrupted, as far as the kernel reported it; the waits
    /// continued.
    pub interrupted: u64,
    /// Times the kernel had no room to report events.
    pub overflows: u64,
    /// Polls of every descriptor because of an overflow.
    pub sweeps: u64,
    /// Requests that ended by themselves and were made again.
    pub rearmed: u64,
    /// Events of descriptors that were no longer watched; they are dropped.
    pub stale: u64,
}
