//! A raw record, as a bench makes rows of it.

use iotomy_record::Sweep;

/// A raw record that counts.
#[derive(Debug)]
pub struct Raw {
    /// Where it is in the run's folder.
    pub path: String,
    /// The record.
    pub sweep: Sweep,
}
