//! Lines of text within a width, with or without colour, in Unicode or ASCII.
//!
//! The only exit for every line: [`Page::line`] converts our own signs to ASCII if requested and
//! cuts lines that are too wide. Widths are columns of a terminal, not characters or bytes.

use iotomy_record::{ascii_sign, printable};
use unicode_width::UnicodeWidthChar;

use crate::Style;

/// The style of a piece of text where there is colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ink {
    /// As it is.
    #[default]
    Plain,
    /// The subject of the next lines.
    Bold,
    /// Heads, hints.
    Dim,
    /// An error.
    Red,
    /// A warning.
    Yellow,
    /// A remedy.
    Green,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Red => "\x1b[1;31m",
            Self::Yellow => "\x1b[33m",
            Self::Green => "\x1b[32m",
        }
    }
}

/// Text being laid out.
pub(crate) struct Page<'a> {
    style: &'a Style,
    text: String,
}

impl<'a> Page<'a> {
    pub(crate) fn new(style: &'a Style) -> Self {
        Self { style, text: String::new() }
    }

    /// Columns a line may take.
    pub(crate) fn width(&self) -> usize {
        self.style.width.max(20)
    }

    /// Columns a line of a table may take, which is harder to read where it is cut than where it is long.
    pub(crate) fn table_width(&self) -> usize {
        self.width().max(self.style.table_width)
    }

