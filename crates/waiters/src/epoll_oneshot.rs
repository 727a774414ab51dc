//! The `epoll-oneshot` waiter.
//!
//! ```text
//! descriptor ──epoll_ctl(2), EPOLLONESHOT──▶ the kernel's set
//! event      ◀──epoll_wait(2)──              and silence
//! descriptor ──epoll_ctl(2), EPOLL_CTL_MOD──▶ armed again
//! ```
//!
//! As `epoll`, but a descriptor is reported once and then not until it is modified: of several
//! threads, one has it to itself until it rearms it. That is a second call per event.

use crate::epoll_set::{CALLS, CAPABILITIES, EpollSet, ONE_SHOT, probe};
use crate::{Capabilities, Trigger, WaiterDeclaration};

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: "epoll-oneshot",
    summary: "epoll(7), one report until rearmed (EPOLLONESHOT)",
    description: "As epoll, but no report after an event until the descriptor is modified: one \
        thread of many has it alone, at the cost of a second call per event.",
    man: &["epoll(7)", "epoll_ctl(2)", "epoll_wait(2)"],
    calls: CALLS,
    capabilities: Capabilities { trigger: Trigger::OneShot, ..CAPABILITIES },
    probe,
    open: |_| EpollSet::open(&DECLARATION, ONE_SHOT),
};
