//! The benches, and what they have in common: children, order, statistics, how results are kept, and what
//! is made of what was kept.
//!
//! A bench is a folder here with its declaration ([`bench::Bench`]) and a line in
//! [`registry::BENCHES`]. One program runs them all: `bench NAME`.
//!
//! The flow of `make bench`:
//!
//! 1. `bench all` runs the benches of the registry one after another, each in a process of its own; each writes its raw
//!    record (`record::Sweep`) and its tables into `results/DATE-MACHINE/BENCH`. A failed one is named at the end.
//! 2. [`summary::kept`] loads the records that count, each bench's `rows.rs` makes rows of them, `summary::page` puts
//!    these on the page of the run.
//! 3. `summary::documents` writes the tables between marks in docs/ from the newest complete run. `bench summary` does
//!    2 and 3 alone, and with `--check` reports what differs.

pub mod bench;
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
