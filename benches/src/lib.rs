//! What the benches have in common: children, order, statistics, and how results are kept.

pub mod child;
pub mod order;
pub mod record;
pub mod run;
pub mod session;
pub mod stats;
pub mod tables;
