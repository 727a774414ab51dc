//! The movers as `--list` shows them, from their own declarations.

use std::fmt::Write;

use anyhow::Result;
use iotomy_movers::{MOVERS, Mover, Probe};

use crate::pager;

/// Prints every mover to standard output.
///
/// # Errors
/// Standard output cannot be written to.
pub(super) fn print() -> Result<()> {
    let text: String = MOVERS.iter().map(|mover| entry(*mover)).collect();
    Ok(pager::print(&text)?)
}

/// The indent of the text about a mover.
const INDENT: usize = 18;
/// Columns a line has at most.
const WIDTH: usize = 100;

fn entry(mover: &dyn Mover) -> String {
    let declaration = mover.declaration();
    let mut text = format!("{:<1$}{2}\n", declaration.name, INDENT, declaration.summary);
    let state = match mover.probe() {
        Probe::Ready => "ready".to_owned(),
        Probe::Unsupported(reason) => format!("unsupported here: {reason}"),
    };
    let value = if declaration.by_reference {
        "by reference: later writes to the source can show through"
    } else {
        "by value"
    };
    for line in [format!("{state}; {value}"), format!("calls: {}", declaration.calls.join(" "))] {
        wrapped(&mut text, &line);
    }
    text
}

fn wrapped(text: &mut String, line: &str) {
    let mut column = WIDTH;
    for word in line.split(' ') {
        let length = word.chars().count();
        if column + 1 + length > WIDTH {
            if column < WIDTH {
                text.push('\n');
            }
            let _ = write!(text, "{:INDENT$}", "");
            column = INDENT;
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_at_spaces() {
        let mut text = String::new();
        wrapped(&mut text, &"word ".repeat(40));
        assert!(text.lines().count() > 2);
        assert!(
            text.lines().all(|line| line.len() <= WIDTH && line.starts_with("                  "))
        );
    }
}
