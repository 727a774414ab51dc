//! A machine's floors and ceilings: the minimum time of the smallest operations, and the maximum
//! throughput.
//!
//! A limit is a line in its group's table with the function that measures it; limits that share a
//! setup share a file, and a file is a line in [`GROUPS`]. Help, lists, the guide's table and the
//! tests come from these declarations. This module owns the order of a run and the reuse of values
//! from an earlier one; [`kept`] stores them.
//!
//! The one invariant: a value is the median of many short batches. Each batch is long compared with
//! the clock's resolution and short compared with other activity on the machine, so that an
//! interrupt spoils one batch and not the value. A limit that cannot be measured is skipped with
//! its reason, and never gets a number.

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

pub use limit::{LimitDeclaration, Scope, Unit};
pub use plan::{LimitsPlan, Progress};
pub use registry::{GROUPS, Group, declaration, declarations};

#[cfg(test)]
mod tests;
