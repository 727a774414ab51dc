//! The `epoll` waiter.
//!
//! ```text
//! descriptor ──epoll_ctl(2)──▶ the kernel's set        once
//! ready ones ◀──epoll_wait(2)── the kernel's list      each wait, whoever is ready and no others
//! ```
//!
//! The kernel keeps the watched set and is notified of readiness by the descriptors' own wake-ups.
//! The cost of a wait is proportional to the number of ready descriptors; adding and removing cost
//! one call each.

use crate::WaiterDeclaration;
use crate::epoll_set::{CALLS, CAPABILITIES, EpollSet, probe};

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: "epoll",
    summary: "epoll(7), level-triggered",
    description: "The kernel keeps the set and a list of ready descriptors; a wait takes from the \
        list, and its cost is proportional to the list. The next wait checks each descriptor \
        again, because it may still be ready.",
    man: &["epoll(7)", "epoll_ctl(2)", "epoll_wait(2)"],
    calls: CALLS,
    capabilities: CAPABILITIES,
    probe,
    open: |_| EpollSet::open(&DECLARATION, 0),
};
