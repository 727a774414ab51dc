//! The benches, and what they have in common: children, order, statistics, how results are kept, and what
//! is made of what was kept.
//!
//! A bench is a folder here with its declaration ([`registry::Bench`]) and a line in
//! [`registry::BENCHES`]. One program runs them all: `bench NAME`.

pub mod child;
pub mod conditions;
pub mod cpus;
pub mod lanes;
pub mod options;
pub mod order;
pub mod record;
pub mod registry;
pub mod results;
pub mod run;
pub mod scratch;
pub mod session;
pub mod stats;
pub mod summary;
pub mod tables;
pub mod talker;
pub mod targets;

mod anatomy;
mod copy;
mod files;
mod live;
mod race;
mod report;
mod trace;
mod wait;

pub use files::{READS, make_reads};
pub use wait::wait_peers_mio;
