//! Errors between a file and a record, each with the advice to print.

use std::io::{self, ErrorKind};

use rustix::io::Errno;

use super::trusted::Distrust;
use super::walk::ForeignLink;

/// Why a record could not be loaded or an output not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file could not be opened or read.
    #[error("cannot read the record {path}: {source}{hint}")]
    Read {
        /// The file, as given.
        path: String,
        /// The advice, with its separator; may be empty.
        hint: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The file is larger than any record.
    #[error(
        "cannot read the record {path}: it is above {limit_mib} MiB; check that it is a record"
    )]
    TooLarge {
        /// The file, as given.
        path: String,
        /// The bound.
        limit_mib: u64,
    },
    /// The file was read, and is not a record this version understands.
    #[error("{path}: {source}")]
    Record {
        /// The file, as given.
        path: String,
        /// The error in its content.
        source: RecordError,
    },
    /// An output could not be written; a file that was there before is as it was.
    #[error("cannot {operation} {path}: {source}{hint}")]
    Write {
        /// The operation.
        operation: &'static str,
        /// The output, resolved against its base directory.
        path: String,
        /// The advice, with its separator; may be empty.
        hint: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

/// An error in the content of a record.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordError {
    /// There is nothing in it.
    #[error("the record is empty; the run that writes it may have been cut short")]
    Empty,
    /// It ends before its last bracket.
    #[error(
        "the record ends too early, at line {line}, column {column}; copy it or record it \
        again"
    )]
    Cut {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// It is not JSON.
    #[error("not a record of --json: invalid JSON at line {line}, column {column}: {what}")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The parser's message.
        what: String,
    },
    /// It is JSON and not an iotomy record.
    #[error("not a record of --json: it is JSON without a \"schema\"")]
    NoSchema,
    /// It is a record of another kind.
    #[error("it is {article} record ({found}), not {wanted}")]
    OtherKind {
        /// The kind, with its article: `a race`.
        article: String,
        /// The whole schema.
        found: String,
        /// The expected kind of record, and the command that makes one.
        wanted: &'static str,
    },
    /// It is of a kind that no reader of records accepts.
    #[error(
        "it is {found}, not a record that trace, anatomy, race, copy, limits, lab run or d write \
         with --json"
    )]
    UnknownKind {
        /// The whole schema.
        found: String,
    },
    /// It is a record of another version.
    #[error(
        "it is an {found}, and this iotomy reads {known}; use the iotomy that wrote it, or a \
         newer one"
    )]
    OtherVersion {
        /// The record's schema.
        found: String,
        /// The schema this version reads.
        known: &'static str,
    },
    /// It is a raw record of a bench, which has the schema of a sweep and not its order.
    #[error(
        "it is the raw record of a bench ({experiment}), not of an experiment; README.md beside it has its \
         tables, and `make bench-summary` in iotomy's source reads it"
    )]
    OfABench {
        /// The name of the experiment.
        experiment: String,
    },
    /// A field is missing or of another type.
    #[error("at {path} (line {line}, column {column}): {what}")]
    Field {
        /// The path to it: `calls[3].bytes`.
        path: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The found and the expected value.
        what: String,
    },
    /// A field has a value that cannot be.
    #[error("at {path}: {what}")]
    Value {
        /// The path to it.
        path: String,
        /// The found and the expected value.
        what: String,
    },
    /// The record could not be put into JSON.
    #[error("cannot write the record: {what}")]
    Unwritable {
        /// The writer's message.
        what: String,
    },
}

/// The advice when a record could not be read.
pub(super) fn read_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        _ if error.get_ref().is_some_and(|inner| inner.is::<Distrust>()) => "",
        ErrorKind::NotFound => "; check the name, which is relative to the current directory",
        ErrorKind::PermissionDenied => "; a record made as root may belong to root",
        ErrorKind::IsADirectory => "; name the file in it",
        _ => "",
    }
}

/// The advice when an output could not be written.
pub(super) fn write_hint(error: &io::Error) -> &'static str {
    if error.get_ref().is_some_and(|inner| inner.is::<Distrust>()) {
        return "";
    }
    if error.get_ref().is_some_and(|inner| inner.is::<ForeignLink>()) {
        return "; name its target itself if that is intended";
    }
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; free some space, or write somewhere else"
        }
        ErrorKind::NotFound => "; create its directory first",
        ErrorKind::NotADirectory => "; a component of its path is a file",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "; write somewhere else, or to - for standard output"
        }
        ErrorKind::IsADirectory => "; name a file in it",
        _ if error.raw_os_error() == Some(Errno::BADF.raw_os_error()) => {
            "; it was closed, or is not open for writing"
        }
        _ => "",
    }
}
