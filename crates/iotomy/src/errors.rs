//! How errors are printed.

use std::fmt;
use std::io::{self, Write};

use iotomy_record::one_line;

use crate::screen::{shown, shown_lines};

/// The exit status when something could not be run.
pub(crate) const COULD_NOT_RUN: u8 = 2;

/// Prints an error in one line, whatever names it contains. If standard error is closed, nothing
/// can be reported.
pub(crate) fn print_error(error: &anyhow::Error) {
    if let Some(InText(lines)) = error.downcast_ref() {
        let _ = writeln!(io::stderr(), "iotomy: {}", shown_lines(lines));
        return;
    }
    let _ = writeln!(io::stderr(), "iotomy: {}", shown(&one_line(error.as_ref())));
}

/// A mistake in a text that the user wrote: lines that show its place.
#[derive(Debug)]
pub(crate) struct InText(pub(crate) String);

impl fmt::Display for InText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InText {}
