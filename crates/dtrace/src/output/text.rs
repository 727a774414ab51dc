//! Values as text: fields, numbers, times and memory.

use crate::format::Conversion;
use crate::types::{Integer, Type};

/// How a value fills its place.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Field {
    pub(super) left: bool,
    pub(super) zeros: bool,
    pub(super) plus: bool,
    pub(super) blank: bool,
    pub(super) alternative: bool,
    pub(super) width: usize,
    pub(super) precision: Option<usize>,
}

impl Field {
    pub(super) fn of(conversion: &Conversion) -> Self {
        Self {
            left: conversion.left,
            zeros: conversion.zeros,
            plus: conversion.plus,
            blank: conversion.blank,
            alternative: conversion.alternative,
            width: usize::from(conversion.width),
            precision: conversion.precision.map(usize::from),
        }
    }

    /// With blanks up to the width.
    pub(super) fn padded(self, text: Vec<u8>) -> Vec<u8> {
        let blanks = vec![b' '; self.width.saturating_sub(text.len())];
        match self.left {
            true => [text, blanks].concat(),
            false => [blanks, text].concat(),
        }
    }

    /// A string, of which the precision is the most; 0 is none.
    pub(super) fn string(self, mut text: Vec<u8>) -> Vec<u8> {
        if let Some(most @ 1..) = self.precision {
            text.truncate(most);
        }
        self.padded(text)
    }

    /// A number by its letter.
    pub(super) fn integer(self, letter: u8, value: u64, integer: Integer) -> Vec<u8> {
        let unsigned = Integer { signed: false, ..integer };
        let (sign, digits) = match letter {
            b'd' | b'i' if integer.signed => {
                let value = integer.held(value).cast_signed();
                let sign = match value {
                    ..0 => "-",
                    _ if self.plus => "+",
                    _ if self.blank => " ",
                    _ => "",
                };
                (sign, value.unsigned_abs().to_string())
            }
            b'x' | b'p' => {
                let value = unsigned.held(value);
                let mark = if self.alternative && value != 0 { "0x" } else { "" };
                (mark, format!("{value:x}"))
            }
            b'X' => {
                let value = unsigned.held(value);
                let mark = if self.alternative && value != 0 { "0X" } else { "" };
                (mark, format!("{value:X}"))
            }
            b'o' => {
                let value = unsigned.held(value);
                (if self.alternative && value != 0 { "0" } else { "" }, format!("{value:o}"))
            }
            _ => ("", unsigned.held(value).to_string()),
        };
        let precision = self.precision.filter(|most| *most > 0);
        let mut least = precision.unwrap_or(0);
        if self.zeros && precision.is_none() {
            least = self.width.saturating_sub(sign.len());
        }
        let zeros = "0".repeat(least.saturating_sub(digits.len()));
        self.padded(format!("{sign}{zeros}{digits}").into_bytes())
    }
}

/// The width that `trace()` and keys have for an integer, and the integer: those of four and eight
/// bytes with a sign, smaller ones without.
pub(super) fn traced(value: u64, of: Type) -> (usize, String) {
    let bytes = of.as_integer().map_or(8, |integer| integer.bytes);
    let signed = Integer { bytes, signed: bytes >= 4 };
    let number = signed.held(value).cast_signed().to_string();
    let width = match bytes {
        8 => 16,
        4 => 8,
        2 => 5,
        _ => 3,
    };
    (width, number)
}

/// An integer with the sign of its type.
pub(super) fn signed(value: u64, of: Type) -> i128 {
    match of.as_integer() {
        Some(integer) if integer.signed => integer.held(value).cast_signed().into(),
        Some(integer) => integer.held(value).into(),
        None => value.into(),
    }
}

