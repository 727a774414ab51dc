//! The `busy` waiter.
//!
//! ```text
//! one descriptor ──poll(2), no time-out──▶ kernel asks it      again and again, for each
//! ```
//!
//! The first of the four models: the program receives no notification; it polls each descriptor by
//! a call of its own that never blocks, and never sleeps. A read would do, but takes the bytes, and
//! a peek (`MSG_PEEK`) is for sockets only and clears a pending error; poll(2) of a single
//! descriptor works for every kind and takes nothing.

use std::time::Duration;

use iotomy_sys::poll::poll;

use crate::calls::{Call, Times};
use crate::deadline::wait_until;
use crate::tabled::{TableCall, open};
use crate::watched::Watched;
use crate::{
    Calls, Capabilities, Closed, Events, Kind, Model, Probe, Room, Trigger, WaitError,
    WaiterDeclaration,
};

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: "busy",
    summary: "busy polling: one call per descriptor, repeated",
    description: "poll(2) of each descriptor alone, with a time-out of zero: one call per \
        descriptor and sweep. Never blocks: a wait uses a whole CPU until an event.",
    man: &["poll(2)"],
    calls: Calls {
        open: &[],
        add: &[],
        modify: &[],
        remove: &[],
        wait: &[Call { name: "poll", times: Times::EachDescriptor }],
    },
    capabilities: Capabilities {
        model: Model::Polling,
        trigger: Trigger::Level,
        exclusive: false,
        room: Room::Told,
        names_hang_up: true,
        receives: false,
        shared: false,
        inherited: false,
        sleeps: false,
        serves: &Kind::ALL,
        closed: Closed::Told,
        highest: None,
        timeout_step_ns: 1,
    },
    probe: || Probe::Ready,
    open: |settings| open(Busy, settings),
};

struct Busy;

impl TableCall for Busy {
    const DECLARATION: &'static WaiterDeclaration = &DECLARATION;

    fn wait(
        &mut self,
        watched: &mut Watched,
        events: &mut Events,
        timeout: Option<Duration>,
        interrupted: &mut u64,
    ) -> Result<(), WaitError> {
        let fds = watched.fds();
        // The first sweep does not read the clock, nor does any sweep without a time-out.
        let mut sweep = |left: Option<Duration>| loop {
            let mut found = 0;
            for fd in fds.chunks_exact_mut(1) {
                found += poll(fd, 0)?;
            }
            if found > 0 || left.is_some() {
                break Ok(found);
            }
        };
        let found = wait_until(timeout, interrupted, &mut sweep)
            .map_err(|e| WaitError::kernel(DECLARATION.name, "wait", "poll", e))?;
        watched.collect(found, events);
        Ok(())
    }
}
