//! Texts of records where they would be taken for more than texts.
//!
//! All text written here goes through [`printable`]: no control character and nothing invisible is
//! left of a stranger's text in any form of a report.

use iotomy_record::printable;

/// In the text or a quoted attribute of HTML or SVG.
pub(crate) fn markup(text: &str) -> String {
    let text = printable(text, true);
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A field of RFC 4180. A spreadsheet would take a text that begins with `=`, `+`, `-` or `@` for a
/// formula and run it: it gets an apostrophe in front, as the spreadsheets themselves write one.
pub(crate) fn csv_field(text: &str) -> String {
    let mut text = printable(text, true);
    if text.trim_start().starts_with(['=', '+', '-', '@', '−', '＝', '＋', '－', '＠']) {
        text.insert(0, '\'');
    }
    if text.contains([',', ';', '"', '\'']) || text.starts_with(' ') || text.ends_with(' ') {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// In a line of Markdown: nothing in it begins a link, a picture, an emphasis, a cell or a tag.
pub(crate) fn markdown(text: &str) -> String {
    let text = printable(text, true);
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' | '$' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            // A round bracket is something behind a square one alone.
            '(' if out.ends_with(']') => out.push_str("\\("),
            // Viewers make links of texts that look like an address, also without brackets.
            ':' if chars.peek().is_some_and(|next| *next != ' ' && !next.is_ascii_digit()) => {
                out.push_str("&#58;");
            }
            '.' if out.len() >= 3
                && out.as_bytes()[out.len() - 3..].eq_ignore_ascii_case(b"www") =>
            {
                out.push_str("&#46;");
            }
            '@' => out.push_str("&#64;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_hostile_is_shown_and_does_nothing() {
        let name = "<img src=x onerror=\"alert(1)\">\x1b[31m";
        assert_eq!(markup(name), "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;\\x1b[31m");
        assert_eq!(csv_field("=1+1"), "\"'=1+1\"");
        assert_eq!(csv_field(" @SUM(A1)"), "\"' @SUM(A1)\"");
        assert_eq!(csv_field("a\r\nb\t\"c\""), "\"a\\r\\nb\\t\"\"c\"\"\"");
        assert_eq!(csv_field("plain"), "plain");
        assert_eq!(markdown("![x](http://y) | <b>"), "\\!\\[x\\]\\(http&#58;//y) \\| &lt;b&gt;");
        assert_eq!(markdown("Www.x mailto:a@b"), "Www&#46;x mailto&#58;a&#64;b");
        assert_eq!(markdown("at 10:20: connect() (first)"), "at 10:20: connect() (first)");
    }

    proptest! {
        #[test]
        fn no_text_gets_out_of_its_place(text: String) {
            prop_assert!(!markup(&text).contains(['<', '>', '"', '\'']));
            prop_assert!(markup(&text).chars().all(|c| !c.is_control()));
            let field = csv_field(&text);
            prop_assert!(!field.contains(['\n', '\r', '\t']));
            let inner = field.strip_prefix('"').map_or(field.as_str(), |rest| rest.strip_suffix('"').unwrap());
            prop_assert!(!inner.replace("\"\"", "").contains('"'));
            prop_assert!(!inner.starts_with(['=', '+', '-', '@']));
            prop_assert!(!markdown(&text).contains(['<', '>', '\n']));
        }
    }
}
