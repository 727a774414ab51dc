//! The text of `--explain`, piece by piece as it becomes known; a saved record prints the same.

use iotomy_record::store::{OutputFile, StoreError};
use iotomy_record::{CopyPart, CopyRun};
use iotomy_report::{Style, copy_end, copy_outcome, copy_plan};

use crate::screen::OutputStyle;

/// The text before anything moves.
pub(super) fn plan(contract: &str, part: &CopyPart) -> Result<(), StoreError> {
    print(&copy_plan(contract, part, &style()))
}

/// The text of the result.
pub(super) fn outcome(part: &CopyPart) -> Result<(), StoreError> {
    print(&copy_outcome(part, &style()))
}

/// The text about the whole copy.
pub(super) fn end(record: &CopyRun) -> Result<(), StoreError> {
    print(&copy_end(record, &style()))
}

fn style() -> Style {
    OutputStyle::default().on(&std::io::stderr())
}

fn print(text: &str) -> Result<(), StoreError> {
    OutputFile::standard_error().put(text.as_bytes())
}
