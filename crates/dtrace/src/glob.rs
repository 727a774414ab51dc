//! Patterns for names, as a shell has them: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before any of
//! these.
//!
//! A pattern becomes a table, which the kernel's programs can go through without backtracking: a
//! bit stands for each position that a name may have reached in the pattern, and a byte of the name
//! moves all bits at once.

use std::fmt;
use std::str::FromStr;

/// A pattern for names.
#[derive(Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
    /// By byte: the positions that go on to the next upon it.
    steps: Box<[u64; 256]>,
    /// The positions that stay upon any byte: those of a `*`.
    stays: u64,
    /// The position at the pattern's end.
    end: u64,
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// It is empty.
    #[error("an empty pattern matches nothing; `*` matches every name")]
    Empty,
    /// It is too long.
    #[error("a pattern has at most {MOST} characters besides `*`; this one has {0}")]
    TooLong(usize),
    /// The text before the first sign is too long.
    #[error("the text before the first of * ? [ has at most 255 bytes; this one has {0}")]
    LongPrefix(usize),
    /// A bracket or a backslash is left open.
    #[error("{0} in {1:?}; write `\\` before a character that stands for itself")]
    Open(&'static str, String),
}

/// The most positions: those of the bits of a `u64`, but for the end's.
const MOST: usize = 63;

impl Glob {
    /// Whether the whole name matches.
    pub fn matches(&self, name: &[u8]) -> bool {
        let go = |at: u64, byte: &u8| (at & self.steps[usize::from(*byte)]) << 1 | at & self.stays;
        name.iter().fold(1, go) & self.end != 0
    }

    /// The table: by byte, the positions that go on to the next upon it; then those that stay upon
    /// any byte, and the one at the end.
    pub fn table(&self) -> Vec<u64> {
        self.steps.iter().chain([&self.stays, &self.end]).copied().collect()
    }

    /// A pattern of any bytes, which `text` stands for where it is printed.
    ///
    /// # Errors
    /// It is empty, too long, or ends within a bracket.
    pub fn of_bytes(pattern: &[u8], text: String) -> Result<Self, GlobError> {
        match pattern {
            [] => Err(GlobError::Empty),
            _ => Self::read(pattern).map(|read| Self { text, ..read }),
        }
    }

    /// A pattern that may be empty, which only an empty name matches.
    pub(crate) fn read(pattern: &[u8]) -> Result<Self, GlobError> {
        let text = String::from_utf8_lossy(pattern).into_owned();
        let mut places: Vec<[bool; 256]> = Vec::new();
        let mut stays = 0u64;
        let mut rest = pattern;
        while let Some((first, behind)) = rest.split_first() {
            rest = behind;
            let mut any = [false; 256];
            match first {
                b'*' => {
                    // A pattern that is too long is refused below.
                    stays |= 1u64.checked_shl(places.len() as u32).unwrap_or(0);
                    continue;
                }
                b'?' => any = [true; 256],
                b'[' => {
                    rest = bracket(rest, &mut any).ok_or_else(|| open("`[` without `]`", &text))?
                }
                b'\\' => {
                    let (next, behind) =
                        rest.split_first().ok_or_else(|| open("a `\\` before nothing", &text))?;
                    any[usize::from(*next)] = true;
                    rest = behind;
                }
                byte => any[usize::from(*byte)] = true,
            }
            places.push(any);
        }
        if places.len() > MOST {
            return Err(GlobError::TooLong(places.len()));
        }
        let mut steps = Box::new([0; 256]);
        for (at, place) in places.iter().enumerate() {
            for (byte, _) in place.iter().enumerate().filter(|(_, is_in)| **is_in) {
                steps[byte] |= 1 << at;
            }
        }
        Ok(Self { text, steps, stays, end: 1 << places.len() })
    }
}

impl FromStr for Glob {
    type Err = GlobError;

    fn from_str(text: &str) -> Result<Self, GlobError> {
        Self::of_bytes(text.as_bytes(), text.to_owned())
    }
}

fn open(what: &'static str, text: &str) -> GlobError {
    GlobError::Open(what, text.to_owned())
}

/// The bytes of a bracket whose `[` has been read; what follows its `]`.
fn bracket<'a>(text: &'a [u8], any: &mut [bool; 256]) -> Option<&'a [u8]> {
    let is_inverse = matches!(text.first(), Some(b'!' | b'^'));
    let mut rest = &text[usize::from(is_inverse)..];
    let mut is_first = true;
    loop {
        let (byte, behind) = rest.split_first()?;
        // A `]` at the beginning stands for itself.
        if *byte == b']' && !is_first {
            rest = behind;
            break;
        }
        is_first = false;
        rest = match behind {
            [b'-', last, behind @ ..] if *last != b']' => {
                (*byte..=*last).for_each(|one| any[usize::from(one)] = true);
                behind
            }
            _ => {
                any[usize::from(*byte)] = true;
                behind
            }
        };
    }
    if is_inverse {
        any.iter_mut().for_each(|is_in| *is_in = !*is_in);
    }
    Some(rest)
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Glob").field(&self.text).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        pattern.parse::<Glob>().unwrap().matches(name.as_bytes())
    }

    #[test]
    fn a_name_matches_as_in_a_shell() {
        for (pattern, all, none) in [
            ("redis-server", &["redis-server"][..], &["redis-serve", "redis-servers", ""][..]),
            ("post*", &["post", "postgres"], &["apost", "pos"]),
            ("*d", &["d", "sshd", "dd"], &["dx", ""]),
            ("*", &["", "anything"], &[]),
            ("a*b*c", &["abc", "axbybzc", "abcbc"], &["ac", "abcb"]),
            ("python3.?", &["python3.9"], &["python3.", "python3.11"]),
            ("php[78]*", &["php7", "php8.2"], &["php5"]),
            ("[!a-c]x", &["dx"], &["ax", "bx", "x"]),
            ("[]a]", &["]", "a"], &["b"]),
            (r"\*a\[", &["*a["], &["xa["]),
            ("é", &["é"], &["e"]),
        ] {
            for name in all {
                assert!(matches(pattern, name), "{pattern} {name}");
            }
            for name in none {
                assert!(!matches(pattern, name), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        let error = |text: &str| text.parse::<Glob>().unwrap_err().to_string();
        assert!(error("").contains("`*` matches every name"));
        assert!(error("a[b").contains("`[` without `]` in \"a[b\""), "{}", error("a[b"));
        assert!(error("a\\").contains("before nothing"));
        assert!(error(&"x".repeat(64)).contains("at most 63 characters"));
        assert!(matches(&"x*".repeat(63), &"x".repeat(70)));
    }

    /// By trying all.
    fn slow(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', rest)) => (0..=name.len()).any(|taken| slow(rest, &name[taken..])),
            Some((byte, rest)) => name
                .split_first()
                .is_some_and(|(first, name)| (*byte == b'?' || byte == first) && slow(rest, name)),
        }
    }

    proptest! {
        #[test]
        fn all_bits_at_once_are_as_good_as_trying_all(
            pattern in "[ab?*]{1,8}",
            name in "[ab]{0,8}",
        ) {
            let fast = matches(&pattern, &name);
            prop_assert_eq!(fast, slow(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
