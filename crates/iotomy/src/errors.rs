//! How errors are printed.

use std::fmt;
use std::io::{self, Write};

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
    let _ = writeln!(io::stderr(), "iotomy: {}", shown(&one_line(error)));
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

/// The operation, then each cause that has not been printed yet: errors of libraries print their
/// source, and have it as a source.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = line + ": " + &cause;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::anyhow!("No such file").context("cannot read x: No such file; look");
        assert_eq!(one_line(&error), "cannot read x: No such file; look");
        let error = anyhow::anyhow!("No such file").context("cannot read x");
        assert_eq!(one_line(&error), "cannot read x: No such file");
    }
}
