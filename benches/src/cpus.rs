//! The CPU that what is measured stays on.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The last that this process may use: the first takes most interrupts.
///
/// # Errors
/// When nobody can tell.
pub fn last() -> Result<usize> {
    let set = sched_getaffinity(None).context("cannot tell the CPUs of this process")?;
    (0..CpuSet::MAX_CPU).rev().find(|cpu| set.is_set(*cpu)).context("no CPU to run on")
}

/// Keeps this thread on one.
///
/// # Errors
/// When it may not be used.
pub fn stay_on(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).with_context(|| format!("cannot stay on CPU {cpu}"))
}
