//! The machine a record was made on.

use serde::{Deserialize, Serialize};

/// The facts that a reader needs before comparing this machine's numbers with another's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Machine {
    /// Kernel name, release and architecture.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Logical processors online.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The hypervisor or container engine, or `none`.
    pub virtualization: String,
    /// The processor's weaknesses that the kernel works around, each with its mitigation.
    pub mitigations: String,
    /// The kernel's current clock source.
    pub clock: String,
    /// Its name among other machines: that of the host, or the one that the user gave it. Empty in
    /// records that do not name it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}
