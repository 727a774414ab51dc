//! A D program: its text to a tree, and the names that every program knows.

pub(crate) mod functions;
pub(crate) mod options;
#[cfg(test)]
pub(crate) mod print;
pub(crate) mod probes;
pub(crate) mod tree;
pub(crate) mod variables;

pub use options::Options;
pub use probes::{Probe, ProbePattern};
pub(crate) use variables::Variable;
pub use variables::{Holder, Member, Variable as KnownVariable};
