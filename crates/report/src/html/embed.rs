//! A record inside of a page: packed by gzip, in base64.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Level 1 packs the repetitions of a record nearly as small as 9, in a fifth of the time.
const LEVEL: u32 = 1;

pub(super) fn packed(bytes: &[u8]) -> String {
    let mut gzip = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::new(LEVEL));
    // Writing to memory does not fail.
    let _ = gzip.write_all(bytes);
    base64(&gzip.finish().unwrap_or_default())
}

/// RFC 4648, section 4.
pub(super) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let group = three.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(group >> (18 - 6 * place)) as usize & 63];
            out.push(if place <= three.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

/// The file name of a downloaded record: the harmless characters of its own.
pub(super) fn file_name(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or_default();
    let harmless = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let kept: String = last.chars().take(80).map(harmless).collect();
    let kept = kept.trim_start_matches('.');
    let kept = if kept.is_empty() { "record" } else { kept };
    if kept.ends_with(".json") { kept.to_owned() } else { format!("{kept}.json") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn a_name_to_download_by_is_harmless() {
        assert_eq!(file_name("a/b/run.json"), "run.json");
        assert_eq!(file_name("../..\"><x>"), "___x_.json");
        assert_eq!(file_name("-"), "-.json");
        assert_eq!(file_name(""), "record.json");
    }
}