    /// The sign for something left out.
    pub(crate) fn ellipsis(&self) -> &'static str {
        if self.style.unicode { "…" } else { "..." }
    }

    pub(crate) fn unicode(&self) -> bool {
        self.style.unicode
    }

    /// The sign before a figure that is a bound.
    pub(crate) fn at_most(&self) -> &'static str {
        if self.style.unicode { "≤ " } else { "<= " }
    }

    /// A text of the record, safe to print, its end left out where it is above `width`: for titles of processes,
    /// whose beginnings tell them apart.
    pub(crate) fn front(&self, text: &str, width: usize) -> String {
        let head: String = text.chars().take(4 * (width + 1)).collect();
        let safe = printable(&head, self.style.unicode);
        if columns(&safe) <= width { safe } else { cut(&safe, width, self.ellipsis()) }
    }

    /// A text of the record, safe to print, its middle left out where it is above `width`.
    pub(crate) fn name(&self, text: &str, width: usize) -> String {
        // Four characters of input give at least one column; the rest cannot be seen anyway.
        let few = 4 * (width + 1);
        let safe = if text.len() > 16 * few {
            let head: String = text.chars().take(few).collect();
            let tail: Vec<char> = text.chars().rev().take(few).collect();
            printable(&(head + &tail.iter().rev().collect::<String>()), self.style.unicode)
        } else {
            printable(text, self.style.unicode)
        };
        elide(&safe, width, self.ellipsis())
    }

    /// A sentence of the record's, most likely our own words: our signs have their ASCII, all else is
    /// as in a name.
    pub(crate) fn sentence(&self, text: &str) -> String {
        /// Columns far above any sentence of ours.
        const WIDEST: usize = 2_000;
        if self.style.unicode {
            return self.name(text, WIDEST);
        }
        let put = |c: char| ascii_sign(c).map_or_else(|| c.to_string(), str::to_owned);
        // The rest is cut in any case.
        let text: String = text.chars().take(16 * WIDEST).map(put).collect();
        self.name(&text, WIDEST)
    }

    /// An empty one of the same style.
    pub(crate) fn another(&self) -> Page<'a> {
        Page::new(self.style)
    }

    /// A line of [`another`](Page::another) page.
    pub(crate) fn put(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// One line of pieces, cut where it would be too wide.
    pub(crate) fn line(&mut self, pieces: &[(Ink, &str)]) {
        let mut room = self.table_width();
        let mut line = String::new();
        for (ink, piece) in pieces {
            let piece = if self.style.unicode { piece.to_string() } else { ascii(piece) };
            let cut =
                if columns(&piece) > room { cut(&piece, room, self.ellipsis()) } else { piece };
            room -= columns(&cut);
            let shown = cut.trim_end();
            if self.style.color && *ink != Ink::Plain && !shown.is_empty() {
                line += ink.code();
                line += shown;
                line += "\x1b[0m";
                line += &cut[shown.len()..];
            } else {
                line += &cut;
            }
        }
        self.text += line.trim_end();
        self.text.push('\n');
    }

    /// A text in as many lines as it needs: the first behind `lead`, the others indented alike.
    pub(crate) fn wrapped(&mut self, lead: &[(Ink, &str)], ink: Ink, text: &str) {
        let indent: usize = lead.iter().map(|(_, text)| columns(text)).sum();
        // A lead that leaves no room gets lines of text under it instead.
        let hang = indent.min(self.width() / 2);
        let lines = wrap(text, self.width().saturating_sub(indent), self.width() - hang);
        self.lines(lead, ink, &lines, hang);
    }

    /// As [`Page::wrapped`], for a list: all lines begin in the same column, however far to the right.
    pub(crate) fn hanging(&mut self, lead: &[(Ink, &str)], ink: Ink, text: &str) {
        let indent: usize = lead.iter().map(|(_, text)| columns(text)).sum();
        let room = self.width().saturating_sub(indent);
        let mut lines = wrap(text, room, room);
        // A word that no line has room for begins where it stands.
        if lines.len() > 1 && lines[0].is_empty() {
            lines.remove(0);
        }
        self.lines(lead, ink, &lines, indent);
    }

    /// As much of a text as [`Page::wrapped`] puts in `most` lines, cut between words, and not behind a number, which
    /// its unit follows.
    pub(crate) fn clipped(&self, lead: &[(Ink, &str)], text: &str, most: usize) -> String {
        let indent: usize = lead.iter().map(|(_, text)| columns(text)).sum();
        let (first, rest) =
            (self.width().saturating_sub(indent), self.width() - indent.min(self.width() / 2));
        let fits = |text: &str| wrap(text, first, rest).len() <= most;
        if fits(text) {
            return text.to_owned();
        }
        let words: Vec<&str> = text.split(' ').collect();
        let ends = (1..words.len()).rev().filter(|end| !is_number(words[end - 1]));
        let starts = ends.map(|end| {
            let start = words[..end].join(" ");
            format!("{} {}", start.trim_end_matches([',', ';', ':', '.']), self.ellipsis())
        });
        starts.into_iter().find(|start| fits(start)).unwrap_or_else(|| self.ellipsis().to_owned())
    }

    fn lines(&mut self, lead: &[(Ink, &str)], ink: Ink, lines: &[String], hang: usize) {
        let space = " ".repeat(hang);
        for (i, line) in lines.iter().enumerate() {
            if i == 0 {
                let mut pieces = lead.to_vec();
                pieces.push((ink, line));
                self.line(&pieces);
            } else {
                self.line(&[(Ink::Plain, &space), (ink, line)]);
            }
        }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// Whether a word is a number, or stands between two.
fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches(['(', '−', '-', '≤', '±']);
    let is_all = |c: char| c.is_ascii_digit() || [',', '.'].contains(&c);
    match digits.ends_with(',') {
        true => false,
        false => {
            ["…", "...", "×", "±", "≤"].contains(&word)
                || !digits.is_empty() && digits.chars().all(is_all)
        }
    }
}

/// Columns `text` takes on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Our own signs in ASCII; text from a record has been converted before.
pub(crate) fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match ascii_sign(c) {
            Some(sign) => out.push_str(sign),
            None if c.is_ascii() => out.push(c),
            None => out.push('?'),
        }
    }
    out
}

/// The start of `text` that takes at most `width` columns.
pub(crate) fn head(text: &str, width: usize) -> &str {
    let mut room = width;
    for (at, c) in text.char_indices() {
        match room.checked_sub(c.width().unwrap_or(0)) {
            Some(left) => room = left,
            None => return &text[..at],
        }
    }
    text
}

/// The end of `text` that takes at most `width` columns.
fn tail(text: &str, width: usize) -> &str {
    let mut room = width;
    for (at, c) in text.char_indices().rev() {
        match room.checked_sub(c.width().unwrap_or(0)) {
            Some(left) => room = left,
            None => return &text[at + c.len_utf8()..],
        }
    }
    text
}

fn cut(text: &str, width: usize, ellipsis: &str) -> String {
    match width.checked_sub(columns(ellipsis)) {
        Some(room) => format!("{}{ellipsis}", head(text, room)),
        None => head(text, width).to_string(),
    }
}

/// `text` with its middle left out where it is too wide; the end of a path is more informative, so
/// that keeps the larger part.
pub(crate) fn elide(text: &str, width: usize, ellipsis: &str) -> String {
    if columns(text) <= width {
        return text.to_string();
    }
    match width.checked_sub(columns(ellipsis) + 2) {
        Some(room) => {
            let (front, back) = (1 + room / 3, 1 + room - room / 3);
            format!("{}{ellipsis}{}", head(text, front), tail(text, back))
        }
        None => head(text, width).to_string(),
    }
}

