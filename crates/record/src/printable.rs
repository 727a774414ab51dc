//! Text from a record made safe to print.
//!
//! A record may come from anyone, and a file name may contain anything: printed text must not move
//! the cursor, change colours, or reorder its surroundings.

use std::error::Error;
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
            c if !is_control(c) && (unicode || c.is_ascii()) => out.push(c),
            // Writing to a String cannot fail.
            c if u32::from(c) < 0x100 => _ = write!(out, "\\x{:02x}", u32::from(c)),
            c => _ = write!(out, "\\u{{{:x}}}", u32::from(c)),
        }
    }
    out
}

/// A sentence of ours, with names in it, made safe to print as by [`printable`]. Without `unicode` our own
/// signs are written in ASCII, and characters of names as escapes.
pub fn message(text: &str, unicode: bool) -> String {
    if unicode {
        return printable(text, true);
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match ascii_sign(c) {
            Some(sign) => plain.push_str(sign),
            None => plain.push(c),
        }
    }
    printable(&plain, false)
}

/// As [`message`], for a text of several lines: only line ends stay control characters.
pub fn lines(text: &str, unicode: bool) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| message(line, unicode)).collect();
    lines.join("\n")
}

/// An error in a line, not yet made safe to print: the operation, then each cause that has not been named yet. Errors of
/// libraries print their source, and have it as a source.
pub fn one_line(error: &(dyn Error + 'static)) -> String {
    let mut line = String::new();
    for cause in std::iter::successors(Some(error), |&error| error.source()) {
        let cause = cause.to_string();
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = line + ": " + &cause;
        }
    }
    line
}

/// A sign that our own texts use, as ASCII writes it.
pub fn ascii_sign(c: char) -> Option<&'static str> {
    Some(match c {
        '·' => "|",
        '—' | '–' | '−' => "-",
        'µ' => "u",
        '…' => "...",
        '×' => "x",
        '÷' => "/",
        'Δ' => "d",
        '→' => "->",
        '←' => "<-",
        '↑' => "up",
        '↓' => "down",
        '›' => ">",
        '∞' => "inf",
        '±' => "+-",
        '²' => "^2",
        _ => return None,
    })
}

/// Whether a terminal or a reader would act on the character rather than show it: the controls,
/// and Unicode's invisible ones, which reorder or hide their neighbours.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{ffa0}' | '\u{1d173}'..='\u{1d17a}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::fmt;

    use super::{lines, message, one_line, printable};

    #[test]
    fn escapes_are_shown_and_not_sent() {
        assert_eq!(printable("a\x1b[31m\nb\u{9b}\x7f\0", true), r"a\x1b[31m\nb\x9b\x7f\x00");
        assert_eq!(printable("x\u{202e}gpj.exe", true), r"x\u{202e}gpj.exe");
        assert_eq!(printable("naïve – 文", true), "naïve – 文");
        assert_eq!(printable("naïve 文", false), r"na\xefve \u{6587}");
    }

    #[test]
    fn signs_are_written_in_ascii_and_names_as_escapes() {
        assert_eq!(message("5 µs · é\u{9b}…", true), r"5 µs · é\x9b…");
        assert_eq!(message("5 µs · é\u{9b}…", false), r"5 us | \xe9\x9b...");
        assert_eq!(lines("a\x1b\n\tb…\n", false), "a\\x1b\n\\tb...\n");
    }

    #[test]
    fn what_reorders_hides_or_takes_no_room_is_escaped() {
        let hidden = "\u{80}\u{85}\u{9b}\u{9f}\u{7f}\u{ad}\u{34f}\u{61c}\u{115f}\u{180e}\u{200b}\u{200d}\
                      \u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{3164}\u{feff}\
                      \u{ffa0}\u{fffb}\u{e0041}";
        assert!(printable(hidden, true).is_ascii(), "{}", printable(hidden, true));
    }

    #[derive(Debug)]
    struct Failure(&'static str, Option<Box<Self>>);

    impl fmt::Display for Failure {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Failure {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self.1.as_deref()?)
        }
    }

    #[test]
    fn a_cause_is_named_once() {
        let line = |text| one_line(&Failure(text, Some(Box::new(Failure("No such file", None)))));
        assert_eq!(line("cannot read x: No such file; look"), "cannot read x: No such file; look");
        assert_eq!(line("cannot read x"), "cannot read x: No such file");
    }
}
