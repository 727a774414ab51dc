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
}
