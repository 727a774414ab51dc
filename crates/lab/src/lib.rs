//! Measurements of commands and of the machine they run on.

pub mod experiments;
pub mod limits;
pub mod race;
