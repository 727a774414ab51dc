//! The last lines of a command's output, without control sequences.

use std::collections::VecDeque;

/// Lines that are kept.
const LINES: usize = 50;

/// Bytes of a line that are kept: more than the widest terminal shows.
const LINE: usize = 2_000;

/// The last lines of an output.
#[derive(Debug, Default)]
pub(super) struct Output {
    whole: VecDeque<Vec<u8>>,
    last: Vec<u8>,
}

impl Output {
    /// Processes the next output.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let room = LINE.saturating_sub(self.last.len());
            self.last.extend_from_slice(&text[..text.len().min(room)]);
            if let Some(at) = self.last.iter().rposition(|byte| *byte == b'\r') {
                // A character that is overwritten does not show; at the end of a line there is
                // nothing to write.
                if at + 1 < self.last.len() {
                    self.last.drain(..=at);
                }
            }
            if text.len() < piece.len() {
                self.whole.push_back(std::mem::take(&mut self.last));
                if self.whole.len() > LINES {
                    self.whole.pop_front();
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.last.is_empty()
    }

    /// The last `n` lines, without the sequences that colour text and move the cursor.
    pub(super) fn lines(&self, n: usize) -> Vec<String> {
        let last = Some(&self.last).filter(|last| !last.is_empty());
        let all: Vec<&Vec<u8>> = self.whole.iter().chain(last).collect();
        all[all.len().saturating_sub(n)..].iter().map(|line| plain(line)).collect()
    }
}

/// A line's text: escape sequences are left out whole, a tab is a few spaces.
fn plain(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' => skip_sequence(&mut rest),
            '\t' => out.push_str("    "),
            '\r' => {}
            c => out.push(c),
        }
    }
    out
}

/// Skips the rest of an escape sequence: a control sequence up to its letter, a string up to its
/// end, or one character.
fn skip_sequence(rest: &mut std::str::Chars<'_>) {
    match rest.next() {
        Some('[') => drop(rest.find(|c| ('@'..='~').contains(c))),
        Some(']' | 'P' | '^' | '_') => drop(rest.find(|c| matches!(c, '\x07' | '\x1b'))),
        Some('(' | ')' | '#') => drop(rest.next()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> Vec<String> {
        let mut output = Output::default();
        // In pieces of any size the same comes out.
        bytes.chunks(3).for_each(|piece| output.take(piece));
        output.lines(9)
    }

    #[test]
    fn a_line_is_what_a_terminal_would_show_of_it() {
        assert_eq!(shown(b"one\r\ntwo\n"), ["one", "two"]);
        assert_eq!(shown(b"10 %\r50 %\r100 %"), ["100 %"]);
        assert_eq!(shown(b"\x1b[1;31mred\x1b[0m\tand \x1b]0;title\x07plain"), ["red    and plain"]);
        assert!(shown(b"").is_empty());
    }

    #[test]
    fn only_so_much_is_kept() {
        let mut output = Output::default();
        for n in 0..1_000 {
            output.take(format!("{n}\n").as_bytes());
        }
        output.take(&[b'x'; 100_000]);
        assert_eq!(output.lines(3)[..2], ["998", "999"]);
        assert_eq!(output.lines(usize::MAX).len(), LINES + 1);
        assert_eq!(output.lines(1)[0].len(), LINE);
    }
}
