//! The `epoll-exclusive` waiter.
//!
//! ```text
//! descriptor ──epoll_ctl(2), EPOLLEXCLUSIVE──▶ many sets
//! one event  ──▶ one of those that sleep, not all
//! ```
//!
//! As `epoll`, for a descriptor that many sets watch: an event wakes one of the waiting threads, or
//! a few, instead of all. The flag can only be set when the descriptor is added, so modifying is
//! removing and adding; and not together with `EPOLLRDHUP`, so the end of the other side's writes
//! is reported only as something to read.

use crate::calls::exactly;
use crate::epoll_set::{CALLS, CAPABILITIES, EXCLUSIVE, EpollSet, probe};
use crate::{Calls, Capabilities, WaiterDeclaration};

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: "epoll-exclusive",
    summary: "epoll(7), wakes one of many sets (EPOLLEXCLUSIVE, Linux 4.5)",
    description: "As epoll, but if many sets watch one descriptor, an event wakes one waiting \
        thread, or a few. A modification is a removal and an addition.",
    man: &["epoll(7)", "epoll_ctl(2)", "epoll_wait(2)"],
    calls: Calls { modify: &[exactly(2, "epoll_ctl")], ..CALLS },
    capabilities: Capabilities { exclusive: true, ..CAPABILITIES },
    probe,
    open: |_| EpollSet::open(&DECLARATION, EXCLUSIVE),
};
