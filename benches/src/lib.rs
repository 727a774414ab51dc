//! The benches and their shared parts: child processes, random order, statistics, the storage of results, and the
//! documents made from stored results.
//!
//! A bench is a directory here with its declaration ([`bench::Bench`]) and a line in [`registry::BENCHES`]. One program
//! runs them all: `bench NAME`.
//!
//! The flow of `make bench`:
//!
//! 1. `bench all` runs the benches of the registry one after another, each in a separate process. Each writes its
//!    raw record (`record::Sweep`) and its tables into `results/DATE-MACHINE/BENCH`. Failed benches are listed at
//!    the end.
//! 2. [`summary::kept`] loads the records that count, each bench's `rows.rs` makes rows from them, and
//!    `summary::page` writes these rows on the page of the run.
//! 3. `summary::documents` writes the tables between marks in docs/ from the newest complete run. `bench summary`
//!    only does 2 and 3, and with `--check` reports differences.

pub mod bench;
pub mod child;
pub mod conditions;
pub mod cpus;
pub mod lanes;
pub mod options;
pub mod order;
pub mod programs;
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
mod d;
mod files;
mod floor;
mod live;
mod peers;
mod ports;
mod race;
mod report;
mod rings;
mod servers;
mod services;
mod trace;
mod wait;

pub use files::{READS, make_reads};
pub use wait::wait_peers_mio;
