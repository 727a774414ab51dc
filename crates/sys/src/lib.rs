//! The system as iotomy needs it and the only crate with `unsafe`, but for C's pointers in `ports-c`:
//! tables of calls and errors, the start of a command, and calls no library wraps exactly.
//!
//! It owns no policy: nothing here decides what to measure, retry or report.

#![allow(unsafe_code, reason = "this crate is the fence: every other crate denies unsafe")]

pub mod accept_ring;
pub mod bare;
pub mod batch_ring;
pub mod board;
pub mod bpf_stats;
pub mod buffer;
pub mod caches;
pub mod caller;
pub mod children;
pub mod clone_range;
pub mod close;
pub mod copy_ring;
pub mod crew;
pub mod descriptor_table;
pub mod epoll;
pub mod errno;
pub mod extent;
pub mod forks;
pub mod front;
pub mod io_signals;
pub mod keeper;
pub mod launch;
pub mod loop_device;
pub mod lossless;
pub mod map_batch;
pub mod mapping;
pub mod measure;
pub mod memory;
pub mod nop_ring;
pub mod orphans;
mod own_name;
pub mod pace;
pub mod perf_event;
pub mod poll;
pub mod private_fd;
pub mod probe;
pub mod process_events;
pub mod process_exit;
pub mod ptrace;
pub mod same_file;
pub mod screen_guard;
pub mod seccomp;
pub mod select;
pub mod shared_lock;
pub mod side_band;
pub mod signal_watch;
pub mod signals;
pub mod socket;
pub mod stack;
pub mod starts;
pub mod startup;
pub mod syscalls;
pub mod thread_wake;
pub mod timed;
pub mod wait_ring;
