//! The CPUs that a run might use.

use serde::{Deserialize, Serialize};

/// How much CPU time a second the watched processes might get together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuCapacity {
    /// The least of the two below, in CPUs.
    pub cpus: f64,
    /// The number of CPUs that are online and on which at least one of their threads might run.
    pub affinity: u32,
    /// The CPUs that the quota of their control group, or of one above it, comes to; absent where
    /// there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<f64>,
    /// How often the group with the quota had to wait for the next period during the watch; absent where there is
    /// no quota, or its counts could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Throttled>,
}

/// Waits of a control group whose quota was used up (`cpu.stat`): of all its processes, watched or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Throttled {
    /// Periods in which one of its threads was to run.
    pub periods: u64,
    /// Of these, those in which the quota was used up.
    pub throttled: u64,
    /// How long its threads waited then, summed over the CPUs.
    pub ns: u64,
}
