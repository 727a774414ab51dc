//! The runs that the user asked to keep, and what they say of one another.
//!
//! Owns the store, an SQLite database under the user's data folder ([`Store`]), the one file that
//! configures it ([`Config`]), what of a record is indexed ([`measures()`]), and what two records
//! ([`against()`]) or many ([`Store::trend`]) say together. It knows no screen and makes no record.
//!
//! The one invariant: a record is stored whole, as the bytes that `--json` would have written, and
//! everything else in the store can be rebuilt from it. A stored run survives the kill of a process
//! that stores another one: each run is a transaction, written ahead and synced. A damaged history
//! is set aside and never overwritten.

mod against;
mod aside;
mod config;
mod error;
mod measures;
mod place;
mod runs;
mod store;
mod trend;

pub use against::{Candidate, Earlier, against};
pub use aside::{Identity, set_aside};
pub use config::{Config, ConfigError};
pub use error::HistoryError;
pub use measures::{measures, subject};
pub use place::{config_file, store_file};
pub use runs::{Filter, Pick};
pub use store::Store;
