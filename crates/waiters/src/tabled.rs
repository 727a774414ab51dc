//! The common part of the waiters whose set is a table in poll(2)'s form: all but the wait itself.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::watched::Watched;
use crate::{Counts, Events, Interest, Settings, WaitError, Waiter, WaiterDeclaration};

/// How one of them waits.
pub(crate) trait TableCall: 'static {
    /// Its declaration.
    const DECLARATION: &'static WaiterDeclaration;

    /// Waits, and puts the events into `events`, which is empty. `interrupted` counts the calls
    /// that a signal ended.
    fn wait(
        &mut self,
        watched: &mut Watched,
        events: &mut Events,
        timeout: Option<Duration>,
        interrupted: &mut u64,
    ) -> Result<(), WaitError>;
}

/// A waiter of this kind that watches nothing yet.
pub(crate) fn open<W: TableCall>(
    way: W,
    settings: &Settings,
) -> Result<Box<dyn Waiter>, WaitError> {
    let watched = Watched::new(W::DECLARATION.name, settings.descriptors);
    Ok(Box::new(Tabled { watched, counts: Counts::default(), way }))
}

struct Tabled<W> {
    watched: Watched,
    counts: Counts,
    way: W,
}

impl<W: TableCall> Waiter for Tabled<W> {
    fn declaration(&self) -> &'static WaiterDeclaration {
        W::DECLARATION
    }

    fn add(&mut self, fd: BorrowedFd<'_>, interest: Interest, token: u64) -> Result<(), WaitError> {
        self.watched.add(fd, interest, token)
    }

    fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> Result<(), WaitError> {
        self.watched.modify(fd, interest, token)
    }

    fn remove(&mut self, fd: BorrowedFd<'_>) -> Result<(), WaitError> {
        self.watched.remove(fd)
    }

    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<usize, WaitError> {
        events.clear();
        self.way.wait(&mut self.watched, events, timeout, &mut self.counts.interrupted)?;
        Ok(events.len())
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
