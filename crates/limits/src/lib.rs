//! A machine's floors and ceilings: what the smallest things cost at least, and how many bytes move
//! at most.
//!
//! A limit is a line in its group's table with the function that measures it; limits that share a
//! set-up share a file, and a file is a line in [`GROUPS`]. Help, lists, the guide's table and the
//! tests come from these declarations. This module owns the order of a run and what is taken from an
//! earlier one; where that is kept is the business of [`kept`].
//!
//! The one invariant: a figure is the median of many short batches, each long compared with the
//! clock's resolution and short compared with other activity of the machine, so that an interrupt
//! spoils one batch and not the figure. A limit that cannot be measured is skipped with its reason
//! and never becomes a number.

mod calls;
mod channels;
mod cpus;
pub mod kept;
mod limit;
mod memory;
mod page_cache;
mod pages;
mod plan;
mod registry;
mod rings;
mod sampling;
mod starts;
mod storage;
mod storage_under_test;
mod wakes;

pub use limit::{Declaration, Scope, Unit};
pub use plan::{Plan, Progress};
pub use registry::{GROUPS, Group, declaration, declarations};

#[cfg(test)]
mod tests;
