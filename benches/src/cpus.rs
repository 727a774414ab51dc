//! The CPU to which measured work is pinned.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Returns the last CPU that this process may use, because the first CPU handles most interrupts.
///
/// # Errors
/// When the affinity of this process cannot be read.
pub fn last() -> Result<usize> {
    let set = sched_getaffinity(None).context("cannot tell the CPUs of this process")?;
    (0..CpuSet::MAX_CPU).rev().find(|cpu| set.is_set(*cpu)).context("no CPU to run on")
}

/// Pins this thread to one CPU.
///
/// # Errors
/// When the CPU may not be used.
pub fn stay_on(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).with_context(|| format!("cannot stay on CPU {cpu}"))
}
