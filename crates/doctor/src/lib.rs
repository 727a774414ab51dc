//! What iotomy can do on this machine, found by trying and never from a version.
//!
//! A group is a file and a line in [`GROUPS`]; a check is a line in its group's table, with the
//! function that tries it. This crate owns the tables and the wording of an outcome; the layout of
//! a list, and the consequences for a command, belong to the command.
//!
//! The one invariant: a trial leaves nothing behind, neither a file, a mount, a process, a program
//! in the kernel nor a changed limit. An effect that cannot be undone is confined to a child
//! process that exits.

mod check;
mod engines;
mod experiments;
mod files;
mod limits;
mod memory;
mod processor;
mod registry;
#[cfg(test)]
mod tests;
mod watching;

pub use check::{Check, Context, Group, Outcome};
pub use registry::{GROUPS, try_all};
