//! The list of all waiters.

use crate::waiter::WaiterDeclaration;
use crate::{
    busy, completion_port, dev_poll, epoll, epoll_edge, epoll_exclusive, epoll_oneshot,
    event_ports, io_uring_poll, io_uring_recv, kqueue, null, poll, select, sigio,
};

/// Every waiter, in the order they are listed.
pub static WAITERS: &[&WaiterDeclaration] = &[
    &null::DECLARATION,
    &busy::DECLARATION,
    &sigio::DECLARATION,
    &select::DECLARATION,
    &poll::DECLARATION,
    &dev_poll::DECLARATION,
    &epoll::DECLARATION,
    &epoll_edge::DECLARATION,
    &epoll_oneshot::DECLARATION,
    &epoll_exclusive::DECLARATION,
    &event_ports::DECLARATION,
    &kqueue::DECLARATION,
    &completion_port::DECLARATION,
    &io_uring_poll::DECLARATION,
    &io_uring_recv::DECLARATION,
];

/// The waiter called `name`.
pub fn waiter(name: &str) -> Option<&'static WaiterDeclaration> {
    WAITERS.iter().copied().find(|waiter| waiter.name == name)
}
