//! Mechanisms to wait for many descriptors.
//!
//! A waiter is one file and one line in [`WAITERS`]: a [`WaiterDeclaration`] of its calls and features,
//! with the function that opens a [`Waiter`]. A waiter watches descriptors that the caller opened
//! and keeps, and returns their events in batches: one call through the trait per wait, never one
//! per event.
//!
//! The one invariant: an event carries the token of its descriptor at the time the wait returned;
//! nothing is reported about a descriptor after its removal has returned. Remove a descriptor
//! before you close it; the treatment of one that was closed while it was watched is declared,
//! because kernel interfaces differ ([`Closed`]).
//!
//! ```
//! use std::os::fd::AsFd;
//! use iotomy_waiters::{Events, Interest, Settings, waiter};
//!
//! let mut waiter = (waiter("epoll").expect("a name").open)(&Settings::default())?;
//! let (out, into) = std::io::pipe()?;
//! waiter.add(out.as_fd(), Interest::READ, 7)?;
//! drop(into);
//! let mut events = Events::with_capacity(256);
//! waiter.wait(&mut events, None)?;
//! assert!(events.iter().all(|event| event.token == 7 && event.ready.wants_read()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod busy;
mod calls;
mod capabilities;
mod completion_port;
mod deadline;
mod dev_poll;
mod epoll;
mod epoll_edge;
mod epoll_exclusive;
mod epoll_oneshot;
mod epoll_set;
mod error;
mod event_ports;
mod events;
mod io_uring_poll;
mod io_uring_recv;
mod kqueue;
mod null;
mod poll;
mod ready;
mod registry;
mod ring_set;
pub mod rounds;
mod select;
mod sigio;
mod tabled;
mod waiter;
mod waker;
mod watched;

pub use calls::{Call, Calls, RING, Times};
pub use capabilities::{Capabilities, Closed, Kind, Model, Room, Trigger};
pub use error::WaitError;
pub use events::{Event, Events};
pub use ready::{Interest, Ready};
pub use registry::{WAITERS, waiter};
pub use waiter::{Counts, Probe, Settings, Waiter, WaiterDeclaration};
pub use waker::Waker;
