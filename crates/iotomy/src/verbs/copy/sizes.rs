//! Sizes as the command line has them.

/// Bytes from `4096`, `64K`, `1M`, `2GiB`: powers of 1024, in either case.
///
/// # Errors
/// The mistake.
pub(in crate::verbs) fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ if number.is_empty() => {
            return Err("invalid size: expected a number of bytes, as in 64K".into());
        }
        _ => {
            return Err(format!(
                "invalid size: unknown unit {unit:?}; the units are K, M, G and T \
            (powers of 1024)"
            ));
        }
    };
    if number.is_empty() {
        return Err("invalid size: expected a number first, as in 64K".into());
    }
    // The kernel counts positions in signed numbers.
    let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
    bytes
        .filter(|bytes| i64::try_from(*bytes).is_ok())
        .ok_or_else(|| "invalid size: files end below 8 EiB".into())
}

/// A block size that a buffer can have.
pub(super) fn block_size(text: &str) -> Result<usize, String> {
    const MOST: u64 = 1 << 30;
    let bytes = size(text)?;
    match usize::try_from(bytes) {
        Ok(fits) if (1..=MOST).contains(&bytes) => Ok(fits),
        _ => Err("invalid block size: expected 1 to 1G".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("1", 1),
            ("7b", 7),
            ("4096", 4096),
            ("4k", 4096),
            ("4KiB", 4096),
            ("1M", 1 << 20),
            ("3G", 3 << 30),
            ("2t", 2 << 40),
            ("9223372036854775807", u64::MAX >> 1),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "K",
            "-1",
            "+1",
            "1.5M",
            "1 M",
            "1KB",
            "1X",
            "0x10",
            "1e3",
            "٣",
            "9223372036854775808",
            "8388608T",
            "99999999999999999999",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
        for text in ["0", "2G", "x"] {
            assert!(block_size(text).is_err(), "{text}");
        }
        assert_eq!(block_size("1G"), Ok(1 << 30));
    }
}
