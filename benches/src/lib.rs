//! What the benches have in common: children, order, statistics, how results are kept, and what is
//! made of what was kept.

pub mod child;
pub mod conditions;
pub mod lanes;
pub mod options;
pub mod order;
pub mod record;
pub mod registry;
pub mod results;
pub mod run;
pub mod session;
pub mod stats;
pub mod summary;
pub mod tables;
pub mod targets;
