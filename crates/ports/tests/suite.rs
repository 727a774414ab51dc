//! The suites of event ports, `/dev/poll` and kqueue. One program has all of them, because it is linked once.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod completion_port;
mod descriptors;
mod files;
mod kqueue;
mod kqueue_files;
mod kqueue_filters;
mod kqueue_processes;
mod kqueue_signals;
mod poll_set;
mod queue;
mod races;
mod timers;
