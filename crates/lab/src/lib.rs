//! Experiments: one hypothesis each, swept over its axes, with the claims it judges.
//!
//! An experiment is one file and one line in [`EXPERIMENTS`]. It declares what it expects, what it
//! varies, what it keeps the same, and its claims as data, each with the test that decides it: a pure
//! function of the cases. How cases are ordered, repeated, bounded and kept is the runner's business,
//! the same for all; lists, help, the guide's table and the contract tests come from the
//! declarations.
//!
//! The one invariant: an experiment leaves nothing behind, however this process ends. Files have no
//! name, its own file systems are mounted on no directory, and processes end with their parent.
//! Files that need a name lie in a directory that is noted first, so that the next run removes what
//! a killed one could not.
//!
//! The flow of `iotomy lab run`:
//!
//! 1. The axes' values make cases; those that make no sense are dropped, those that do not fit are skipped.
//! 2. The experiment sets up what its cases share. Rounds visit the open cases in random order; after each visit the
//!    record so far is kept in the user's state folder. The processes of `herd` and `accept` are made by fork
//!    (`sys::children`), share nothing with iotomy but words of memory, and end with it; those among which `wait` shares
//!    out descriptors are a `sys::crew`, spoken to over sockets. The rounds of `files` are made by a C program,
//!    compiled by `build.rs` once per variant and started from memory.
//! 3. Counts come from watched runs; the observer, and the BPF program that counts wake-ups, are handed in by the verb.
//! 4. Claims are judged by pure functions of the cases. `report` renders the `record::Sweep`.

mod alignment;
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
pub use registry::{EXPERIMENTS, experiment};

#[cfg(test)]
mod tests;
