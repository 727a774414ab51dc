//! A run on its way into the history: its record, compressed, and what is indexed of it.
//!
//! The one invariant is the bound on memory: of a record there is the compressed text and the index, and one more
//! form at a time. That is the record while the index is made of it, and then its text.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use iotomy_record::Measure;
use iotomy_record::label::label;
use iotomy_record::measures::indexed;
use iotomy_record::store::{MAX_RECORD_BYTES, Record, RecordError, RecordRef};

use crate::{HistoryError, subject};

/// The zlib level with which records are compressed: its default.
const LEVEL: u32 = 6;

/// A run that can be [kept](crate::Store::keep_packed).
#[derive(Debug)]
pub struct PackedRun {
    pub(crate) index: RunIndex,
    /// The length of the record's text.
    pub(crate) bytes: u64,
    /// The text, compressed.
    pub(crate) packed: Vec<u8>,
}

/// The columns of a run that follow from its record.
#[derive(Debug)]
pub(crate) struct RunIndex {
    pub(crate) schema: &'static str,
    pub(crate) started: String,
    pub(crate) subject: String,
    pub(crate) kernel: String,
    pub(crate) hardware: String,
    pub(crate) machine: String,
    pub(crate) measures: Vec<Measure>,
}

impl PackedRun {
    /// Of a record, as the text that `--json` would write.
    ///
    /// # Errors
    /// It has content that no record may have.
    pub fn from_record(record: RecordRef<'_>) -> Result<Self, HistoryError> {
        let mut to = Packer::new();
        record.write_json(&mut to)?;
        let (packed, bytes) = to.finish()?;
        Ok(Self { index: RunIndex::from_record(record), bytes, packed })
    }

    /// Of a record and the text that it was read from, which is kept as it is.
    ///
    /// # Errors
    /// None that depends on the record.
    pub fn from_text(record: Record, json: Vec<u8>) -> Result<Self, HistoryError> {
        let index = RunIndex::from_record(record.as_ref());
        drop(record);
        let mut to = Packer::new();
        to.write_all(&json).map_err(unwritable)?;
        let (packed, bytes) = to.finish()?;
        Ok(Self { index, bytes, packed })
    }
}

impl PackedRun {
    /// The same, of the machine of this name.
    #[must_use]
    pub fn on_machine(mut self, name: &str) -> Self {
        self.index.machine = label(name);
        self
    }
}

impl RunIndex {
    fn from_record(record: RecordRef<'_>) -> Self {
        let machine = record.machine();
        Self {
            schema: record.schema(),
            started: record.started().to_owned(),
            subject: subject(record),
            kernel: label(&machine.kernel),
            hardware: label(&machine.hardware()),
            machine: label(&machine.name),
            measures: indexed(record),
        }
    }
}

/// Compresses what is written to it, and counts it.
struct Packer {
    to: ZlibEncoder<Vec<u8>>,
    bytes: u64,
}

impl Packer {
    fn new() -> Self {
        Self { to: ZlibEncoder::new(Vec::new(), Compression::new(LEVEL)), bytes: 0 }
    }

    fn finish(self) -> Result<(Vec<u8>, u64), HistoryError> {
        Ok((self.to.finish().map_err(unwritable)?, self.bytes))
    }
}

impl Write for Packer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn unwritable(error: io::Error) -> HistoryError {
    RecordError::Unwritable { what: error.to_string() }.into()
}

/// The bytes of a record as they were before they were packed.
pub(crate) fn unpacked(packed: &[u8]) -> Result<Vec<u8>, String> {
    let limit = usize::try_from(MAX_RECORD_BYTES).unwrap_or(usize::MAX);
    miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, limit)
        .map_err(|error| format!("the kept record is damaged ({error})"))
}
