//! The `epoll-edge` waiter.
//!
//! ```text
//! descriptor ──epoll_ctl(2), EPOLLET──▶ the kernel's set
//! those that had something new ◀──epoll_wait(2)── the kernel's list
//! ```
//!
//! As `epoll`, but what has been told leaves the list at once and comes back only by a new wake-up:
//! the kernel looks at it once and not again at the next wait. What is not read until `EAGAIN` may
//! never be told of again.

use crate::epoll_set::{ABILITIES, CALLS, EDGE, EpollSet, probe};
use crate::{Abilities, Declaration, Trigger};

pub(crate) static DECLARATION: Declaration = Declaration {
    name: "epoll-edge",
    summary: "epoll(7), edge-triggered (EPOLLET)",
    description: "As epoll, but reports new events only: the kernel does not check again whether \
        a descriptor is still ready. Read until EAGAIN before the next wait.",
    man: &["epoll(7)", "epoll_ctl(2)", "epoll_wait(2)"],
    calls: CALLS,
    abilities: Abilities { trigger: Trigger::Edge, ..ABILITIES },
    probe,
    open: |_| EpollSet::open(&DECLARATION, EDGE),
};
