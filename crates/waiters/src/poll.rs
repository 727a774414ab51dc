//! The `poll` waiter.
//!
//! ```text
//! table of all ──poll(2)──▶ kernel asks each descriptor, sleeps on each, asks each again
//!              ◀── the same table, all of it ──
//! ```
//!
//! The kernel keeps nothing between two waits: each hands over the whole table, enters every
//! descriptor's queue, leaves it again, and the caller looks through the table for those that are
//! ready. A wait costs in proportion to what is watched.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use iotomy_sys::poll::poll;

use crate::calls::once;
use crate::deadline::{millis, wait_until};
use crate::watched::Watched;
use crate::{
    Abilities, Calls, Closed, Counts, Declaration, Events, Interest, Kind, Probe, Room, Trigger,
    WaitError, Waiter,
};

pub(crate) static DECLARATION: Declaration = Declaration {
    name: "poll",
    summary: "poll(2) of a table that is handed over each time",
    description: "The kernel keeps nothing: each wait hands over the whole table, asks every \
                  descriptor and enters and leaves its queue. A wait costs in proportion to what \
                  is watched; adding and removing cost nothing.",
    man: &["poll(2)"],
    calls: Calls { open: &[], add: &[], modify: &[], remove: &[], wait: &[once("poll")] },
    abilities: Abilities {
        trigger: Trigger::Level,
        exclusive: false,
        room: Room::Told,
        names_hang_up: true,
        receives: false,
        shared: false,
        sleeps: true,
        serves: &Kind::ALL,
        closed: Closed::Told,
        highest: None,
        timeout_step_ns: 1_000_000,
    },
    probe: || Probe::Ready,
    open: |settings| {
        let watched = Watched::new(DECLARATION.name, settings.descriptors);
        Ok(Box::new(Poll { watched, counts: Counts::default() }))
    },
};

struct Poll {
    watched: Watched,
    counts: Counts,
}

impl Waiter for Poll {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
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
        let fds = self.watched.fds();
        let call = |left| poll(fds, millis(left));
        let found = wait_until(timeout, &mut self.counts.interrupted, call)
            .map_err(|e| WaitError::kernel(DECLARATION.name, "wait", "poll", e))?;
        self.watched.collect(found, events);
        Ok(events.len())
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
