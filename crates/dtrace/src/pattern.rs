//! What a string is compared with: text, and a pattern behind it.

use crate::error::Span;
use crate::glob::{Glob, GlobError};

/// A pattern for a whole string, as a shell has them: `*`, `?`, `[a-z]`, and `\` before any of
/// these. What comes before the first of them is compared as it is, since most strings differ there;
/// the rest is a [`Glob`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    prefix: Vec<u8>,
    rest: Glob,
}

impl Pattern {
    /// The longest text before the first sign.
    pub const MOST_PREFIX: usize = 255;

    /// Reads a pattern, which may be empty.
    ///
    /// # Errors
    /// A bracket or backslash is left open, or either part is too long.
    pub(crate) fn read(pattern: &[u8]) -> Result<Self, GlobError> {
        let mut prefix = Vec::new();
        let mut rest = pattern;
        loop {
            rest = match rest {
                [] | [b'*' | b'?' | b'[', ..] | [b'\\'] => break,
                [b'\\', byte, behind @ ..] | [byte, behind @ ..] => {
                    prefix.push(*byte);
                    behind
                }
            };
        }
        match prefix.len() {
            0..=Self::MOST_PREFIX => Ok(Self { prefix, rest: Glob::read(rest)? }),
            long => Err(GlobError::LongPrefix(long)),
        }
    }

    /// The text that a string begins with.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// The pattern for what follows.
    pub fn rest(&self) -> &Glob {
        &self.rest
    }

    /// Whether the whole string matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        text.strip_prefix(&*self.prefix).is_some_and(|rest| self.rest.matches(rest))
    }
}

/// A string that a condition compares with a pattern: a bit of the word of matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringTest {
    /// Of the string variable.
    pub fact: u16,
    /// What it is compared with.
    pub pattern: Pattern,
}

/// The string tests of a condition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tests {
    pub(crate) all: Vec<StringTest>,
    /// Where the first string of each of its own stands, which are the last of all.
    pub(crate) places: Vec<Span>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::read(pattern.as_bytes()).unwrap().matches(text.as_bytes())
    }

    #[test]
    fn text_and_what_follows_it_are_one_pattern() {
        let long = "/".to_owned() + &"a".repeat(254);
        for (pattern, text, expected) in [
            ("/etc/passwd", "/etc/passwd", true),
            ("/etc/passwd", "/etc/passwd2", false),
            ("/etc/passwd", "/etc/passw", false),
            ("/var/lib/*", "/var/lib/", true),
            ("/var/lib/*", "/var/lib/a/b", true),
            ("/var/lib/*", "/var/lib", false),
            (r"a\*b*", "a*bc", true),
            (r"a\*b*", "axbc", false),
            ("a[bc]", "ab", true),
            ("", "", true),
            ("", "a", false),
            (&long, &long, true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        let error = |text: &str| Pattern::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error(&(long + "b")).contains("255"));
        assert!(error("abc[").contains("without `]`"));
        assert!(error(&("*".to_owned() + &"x".repeat(64))).contains("63"));
    }

    proptest! {
        #[test]
        fn a_pattern_is_the_same_cut_or_whole(pattern in r"([ab?*]|\\\*){1,8}", text in "[ab*]{0,8}") {
            let whole = Glob::read(pattern.as_bytes()).unwrap().matches(text.as_bytes());
            prop_assert_eq!(matches(&pattern, &text), whole);
        }
    }
}
