//! Loading records, and writing output files so that nothing is ever half-written.
//!
//! Everything between a file and a record: the size limit, the JSON, the schema, and the checks
//! beyond types. A record is a stranger's text: loading it gives a [`Record`] or an error that
//! names the place, and never a panic. Unknown fields are accepted, since formats grow by adding;
//! unknown versions are not.

mod anatomy;
mod another;
mod any;
mod attributes;
mod bounded;
mod copy;
mod d;
mod error;
mod fresh;
mod kinds;
mod limits;
mod output;
mod parse;
mod place;
mod race;
mod reading;
mod source;
mod sweep;
mod trusted;
mod unique;
mod user_folder;
mod walk;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use anatomy::{load_anatomy, parse_anatomy};
pub use another::{AnotherFile, put_new};
pub use any::{Record, RecordRef};
pub use attributes::mode_without_mask;
pub use copy::parse_copy;
pub use d::parse_d;
pub use error::{RecordError, StoreError};
pub use fresh::{NewFile, remove_own};
pub use kinds::KINDS;
pub use limits::parse_limits;
pub use output::{OutputFile, same_output};
pub use parse::parse_trace;
pub use place::{OpenPlace, Place, Slot};
pub use race::parse_race;
pub use sweep::parse_sweep;
pub use trusted::{Distrust, check_trusted, open_trusted, trusted_folder};
pub(crate) use unique::unique_keys;
pub use user_folder::user_folder;

use crate::{Limits, Race, Sweep, Trace, lossless, printable};

/// The largest record that is read, in bytes: more than any run can make, and less than would
/// exhaust a small machine.
pub const MAX_RECORD_BYTES: u64 = 1 << 30;

/// The most memory that is allocated for a record's text, in bytes: more than any run needs.
const MAX_BUILT_BYTES: u64 = 512 << 20;

/// Reads a record of any kind from `path`, or from standard input where `path` is `-`.
///
/// # Errors
/// When the file cannot be read, is above [`MAX_RECORD_BYTES`], or is not a whole record.
pub fn load(path: impl AsRef<Path>) -> Result<Record, StoreError> {
    load_by(path.as_ref(), parse_record)
}

/// As [`load`], and the bytes it was read from.
///
/// # Errors
/// As [`load`].
pub fn load_with_bytes(path: impl AsRef<Path>) -> Result<(Record, Vec<u8>), StoreError> {
    reading::load(path.as_ref(), parse_record)
}

/// Reads a record of any kind from the bytes of its JSON.
///
/// # Errors
/// When they are not a whole record; the error names the place.
pub fn parse_record(bytes: &[u8]) -> Result<Record, RecordError> {
    let schema = parse::schema(bytes)?;
    match parse::kind(&schema) {
        Some("trace") => parse_trace(bytes).map(|trace| Record::Trace(Box::new(trace))),
        Some("race") => parse_race(bytes).map(|race| Record::Race(Box::new(race))),
        Some("copy") => parse_copy(bytes).map(|copy| Record::Copy(Box::new(copy))),
        Some("d") => parse_d(bytes).map(|run| Record::D(Box::new(run))),
        Some("limits") => parse_limits(bytes).map(|limits| Record::Limits(Box::new(limits))),
        Some("sweep") => parse_sweep(bytes).map(|sweep| Record::Sweep(Box::new(sweep))),
        Some("anatomy") => parse_anatomy(bytes).map(|anatomy| Record::Anatomy(Box::new(anatomy))),
        _ => Err(RecordError::UnknownKind { found: parse::quoted(&schema) }),
    }
}

/// Reads a trace record from `path`, or from standard input where `path` is `-`.
///
/// # Errors
/// When the file cannot be read, is above [`MAX_RECORD_BYTES`], or is not a whole
/// `iotomy.trace/1`.
pub fn load_trace(path: impl AsRef<Path>) -> Result<Trace, StoreError> {
    load_by(path.as_ref(), parse_trace)
}

/// Reads a race record from `path`, or from standard input where `path` is `-`.
///
/// # Errors
/// When the file cannot be read, is above [`MAX_RECORD_BYTES`], or is not a whole
/// `iotomy.race/1`.
pub fn load_race(path: impl AsRef<Path>) -> Result<Race, StoreError> {
    load_by(path.as_ref(), parse_race)
}

/// Reads the record of a machine's limits from `path`, or from standard input where `path` is `-`.
///
/// # Errors
/// When the file cannot be read, is above [`MAX_RECORD_BYTES`], or is not a whole
/// `iotomy.limits/1`.
pub fn load_limits(path: impl AsRef<Path>) -> Result<Limits, StoreError> {
    load_by(path.as_ref(), parse_limits)
}

/// Reads the record of an experiment from `path`, or from standard input where `path` is `-`.
///
/// # Errors
/// When the file cannot be read, is above [`MAX_RECORD_BYTES`], or is not a whole
/// `iotomy.sweep/1`.
pub fn load_sweep(path: impl AsRef<Path>) -> Result<Sweep, StoreError> {
    load_by(path.as_ref(), parse_sweep)
}

fn load_by<R>(
    path: &Path,
    parse: impl Fn(&[u8]) -> Result<R, RecordError>,
) -> Result<R, StoreError> {
    reading::load(path, parse).map(|(record, _)| record)
}

/// As [`load_limits`], of a file that only this user or root can have written.
///
/// # Errors
/// As [`load_limits`]; it is not a regular file, or another user could have written it.
pub fn load_trusted_limits(path: &Path) -> Result<Limits, StoreError> {
    reading::load_trusted(path, parse_limits)
}

/// As [`load_sweep`], of a file that only this user or root can have written.
///
/// # Errors
/// As [`load_sweep`]; it is not a regular file, or another user could have written it.
pub fn load_trusted_sweep(path: &Path) -> Result<Sweep, StoreError> {
    reading::load_trusted(path, parse_sweep)
}

/// A path as messages show it, with `dash` for `-`.
fn shown(path: &Path, dash: &str) -> String {
    if path == Path::new("-") {
        dash.to_string()
    } else {
        printable(&lossless(path.as_os_str().as_bytes()), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_no_known_kind_is_told_what_is_taken() {
        for schema in ["iotomy.doctor/1", "iotomy.tra\u{1b}ce", "something"] {
            let json = serde_json::json!({ "schema": schema }).to_string();
            let text = parse_record(json.as_bytes()).unwrap_err().to_string();
            assert!(text.starts_with("it is ") && !text.contains('\x1b'), "{text}");
            for (kind, verb) in KINDS.iter().map(|kind| (*kind, kind.replace("sweep", "lab run"))) {
                assert!(text.contains(&verb), "{kind}: {text}");
            }
        }
        let newer = parse_record(br#"{"schema": "iotomy.trace/2"}"#).unwrap_err().to_string();
        assert!(newer.contains("this iotomy reads iotomy.trace/1"), "{newer}");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let absent = load_trace("/nope/x.json").unwrap_err().to_string();
        assert!(
            absent.starts_with("cannot read the record /nope/x.json: No such file"),
            "{absent}"
        );
        let folder = load_trace("/").unwrap_err().to_string();
        assert!(folder.contains("Is a directory"), "{folder}");
        let empty = load_trace("/dev/null").unwrap_err().to_string();
        assert!(empty.starts_with("/dev/null: the record is empty"), "{empty}");
    }
}
