//! Names that are bytes, as text, in records and messages, without loss.
//!
//! The one invariant: two names are one text only where they are the same bytes. A byte that is in no
//! UTF-8 character is written `\xNN`; a backslash that would be read as the beginning of such an escape
//! is one itself, `\x5c`. Every other name stands as it is.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The text of a name.
pub fn lossless(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        push_valid(&mut text, chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The text of a path, or of another name of the system's.
pub fn path_text(path: impl AsRef<Path>) -> String {
    lossless(path.as_ref().as_os_str().as_bytes())
}

/// The name that this text encodes.
pub fn bytes_of(text: &str) -> Vec<u8> {
    let mut name = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        match escape(rest) {
            Some(byte) => {
                name.push(byte);
                rest = &rest[ESCAPE..];
            }
            None => {
                name.push(*first);
                rest = after;
            }
        }
    }
    name
}

/// Bytes of `\xNN`.
const ESCAPE: usize = 4;

fn push_valid(text: &mut String, valid: &str) {
    for (at, c) in valid.char_indices() {
        match c {
            '\\' if escape(&valid.as_bytes()[at..]).is_some() => text.push_str("\\x5c"),
            c => text.push(c),
        }
    }
}

/// The byte that an escape at the start of `text` encodes.
fn escape(text: &[u8]) -> Option<u8> {
    let digits = text.get(..ESCAPE)?.strip_prefix(b"\\x")?;
    if digits.iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    let byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    // `from_str_radix` would take a sign.
    (digits[0].is_ascii_hexdigit() && (byte >= 0x80 || byte == b'\\')).then_some(byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_differ_in_invalid_bytes_differ() {
        assert_eq!(lossless(b"a\xff"), r"a\xff");
        assert_eq!(lossless(b"a\xfe"), r"a\xfe");
        assert_eq!(lossless(br"a\xff"), r"a\x5cxff");
        assert_eq!(lossless("naïve".as_bytes()), "naïve");
        // As systemd writes a dash: no escape of ours.
        assert_eq!(lossless(br"dev-disk\x2d1"), r"dev-disk\x2d1");
        assert_eq!(lossless(br"a\xFF\"), r"a\xFF\");
    }

    proptest! {
        #[test]
        fn every_name_comes_back(name in prop::collection::vec(
            prop_oneof![any::<u8>(), Just(b'\\'), Just(b'x'), Just(b'5'), Just(b'c'), Just(b'f')], 0..24,
        )) {
            prop_assert_eq!(bytes_of(&lossless(&name)), name);
        }
    }
}
