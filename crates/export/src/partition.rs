//! The directories of a data set: `date=2026-11-28/machine=NAME`, as Hive has them.

use std::fmt::Write as _;

/// The longest name of a directory, in bytes.
pub(crate) const LONGEST: usize = 255 - "machine=".len();

/// A value in a name of a directory, as Hive escapes it: control characters and those that mean something in paths,
/// patterns and partitions are `%XX`.
pub fn escaped(value: &str) -> String {
    let mut name = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '"'
            | '#'
            | '%'
            | '\''
            | '*'
            | '/'
            | ':'
            | '='
            | '?'
            | '\\'
            | '{'
            | '}'
            | '['
            | ']'
            | '^'
            | '<'
            | '>'
            | '|'
            | '&'
            | '+'
            | ' '
            | '\0'..='\x1f'
            | '\x7f' => {
                // Writing to a String cannot fail.
                _ = write!(name, "%{:02X}", u32::from(c));
            }
            c => name.push(c),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_leads_elsewhere_or_is_taken_for_a_pattern() {
        for (value, name) in [
            ("web1", "web1"),
            ("..", ".."),
            ("a/../b", "a%2F..%2Fb"),
            ("100%", "100%25"),
            ("%2F", "%252F"),
            ("x=1*?[y]\n", "x%3D1%2A%3F%5By%5D%0A"),
            ("Rechner-Süd", "Rechner-Süd"),
        ] {
            assert_eq!(escaped(value), name);
        }
    }
}
