//! The `poll` waiter.
//!
//! ```text
//! table of all ──poll(2)──▶ kernel asks each descriptor, sleeps on each, asks each again
//!              ◀── the same table, all of it ──
//! ```
//!
//! The kernel keeps nothing between two waits: each passes the whole table, enters every
//! descriptor's queue, leaves it again, and the caller searches the table for the ready ones. The
//! cost of a wait is proportional to the number of watched descriptors.

use std::time::Duration;

use iotomy_sys::poll::poll;

use crate::calls::once;
use crate::deadline::{millis, wait_until};
use crate::tabled::{TableCall, open};
use crate::watched::Watched;
use crate::{
    Calls, Capabilities, Closed, Events, Kind, Model, Probe, Room, Trigger, WaitError,
    WaiterDeclaration,
};

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: "poll",
    summary: "poll(2) of a table passed with each call",
    description: "The kernel keeps no state: each wait passes the whole table, polls every \
        descriptor, and enters and leaves its wait queue. The cost of a wait is proportional to \
        the number of descriptors; adding and removing are free.",
    man: &["poll(2)"],
    calls: Calls { open: &[], add: &[], modify: &[], remove: &[], wait: &[once("poll")] },
    capabilities: Capabilities {
        model: Model::Passed,
        trigger: Trigger::Level,
        exclusive: false,
        room: Room::Told,
        names_hang_up: true,
        receives: false,
        shared: false,
        inherited: false,
        sleeps: true,
        serves: &Kind::ALL,
        closed: Closed::Told,
        highest: None,
        timeout_step_ns: 1_000_000,
    },
    probe: || Probe::Ready,
    open: |settings| open(Poll, settings),
};

struct Poll;

impl TableCall for Poll {
    const DECLARATION: &'static WaiterDeclaration = &DECLARATION;

    fn wait(
        &mut self,
        watched: &mut Watched,
        events: &mut Events,
        timeout: Option<Duration>,
        interrupted: &mut u64,
    ) -> Result<(), WaitError> {
        let fds = watched.fds();
        let found = wait_until(timeout, interrupted, |left| poll(fds, millis(left)))
            .map_err(|e| WaitError::kernel(DECLARATION.name, "wait", "poll", e))?;
        watched.collect(found, events);
        Ok(())
    }
}
