//! A raw record, the input for a bench's rows.

use iotomy_record::Sweep;

/// A raw record that counts.
#[derive(Debug)]
pub struct Raw {
    /// Its path relative to the run's directory.
    pub path: String,
    /// The record.
    pub sweep: Sweep,
}
