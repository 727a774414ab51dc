//! The `io-uring-recv` waiter.
//!
//! ```text
//! socket ──▶ a buffer the kernel chooses ──▶ completion ──copy──▶ the caller's events
//!        one request for ever; io_uring_enter(2) once a wait, no read(2)
//! ```
//!
//! Not readiness but the bytes themselves: a request for each socket receives for ever, into
//! provided buffers, and an event is the received bytes. They are copied once more, into the
//! caller's events, so that the buffer returns to the kernel at once and nobody keeps one. When
//! there are more bytes than buffers, the request ends and is submitted again.
//!
//! Bytes that have been received and not reported when a descriptor is removed are lost.

use crate::calls::{once, rarely};
use crate::ring_set::{RingMode, RingSet, probe};
use crate::{Calls, Capabilities, Closed, Kind, Model, Room, Trigger, WaiterDeclaration};

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: "io-uring-recv",
    summary: "io_uring(7), multishot receive requests (Linux 6.0)",
    description: "One request per socket receives into buffers that the kernel selects; an event \
        carries the bytes, and no read follows. Requests are submitted with the next wait, or \
        when 256 are queued. A socket stays open until its removal, which is a call; bytes \
        received but not reported by then are lost.",
    man: &["io_uring(7)", "io_uring_enter(2)", "io_uring_register(2)"],
    calls: Calls {
        open: &[once("io_uring_setup"), once("io_uring_register")],
        add: &[once("getsockopt"), once("ring:recv"), rarely("io_uring_enter")],
        modify: &[once("getsockopt")],
        remove: &[once("ring:async_cancel"), once("io_uring_enter")],
        wait: &[once("io_uring_enter")],
    },
    capabilities: Capabilities {
        model: Model::Completion,
        trigger: Trigger::Edge,
        exclusive: false,
        room: Room::Never,
        names_hang_up: false,
        receives: true,
        shared: false,
        inherited: false,
        sleeps: true,
        serves: &[Kind::Socket],
        closed: Closed::Held,
        highest: None,
        timeout_step_ns: 1,
    },
    probe: || probe(&DECLARATION),
    open: |settings| RingSet::open(&DECLARATION, RingMode::Receive, settings),
};
