//! Texts of the index, bounded: a command line may be as long as its record, and the index has it many times.
//!
//! The one invariant: equal texts have equal labels, in every version of iotomy, since a kept run is found by
//! them.

use std::fmt::Write as _;

/// The longest label, in bytes. Up to here it is the text itself.
pub const LONGEST: usize = 1024;

/// The room for what stands for the rest: `… (18446744073709551615 bytes, 0123456789abcdef)`.
const REST: usize = 64;

/// A text that grows, of which only a label is kept.
#[derive(Debug)]
pub struct Label {
    head: String,
    bytes: u64,
    /// FNV-1a of the whole text.
    hash: u64,
}

impl Default for Label {
    fn default() -> Self {
        Self { head: String::new(), bytes: 0, hash: 0xcbf2_9ce4_8422_2325 }
    }
}

impl Label {
    /// Adds a part.
    pub fn push(&mut self, text: &str) {
        for byte in text.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let room = LONGEST.saturating_sub(self.head.len());
        // Behind a part that did not fit there is nothing.
        if self.bytes == self.head.len() as u64 {
            self.head.push_str(&text[..whole_chars(text, room)]);
        }
        self.bytes += text.len() as u64;
    }

    /// The label of all parts.
    pub fn finish(mut self) -> String {
        if self.bytes > self.head.len() as u64 {
            self.head.truncate(whole_chars(&self.head, LONGEST - REST));
            let _ = write!(self.head, "… ({} bytes, {:016x})", self.bytes, self.hash);
        }
        self.head
    }
}

/// How many of the first bytes, at most so many, are whole characters.
fn whole_chars(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The label of a text.
pub fn label(text: &str) -> String {
    let mut label = Label::default();
    label.push(text);
    label.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_its_own_label_up_to_the_limit_and_told_apart_beyond() {
        for text in ["", "make -j2", &"é".repeat(LONGEST / 2), &"x".repeat(LONGEST)] {
            assert_eq!(label(text), text);
            // A label is its own, too: those that are kept are not made anew.
            assert_eq!(label(&label(text)), label(text));
        }
        let long = |end: &str| label(&("€".repeat(5_000) + end));
        assert!(
            long("a").len() <= LONGEST && long("a").contains("… (15001 bytes, "),
            "{}",
            long("a")
        );
        assert_eq!(long("a"), long("a"));
        assert_ne!(long("a"), long("b"));
        assert_eq!(label(&long("a")), long("a"));
    }

    #[test]
    fn how_a_text_comes_in_parts_does_not_matter() {
        let text: String = "aé€𝄞".repeat(400);
        for step in [1, 7, 1_023, 1_024, 1_025] {
            let mut parts = Label::default();
            let chars: Vec<char> = text.chars().collect();
            chars.chunks(step).for_each(|part| parts.push(&part.iter().collect::<String>()));
            assert_eq!(parts.finish(), label(&text), "{step}");
        }
    }

    /// The kept labels of older versions are of this hash.
    #[test]
    fn the_hash_stays_what_it_is() {
        assert!(label(&"x".repeat(2_000)).ends_with("… (2000 bytes, 4cb100005f153a65)"));
    }
}
