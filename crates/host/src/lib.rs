//! Facts about this machine: its identity, its free resources, and its file systems.
//!
//! It reads what the kernel reports and judges nothing. If a measurement cannot get something it
//! needs, that is a [`Skip`] with its reason.

pub mod file_systems;
pub mod folder;
mod machine;
pub mod room;
mod skip;
mod timestamp;

pub use machine::machine;
pub use skip::Skip;
pub use timestamp::rfc3339;
