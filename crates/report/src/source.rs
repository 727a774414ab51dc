//! What reports of several records are made of.

use iotomy_record::store::Record;

/// A record, and where it is from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The name of its file.
    pub name: &'a str,
    /// What it holds.
    pub record: &'a Record,
    /// The file's content.
    pub bytes: &'a [u8],
}