/// `text` with its beginning left out where it is too wide: for paths in lists, whose ends tell them
/// apart.
pub(crate) fn elide_front(text: &str, width: usize, ellipsis: &str) -> String {
    if columns(text) <= width {
        return text.to_string();
    }
    match width.checked_sub(columns(ellipsis) + 1) {
        Some(room) => format!("{ellipsis}{}", tail(text, room + 1)),
        None => head(text, width).to_string(),
    }
}

/// A text behind its lead, in lines of at most `width` columns, of which all but the first begin in column `indent`.
pub fn hanging(lead: &str, text: &str, indent: usize, width: usize) -> String {
    let first = width.saturating_sub(columns(lead));
    let lines = wrap(text, first, width.saturating_sub(indent));
    let text = lead.to_owned() + &lines.join(&format!("\n{:indent$}", ""));
    text.trim_end().to_owned() + "\n"
}

/// Breaks a text between words into lines of at most `first` and then `rest` columns; a word wider
/// than a line is broken itself.
pub(crate) fn wrap(text: &str, first: usize, rest: usize) -> Vec<String> {
    let rest = rest.max(2);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut room = first;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word;
        let gap = usize::from(!line.is_empty());
        if columns(word) + gap > room {
            lines.push(std::mem::take(&mut line));
            room = rest;
        } else if gap == 1 {
            line.push(' ');
            room -= 1;
        }
        while columns(word) > room {
            // `room` is at least 2 here, which any character fits.
            let part = head(word, room);
            lines.push(part.to_string());
            word = &word[part.len()..];
            room = rest;
        }
        line += word;
        room -= columns(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_middle_of_a_path_is_left_out() {
        assert_eq!(elide("/usr/lib/x86_64-linux-gnu/libc.so.6", 20, "…"), "/usr/l…gnu/libc.so.6");
        assert_eq!(elide("short", 5, "…"), "short");
        assert_eq!(elide_front("/usr/lib/libc.so.6", 10, "…"), "…libc.so.6");
        assert_eq!(elide_front("short", 5, "…"), "short");
        assert_eq!(elide("文文文文文文", 7, "…"), "文…文文");
    }

    #[test]
    fn words_are_kept_whole_where_they_fit() {
        assert_eq!(wrap("one two three", 7, 7), ["one two", "three"]);
        assert_eq!(wrap("a lengthy one", 4, 4), ["a", "leng", "thy", "one"]);
        assert_eq!(wrap("", 4, 4), [""]);
        assert_eq!(hanging("\n  a   ", "one two three", 4, 13), "\n  a   one two\n    three\n");
        assert_eq!(hanging("  a   ", "", 4, 13), "  a\n");
    }

    #[test]
    fn a_text_is_cut_between_words_and_a_number_keeps_its_unit() {
        let style = Style { width: 20, ..Style::default() };
        let clipped =
            |text: &str, most| Page::new(&style).clipped(&[(Ink::Plain, "  ")], text, most);
        assert_eq!(clipped("it slept for 600 ms", 2), "it slept for 600 ms");
        assert_eq!(clipped("it all slept for 600 ms", 1), "it all slept for …");
        assert_eq!(clipped("it slept, 600 ms of 1 s", 1), "it slept, 600 ms …");
        assert_eq!(clipped("slept for 218 … 632 ns", 1), "slept for …");
        assert_eq!(clipped("slept, and woke up again", 1), "slept, and woke …");
        assert_eq!(clipped("awake; it ran, for 600 ms", 1), "awake; it ran …");
        assert_eq!(clipped("anoverlongwordofitsown and", 1), "…");
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_asked(text in "\\PC{0,60}", width in 2usize..40, color: bool) {
            prop_assert!(columns(&elide(&text, width, "…")) <= width);
            prop_assert!(columns(&elide_front(&text, width, "…")) <= width);
            for line in wrap(&text, width, width) {
                prop_assert!(columns(&line) <= width, "{line:?}");
            }
            let style = Style { color, width: 20 + width, ..Style::default() };
            let mut page = Page::new(&style);
            page.line(&[(Ink::Bold, &text), (Ink::Plain, &text)]);
            let out = page.finish().replace("\x1b[1m", "").replace("\x1b[0m", "");
            prop_assert!(columns(out.trim_end_matches('\n')) <= style.width);
        }
    }
}
