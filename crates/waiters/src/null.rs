//! The `null` waiter.
//!
//! ```text
//! descriptors        no call        events
//! ```
//!
//! Reports every descriptor at every wait, in turns where the caller's room is smaller, and makes
//! no call: the cost of a measurement with it is that of the harness and the trait.

use std::time::Duration;

use crate::tabled::{TableCall, open};
use crate::watched::Watched;
use crate::{
    Calls, Capabilities, Closed, Event, Events, Kind, Model, Probe, Ready, Room, Trigger,
    WaitError, WaiterDeclaration,
};

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: "null",
    summary: "no call: the overhead of the harness",
    description: "Reports all descriptors at every wait without a call. For measuring the harness \
        and the trait.",
    man: &[],
    calls: Calls { open: &[], add: &[], modify: &[], remove: &[], wait: &[] },
    capabilities: Capabilities {
        model: Model::Polling,
        trigger: Trigger::Level,
        exclusive: false,
        room: Room::Told,
        names_hang_up: false,
        receives: false,
        shared: false,
        inherited: false,
        sleeps: false,
        serves: &Kind::ALL,
        closed: Closed::Silent,
        highest: None,
        timeout_step_ns: 1,
    },
    probe: || Probe::Ready,
    open: |settings| open(Null { next: 0 }, settings),
};

struct Null {
    next: usize,
}

impl TableCall for Null {
    const DECLARATION: &'static WaiterDeclaration = &DECLARATION;

    fn wait(
        &mut self,
        watched: &mut Watched,
        events: &mut Events,
        _: Option<Duration>,
        _: &mut u64,
    ) -> Result<(), WaitError> {
        let tokens = watched.tokens();
        if self.next >= tokens.len() {
            self.next = 0;
        }
        let end = tokens.len().min(self.next + events.capacity());
        let ready = Ready::READABLE | Ready::WRITABLE;
        events.fill(tokens[self.next..end].iter().map(|token| Event { token: *token, ready }));
        self.next = end;
        Ok(())
    }
}
