//! Experiments: one hypothesis each, swept over its axes, with the claims it judges.
//!
//! An experiment is one file and one line in [`EXPERIMENTS`]. It declares its hypothesis, the
//! parameters it varies, its controls, and its claims as data, each with the test that decides it:
//! a pure function of the cases. The runner orders, repeats, bounds and saves the cases, in the
//! same way for all experiments. Lists, help, the guide's table and the contract tests come from
//! the declarations.
//!
//! The one invariant: an experiment leaves nothing behind, however this process ends. Files have no
//! name, private file systems are not mounted on any directory, and processes end with their
//! parent. Items that must have a name lie in a directory that is noted first, so that the next run
//! removes what a killed one could not.
//!
//! The flow of `iotomy lab run`:
//!
//! 1. The axes' values make cases; those that make no sense are dropped, those that do not fit are
//!    skipped.
//! 2. The experiment sets up what its cases share. Rounds visit the open cases in random order;
//!    after each visit the record so far is saved in the user's state directory. The processes of
//!    `herd` and `accept` are created by fork (`sys::children`), share nothing with iotomy but
//!    words of memory, and end with it. `wait` distributes descriptors among the processes of a
//!    `sys::crew`, which it controls over sockets; `thread-each` has a crew of one. A C program makes the rounds of `files`;
//!    `build.rs` compiles it once per variant, and it is started from memory.
//! 3. Counts come from watched runs; the verb passes in the observer and the BPF program that
//!    counts wake-ups.
//! 4. Pure functions of the cases judge the claims. `report` renders the `record::Sweep`.
//!
//! With `--shard`, step 1 keeps the cases of one share, computed from the plan alone
//! (`harness/share.rs`), and step 4 is left to `iotomy lab merge` (`harness/merge.rs`).

mod alignment;
mod concurrency;
mod copy;
mod device;
mod files;
mod harness;
mod herd;
mod registry;
mod wait;

pub use device::mean_of_reads;
pub use files::{backend_program, backends as file_backends};
pub use harness::*;
pub use iotomy_ports::RunWatch;
pub use registry::{EXPERIMENTS, experiment};

#[cfg(test)]
mod tests;
