//! The runs that the user keeps, and their comparison.
//!
//! Owns the store, an SQLite database in the user's data directory ([`Store`]), the index of a record
//! ([`measures()`]), and the comparison of two records ([`against()`]) or many ([`Store::trends`]). It
//! knows no screen and makes no record.
//!
//! The one invariant: a record is stored whole, as the bytes that `--json` would have written, and
//! everything else in the store can be rebuilt from it. A stored run survives the kill of a process
//! that stores another one: each run is a transaction, written ahead and synced. A damaged history
//! is set aside and never overwritten.

mod against;
mod aside;
mod error;
mod import;
mod machines;
mod migration;
mod packed;
mod place;
mod runs;
mod store;
mod trend;

pub use against::{Candidate, Earlier, against};
pub use aside::{Identity, set_aside};
pub use error::HistoryError;
pub use import::ImportedRun;
pub use iotomy_record::measures::{measures, subject};
pub use machines::KeptMachine;
pub use packed::PackedRun;
pub use place::store_file;
pub use runs::{Filter, Pick};
pub use store::Store;
pub use trend::Asked;
