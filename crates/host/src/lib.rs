//! Facts of this machine: what it is, what is free of it, and the file systems it has.
//!
//! It reads what the kernel tells and judges nothing. What a measurement needs and cannot have is a
//! [`Skip`] with its reason.

pub mod file_systems;
pub mod folder;
mod machine;
pub mod room;
mod skip;
mod timestamp;

pub use machine::machine;
pub use skip::Skip;
pub use timestamp::rfc3339;
