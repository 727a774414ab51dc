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

/// Messages of the standard library for a text that is not a number, and their meaning.
const PARSERS: [(&str, &str); 5] = [
    (": invalid digit found in string", ": expected a whole number"),
    (": cannot parse integer from empty string", ": expected a whole number"),
    (": number too large to fit in target type", ": the number is too large"),
    (": number too small to fit in target type", ": the number is too small"),
    (": invalid float literal", ": expected a number"),
];

/// A message with what it says of numbers in our words.
pub(crate) fn plain(message: String) -> String {
    PARSERS.iter().fold(message, |text, (said, plain)| text.replacen(said, plain, 1))
}
