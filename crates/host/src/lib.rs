//! Facts about this machine: its identity, its free resources, its file systems, its control groups, and what this
//! process may do on it.
//!
//! It reads what the kernel reports and judges nothing. If a measurement cannot get something it
//! needs, that is a [`Skip`] with its reason.

mod cgroups;
pub mod file_systems;
pub mod folder;
mod kernel_text;
mod locale;
mod machine;
pub mod privilege;
pub mod room;
mod skip;
mod timestamp;
pub mod title;

pub use cgroups::{Cgroup, CgroupError, Cgroups, CpuQuota, Throttling};
pub use kernel_text::kernel_text;
pub use locale::speaks_utf8;
pub use machine::{host_name, is_in_container, machine, named_machine, online_cpus};
pub use skip::Skip;
pub use timestamp::rfc3339;
