//! The `io-uring-poll` waiter.
//!
//! ```text
//! requests    ──queue in shared memory──▶ io_uring_enter(2) ──▶ the kernel polls each for ever
//! completions ◀──queue in shared memory── one each time something has happened
//! ```
//!
//! As `epoll-edge`, but additions are submitted with the next wait, many at once, and events are
//! read from shared memory. A request holds its descriptor open, so it is cancelled, and waited
//! for, when the descriptor is removed. One completion may stand for several wake-ups.

use crate::calls::{Call, once, rarely};
use crate::ring_set::{RingMode, RingSet, probe};
use crate::{Calls, Capabilities, Closed, Kind, Model, Room, Trigger, WaiterDeclaration};

/// Of a removal, which waits until the kernel has released the descriptor.
const CANCEL: Call = once("ring:async_cancel");

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: "io-uring-poll",
    summary: "io_uring(7), multishot poll requests (Linux 5.13)",
    description: "One request per descriptor completes at every new event. Requests are submitted \
        with the next wait, or when 256 are queued; completions are read from shared memory. A \
        descriptor stays open until its removal, which is a call.",
    man: &["io_uring(7)", "io_uring_enter(2)"],
    calls: Calls {
        open: &[once("io_uring_setup")],
        add: &[once("ring:poll_add"), rarely("io_uring_enter")],
        modify: &[CANCEL, once("ring:poll_add"), once("io_uring_enter")],
        remove: &[CANCEL, once("io_uring_enter")],
        wait: &[once("io_uring_enter")],
    },
    capabilities: Capabilities {
        model: Model::Readiness,
        trigger: Trigger::Edge,
        exclusive: false,
        room: Room::Told,
        names_hang_up: true,
        receives: false,
        shared: false,
        inherited: false,
        sleeps: true,
        serves: &Kind::ALL,
        closed: Closed::Held,
        highest: None,
        timeout_step_ns: 1,
    },
    probe: || probe(&DECLARATION),
    open: |settings| RingSet::open(&DECLARATION, RingMode::Poll, settings),
};
