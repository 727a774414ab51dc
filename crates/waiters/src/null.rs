//! The `null` waiter.
//!
//! ```text
//! descriptors        no call        events
//! ```
//!
//! Tells of every descriptor at every wait, in turns where the caller's room is smaller, and asks
//! the kernel nothing: what is left of a measurement with it is the harness and the trait.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::watched::Watched;
use crate::{
    Abilities, Calls, Closed, Declaration, Event, Events, Interest, Kind, Probe, Ready, Room,
    Trigger, WaitError, Waiter,
};

pub(crate) static DECLARATION: Declaration = Declaration {
    name: "null",
    summary: "no call: what the harness itself costs",
    description: "Tells of all descriptors at every wait without asking the kernel. For measuring \
                  the harness and the trait.",
    man: &[],
    calls: Calls { open: &[], add: &[], modify: &[], remove: &[], wait: &[] },
    abilities: Abilities {
        trigger: Trigger::Level,
        exclusive: false,
        room: Room::Told,
        names_hang_up: false,
        receives: false,
        shared: false,
        sleeps: false,
        serves: &Kind::ALL,
        closed: Closed::Silent,
        highest: None,
        timeout_step_ns: 1,
    },
    probe: || Probe::Ready,
    open: |settings| {
        let watched = Watched::new(DECLARATION.name, settings.descriptors);
        Ok(Box::new(Null { watched, next: 0 }))
    },
};

struct Null {
    watched: Watched,
    next: usize,
}

impl Waiter for Null {
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

    fn wait(&mut self, events: &mut Events, _: Option<Duration>) -> Result<usize, WaitError> {
        events.clear();
        let tokens = self.watched.tokens();
        if self.next >= tokens.len() {
            self.next = 0;
        }
        let end = tokens.len().min(self.next + events.capacity());
        let ready = Ready::READABLE | Ready::WRITABLE;
        events.fill(tokens[self.next..end].iter().map(|token| Event { token: *token, ready }));
        self.next = end;
        Ok(events.len())
    }
}
