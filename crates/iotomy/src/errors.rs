//! How errors are printed.

use std::io::{self, Write};

use crate::screen::shown;

/// The exit status when something could not be run.
pub(crate) const COULD_NOT_RUN: u8 = 2;

/// Prints an error in one line, whatever names it contains. If standard error is closed, nothing
/// can be reported.
pub(crate) fn print_error(error: &anyhow::Error) {
    let _ = writeln!(io::stderr(), "iotomy: {}", shown(&one_line(error)));
}

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
