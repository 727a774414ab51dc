//! Text from a record made safe to print.
//!
//! A record may come from anyone, and a file name may hold anything: whatever of it reaches a
//! terminal must not move the cursor, change colours, or reorder what stands beside it.

use std::fmt::Write as _;

/// `text` with every character that does something other than show a glyph written as an escape:
/// `\n`, `\t`, `\r`, else `\xNN` or `\u{NNNN}`. Without `unicode`, so is every character outside
/// ASCII. The result has no control character.
pub fn printable(text: &str, unicode: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if !acts(c) && (unicode || c.is_ascii()) => out.push(c),
            // Writing to a String cannot fail.
            c if u32::from(c) < 0x100 => _ = write!(out, "\\x{:02x}", u32::from(c)),
            c => _ = write!(out, "\\u{{{:x}}}", u32::from(c)),
        }
    }
    out
}

/// Whether a terminal or a reader would act on the character rather than show it: the controls,
/// and Unicode's invisible ones, which reorder or hide their neighbours.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn escapes_are_shown_and_not_sent() {
        assert_eq!(printable("a\x1b[31m\nb\u{9b}\x7f\0", true), r"a\x1b[31m\nb\x9b\x7f\x00");
        assert_eq!(printable("x\u{202e}gpj.exe", true), r"x\u{202e}gpj.exe");
        assert_eq!(printable("naïve – 文", true), "naïve – 文");
        assert_eq!(printable("naïve 文", false), r"na\xefve \u{6587}");
    }
}
