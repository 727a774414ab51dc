//! The `epoll-edge` waiter.
//!
//! ```text
//! descriptor ──epoll_ctl(2), EPOLLET──▶ the kernel's set
//! those that had something new ◀──epoll_wait(2)── the kernel's list
//! ```
//!
//! As `epoll`, but a reported descriptor leaves the list at once and returns only with a new
//! wake-up: the kernel checks it once, and not again at the next wait. Data that is not read until
//! `EAGAIN` may never be reported again.

use crate::epoll_set::{CALLS, CAPABILITIES, EDGE, EpollSet, probe};
use crate::{Capabilities, Trigger, WaiterDeclaration};

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: "epoll-edge",
    summary: "epoll(7), edge-triggered (EPOLLET)",
    description: "As epoll, but reports new events only: the kernel does not check again whether \
        a descriptor is still ready. Read until EAGAIN before the next wait.",
    man: &["epoll(7)", "epoll_ctl(2)", "epoll_wait(2)"],
    calls: CALLS,
    capabilities: Capabilities { trigger: Trigger::Edge, ..CAPABILITIES },
    probe,
    open: |_| EpollSet::open(&DECLARATION, EDGE),
};
