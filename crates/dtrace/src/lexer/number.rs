//! Integers, their units and C's marks of types.

use super::{Lexer, Token, word};
use crate::ast::Number;
use crate::error::{Problem, Span};
use crate::types::Integer;

/// The units an integer may have behind it.
const UNITS: &str = "the units are ns, us, ms and s (nanoseconds), and K, M, G and T or KiB, MiB, GiB and TiB \
     (powers of 1024)";

impl<const PROGRAM: bool> Lexer<'_, PROGRAM> {
    pub(super) fn integer(&mut self) -> Result<Token, Problem> {
        let start = self.at;
        let rest = &self.text[start..];
        let all = word(rest);
        let (radix, prefix) = match rest.as_bytes() {
            [b'0', b'x' | b'X', ..] => (16, 2),
            [b'0', b'0'..=b'9', ..] => (8, 1),
            _ => (10, 0),
        };
        let body = &rest[prefix..all];
        let digits = body.find(|one: char| !one.is_digit(radix.max(10))).unwrap_or(body.len());
        let (digits, unit) = body.split_at(digits);
        self.at += all;
        let span = start..self.at;
        if rest[all..].starts_with('.') {
            let fraction = 1 + word(&rest[all + 1..]);
            return Err(Problem::new(
                span.start..span.end + fraction,
                "numbers have no fractions",
                "write a smaller unit, as in 1500us",
            ));
        }
        let number = u64::from_str_radix(digits, radix).map_err(|error| {
            use std::num::IntErrorKind::{InvalidDigit, PosOverflow};
            match error.kind() {
                PosOverflow => Self::too_large(&span),
                InvalidDigit => Problem::new(
                    span.clone(),
                    "a number that begins with 0 is octal",
                    "its digits are 0 to 7",
                ),
                _ => Problem::new(span.clone(), "expected hexadecimal digits", "as in 0x1ff"),
            }
        })?;
        let factor = factor(unit).ok_or_else(|| {
            let at = span.end - unit.len()..span.end;
            let what = match unit.eq_ignore_ascii_case("m") {
                true => "`m` may be milliseconds or mebibytes".to_owned(),
                false => format!("unknown unit `{unit}`"),
            };
            let advice = if unit == "m" { "write ms or M" } else { UNITS };
            Problem::new(at, what, advice)
        })?;
        let most = if PROGRAM { u64::MAX } else { i64::MAX as u64 };
        let value = number.checked_mul(factor).filter(|value| *value <= most);
        let marks = unit.to_ascii_lowercase();
        let (unsigned, long) =
            match matches!(&*marks, "u" | "l" | "ul" | "lu" | "ll" | "ull" | "llu") {
                true => (marks.contains('u'), marks.contains('l')),
                false => (false, false),
            };
        let number = |value| Number {
            value,
            integer: Integer::of_constant(value, unsigned, long, radix == 10),
        };
        value.map(|value| Token::Integer(number(value))).ok_or_else(|| Self::too_large(&span))
    }

    fn too_large(span: &Span) -> Problem {
        let largest = match PROGRAM {
            true => "the largest is 18446744073709551615",
            false => "the largest is 9223372036854775807",
        };
        Problem::new(span.clone(), "this number is too large", largest)
    }
}

/// What an integer is multiplied by for its unit; C's marks of types mean nothing.
fn factor(unit: &str) -> Option<u64> {
    let bytes = |power: u32| Some(1u64 << (10 * power));
    match unit {
        "" | "ns" => return Some(1),
        "us" => return Some(1_000),
        "ms" => return Some(1_000_000),
        "s" => return Some(1_000_000_000),
        "m" => return None,
        _ => {}
    }
    match unit.to_ascii_lowercase().as_str() {
        "u" | "l" | "ul" | "lu" | "ll" | "ull" | "llu" => Some(1),
        "k" | "kib" => bytes(1),
        "m" | "mib" => bytes(2),
        "g" | "gib" => bytes(3),
        "t" | "tib" => bytes(4),
        _ => None,
    }
}
