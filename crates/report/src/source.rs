//! The sources of a report of several records.

use iotomy_record::store::Record;

/// A record, and where it is from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The name of its file.
    pub name: &'a str,
    /// The record.
    pub record: &'a Record,
    /// The file's content.
    pub bytes: &'a [u8],
}
