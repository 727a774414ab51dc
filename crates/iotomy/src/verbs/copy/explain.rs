//! The text of `--explain`, piece by piece as it becomes known; a saved record prints the same.

use std::io::Write as _;

use iotomy_record::{CopyPart, CopyRun};
use iotomy_report::{Style, copy_end, copy_outcome, copy_plan};

use crate::screen::OutputStyle;

/// The text before anything moves.
pub(super) fn plan(contract: &str, part: &CopyPart) {
    print(&copy_plan(contract, part, &style()));
}

/// The text of the result.
pub(super) fn outcome(part: &CopyPart) {
    print(&copy_outcome(part, &style()));
}

/// The text about the whole copy.
pub(super) fn end(record: &CopyRun) {
    print(&copy_end(record, &style()));
}

fn style() -> Style {
    OutputStyle::default().on(&std::io::stderr())
}

/// If standard error is closed, nothing can be reported.
fn print(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
