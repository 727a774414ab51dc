//! The directory of a data set, and the files of a record in it.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use arrow_schema::ArrowError;
use iotomy_record::store::{OutputFile, StoreError};
use iotomy_record::{lossless, printable};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::exported::Exported;
use crate::partition::{LONGEST, escaped};
use crate::table::Table;
use crate::tables::TABLES;

/// Why a record is not in the data set.
#[derive(Debug)]
pub enum ExportError {
    /// The name of its machine is too long for a directory.
    Name,
    /// A directory cannot be made.
    Folder(PathBuf, io::Error),
    /// A file cannot be written.
    File(StoreError),
    /// Its rows cannot be encoded, as files of this table.
    Encode(&'static str, String),
}

impl std::fmt::Display for ExportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name => write!(
                f,
                "the name of its machine is too long for a directory; give a shorter one with --machine"
            ),
            Self::Folder(path, error) => {
                let path = printable(&lossless(path.as_os_str().as_bytes()), true);
                write!(f, "cannot create the directory {path}: {error}")
            }
            Self::File(error) => error.fmt(f),
            Self::Encode(table, error) => write!(f, "cannot encode rows of {table}: {error}"),
        }
    }
}

impl std::error::Error for ExportError {}

impl ExportError {
    /// Whether the next record may do better.
    pub fn is_of_record(&self) -> bool {
        matches!(self, Self::Name | Self::Encode(..))
    }
}

/// A directory of tables.
#[derive(Debug)]
pub struct DataSet {
    folder: PathBuf,
}

impl DataSet {
    /// The data set in a directory, which need not exist.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The name of the file with the rows of a record in a table.
    pub fn file(&self, table: &str, of: &Exported) -> PathBuf {
        let date = format!("date={}", escaped(&of.date));
        let machine = format!("machine={}", escaped(&of.machine));
        let name = format!("{}.parquet", of.run);
        [table, &date, &machine, &name]
            .iter()
            .fold(self.folder.clone(), |path, part| path.join(part))
    }

    /// Writes the rows of a record, and returns their number. What was there of it is replaced by the same.
    ///
    /// # Errors
    /// The first file that cannot be written whole. The record is not in `runs` then, if it was not before.
    pub fn add(&self, of: &Exported) -> Result<u64, ExportError> {
        if of.machine.is_empty() || escaped(&of.machine).len() > LONGEST {
            return Err(ExportError::Name);
        }
        let mut count = 0;
        for table in TABLES {
            count += self.add_to(table, of)?;
        }
        Ok(count)
    }

    fn add_to(&self, table: &Table, of: &Exported) -> Result<u64, ExportError> {
        let failed = |error: String| ExportError::Encode(table.name, error);
        let Some((bytes, rows)) = encoded(table, of).map_err(|error| failed(error.to_string()))?
        else {
            return Ok(0);
        };
        let file = self.file(table.name, of);
        if let Some(folder) = file.parent() {
            let made = fs::create_dir_all(folder);
            made.map_err(|error| ExportError::Folder(folder.to_owned(), error))?;
        }
        OutputFile::write(&file, Path::new(""), &bytes).map_err(ExportError::File)?;
        Ok(rows)
    }
}

/// The rows of a record in a table, as a file, and their number; `None` without rows.
fn encoded(table: &Table, of: &Exported) -> Result<Option<(Vec<u8>, u64)>, ParquetError> {
    let level = ZstdLevel::try_new(1)?;
    let settings = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
    // Readers of Parquet need no schema of Arrow's own beside that of Parquet.
    let options =
        ArrowWriterOptions::new().with_properties(settings).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), table.schema(), options)?;
    let mut rows = 0;
    (table.batches)(of, &mut |batch| {
        rows += batch.num_rows() as u64;
        writer.write(batch).map_err(|error| ArrowError::ParquetError(error.to_string()))
    })?;
    match rows {
        0 => Ok(None),
        rows => Ok(Some((writer.into_inner()?, rows))),
    }
}
