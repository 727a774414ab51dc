//! Event ports, as Solaris and illumos have them, on Linux: one queue for events of descriptors,
//! files, timers, and of the threads themselves.
//!
//! The words of the manual pages (port_create(3C), port_associate(3C), port_get(3C), port_send(3C),
//! port_alert(3C)) are the specification; `docs/ports.md` says where Linux allows less. The C
//! functions are in the crate `ports-c`, which adds names and pointers only.
//!
//! Beside them are [`PollSet`], Solaris' `/dev/poll`, [`Kqueue`], FreeBSD's kqueue, and [`CompletionPort`], the
//! queue of Windows' completion ports.
//!
//! A [`Port`] is an `epoll(7)` set, in which descriptors are one-shot, an eventfd in it that is
//! readable as long as events are queued (the *bell*), and a memory that children share
//! (`shared.rs`). A thread that finds the queue empty sleeps in `epoll_wait`, and the events with
//! which it returns go to its caller directly.

mod bell;
mod completion_port;
mod descriptors;
mod errno;
mod event;
mod file;
mod inside;
mod kqueue;
mod local;
mod numbers;
mod poll_set;
mod port;
mod retrieve;
mod shared;
mod timer;

pub use completion_port::{Completion, CompletionPort, Look, PortCounts, ProcWatch, RunWatch};
pub use event::{Event, Source};
pub use file::{FileChanges, FileObject, Timestamp};
pub use kqueue::{Kevent, Kqueue, filter, flag, note};
pub use poll_set::{PollEntry, PollSet, REMOVE};
pub use port::{Closes, Port};
pub use retrieve::Shortfall;
pub use rustix::io::Errno;
pub use timer::{Clock, TimerId, TimerSetting};
