//! Records as Parquet data sets: `iotomy-export`, which `iotomy export` starts.
//!
//! A program of its own, because the crates of Arrow are as large as the command. A [`Table`] is one file in `tables`
//! and one line in [`TABLES`]: its columns, each with its type and meaning, and its rows in a record. Columns of
//! statistics follow from their declarations in `iotomy_record`. [`DataSet`] writes the rows of a record.
//!
//! The one invariant: a file has the rows of one record in one table, is named by the record's hash, and takes its name
//! when it is whole; the row in `runs` comes last. So another export of a record changes nothing, and whatever ends an
//! export, a record in `runs` is in all tables.

mod arrays;
mod column;
mod data_set;
mod exported;
mod partition;
mod sources;
mod table;
mod tables;

pub use column::{ColumnFacts, Type};
pub use data_set::{DataSet, ExportError};
pub use exported::Exported;
pub use partition::escaped;
pub use sources::{Source, sources};
pub use table::Table;
pub use tables::TABLES;
