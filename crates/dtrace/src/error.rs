//! What is wrong with a text, and where.

use std::fmt;
use std::ops::Range;

/// A part of a text, in bytes.
pub type Span = Range<usize>;

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The part of the text that is wrong.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What to write, put behind the underlined part; empty where there is no advice.
    pub advice: String,
}

/// Characters of a line that are shown on either side of the place.
const AROUND: usize = 60;

impl Problem {
    pub(crate) fn new(span: Span, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { span, message: message.into(), advice: advice.into() }
    }

    /// The message, then the line of `text` with the place underlined.
    pub fn shown_in(&self, text: &str) -> String {
        let number = match text.contains('\n') {
            true => format!(" (line {})", line_and_column(text, self.span.start).0),
            false => String::new(),
        };
        format!("{}{number}\n{}", self.message, self.underlined(text))
    }

    /// The same with the file's name, the line and the column before the message, as compilers write
    /// them.
    pub fn shown_at(&self, file: &str, text: &str) -> String {
        let (line, column) = line_and_column(text, self.span.start);
        format!("{file}:{line}:{column}: {}\n{}", self.message, self.underlined(text))
    }

    fn underlined(&self, text: &str) -> String {
        let start = floor(text, self.span.start);
        let end = floor(text, self.span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let before: Vec<char> = text[line_start..start].chars().collect();
        let hidden = before.len().saturating_sub(AROUND);
        let marked = text[start..end.min(line_end).max(start)].chars().count().clamp(1, AROUND);
        let behind = &text[start..line_end];
        let rest = behind.chars().count() > marked + AROUND;
        let mut line = String::from(if hidden > 0 { "…" } else { "" });
        line.extend(before[hidden..].iter().copied().map(visible));
        line.extend(behind.chars().take(marked + AROUND).map(visible));
        line.push_str(if rest { "…" } else { "" });
        let indent = before.len() - hidden + usize::from(hidden > 0);
        let advice = if self.advice.is_empty() { "" } else { " " };
        format!(
            "    {}\n    {}{}{advice}{}",
            line.trim_end(),
            " ".repeat(indent),
            "^".repeat(marked),
            self.advice
        )
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.advice.is_empty() {
            true => Ok(()),
            false => write!(f, "; {}", self.advice),
        }
    }
}

impl std::error::Error for Problem {}

fn visible(one: char) -> char {
    match one {
        '\t' => ' ',
        one if one.is_control() => '\u{fffd}',
        one => one,
    }
}

/// The line and the column of a place, both from 1 on.
pub(crate) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let at = floor(text, at);
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    (text[..at].matches('\n').count() + 1, text[start..at].chars().count() + 1)
}

/// The nearest boundary of a character at or before a place.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_underlined_in_its_line() {
        let text = "call == 1 &&\n\tbyte < 512";
        let problem = Problem::new(14..18, "unknown variable `byte`", "did you mean `bytes`?");
        assert_eq!(
            problem.shown_in(text),
            "unknown variable `byte` (line 2)\n     byte < 512\n     ^^^^ did you mean `bytes`?"
        );
    }

    #[test]
    fn the_end_of_a_text_is_a_place() {
        let problem = Problem::new(4..4, "expected a value", "");
        assert_eq!(problem.shown_in("1 +"), "expected a value\n    1 +\n       ^");
        assert_eq!(problem.shown_in(""), "expected a value\n    \n    ^");
    }

    #[test]
    fn of_a_long_line_the_part_around_the_place_is_shown() {
        let text = "é".repeat(200) + "x" + &"y".repeat(200);
        let shown = Problem::new(400..401, "no", "").shown_in(&text);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], format!("    …{}x{}…", "é".repeat(AROUND), "y".repeat(AROUND)));
        assert_eq!(lines[2].chars().count(), 4 + 1 + AROUND + 1);
    }

    #[test]
    fn what_would_move_the_cursor_is_not_printed() {
        let shown = Problem::new(1..2, "no", "").shown_in("\u{1b}[2J\r");
        assert!(!shown.contains('\u{1b}') && !shown.contains('\r'), "{shown:?}");
    }
}