/// Control characters as C writes them.
pub(super) fn escaped(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::new();
    for byte in text {
        match byte {
            0 => escaped.extend(b"\\0"),
            7 => escaped.extend(b"\\a"),
            8 => escaped.extend(b"\\b"),
            9 => escaped.extend(b"\\t"),
            10 => escaped.extend(b"\\n"),
            11 => escaped.extend(b"\\v"),
            12 => escaped.extend(b"\\f"),
            13 => escaped.extend(b"\\r"),
            b'"' => escaped.extend(b"\\\""),
            b'\\' => escaped.extend(b"\\\\"),
            b' '..=b'~' => escaped.push(*byte),
            byte => escaped.extend(format!("\\x{byte:02x}").bytes()),
        }
    }
    escaped
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Year, month from 0, day, and the day of the week from Thursday on; then hour, minute, second.
fn calendar(nanoseconds: u64) -> (u64, usize, u64, usize, [u64; 3]) {
    let seconds = nanoseconds / 1_000_000_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their leap day last.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let january = if month < 10 { month + 2 } else { month - 10 };
    let year = year_of_era + era * 400 + u64::from(january < 2);
    let clock = [rest / 3600, rest / 60 % 60, rest % 60];
    (year, january as usize, day, (days % 7) as usize, clock)
}

/// `%Y`, in UTC.
pub(super) fn time(nanoseconds: u64) -> String {
    let (year, month, day, _, [hour, minute, second]) = calendar(nanoseconds);
    format!("{year} {} {day:2} {hour:02}:{minute:02}:{second:02}", MONTHS[month])
}

/// `%T`, in UTC: the time as mails have it.
pub(super) fn mail_time(nanoseconds: u64) -> String {
    let (year, month, day, weekday, [hour, minute, second]) = calendar(nanoseconds);
    format!(
        "{}, {day:02} {} {year} {hour:02}:{minute:02}:{second:02} UTC",
        DAYS[weekday], MONTHS[month]
    )
}

/// Memory by sixteen bytes a line.
pub(super) fn dump(text: &mut Vec<u8>, bytes: &[u8]) {
    text.extend(b"\n           ");
    for digit in b"0123456789abcdef" {
        text.extend([b' ', b' ', *digit]);
    }
    text.extend(b"  0123456789abcdef\n");
    for (line, part) in bytes.chunks(16).enumerate() {
        text.extend(format!("     {:5x}:", line * 16).bytes());
        for byte in part {
            text.extend(format!(" {byte:02x}").bytes());
        }
        text.extend("   ".repeat(16 - part.len()).bytes());
        text.extend(b"  ");
        text.extend(part.iter().map(|byte| match byte {
            b' '..=b'~' => *byte,
            _ => b'.',
        }));
        text.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(time(0), "1970 Jan  1 00:00:00");
        assert_eq!(time(1_111_111_111_000_000_000), "2005 Mar 18 01:58:31");
        assert_eq!(time(951_782_400_000_000_000), "2000 Feb 29 00:00:00");
        assert_eq!(mail_time(1_111_111_111_999_999_999), "Fri, 18 Mar 2005 01:58:31 UTC");
        assert_eq!(time(u64::MAX), "2554 Jul 21 23:34:33");
    }

    #[test]
    fn numbers_fill_their_fields_as_in_c() {
        let int = |letter: u8, field: Field, value: i64| {
            String::from_utf8(field.integer(letter, value.cast_unsigned(), Integer::INT)).unwrap()
        };
        let wide = Field { width: 6, ..Field::default() };
        assert_eq!(int(b'd', wide, -42), "   -42");
        assert_eq!(int(b'd', Field { left: true, ..wide }, -42), "-42   ");
        assert_eq!(int(b'd', Field { zeros: true, ..wide }, -42), "-00042");
        assert_eq!(int(b'd', Field { plus: true, ..wide }, 42), "   +42");
        assert_eq!(int(b'd', Field { precision: Some(4), ..wide }, 42), "  0042");
        assert_eq!(int(b'x', wide, -1), "ffffffff");
        assert_eq!(int(b'x', Field { alternative: true, ..wide }, 255), "  0xff");
        assert_eq!(int(b'o', Field { alternative: true, ..wide }, 8), "   010");
        assert_eq!(int(b'u', wide, -1), "4294967295");
    }
}
