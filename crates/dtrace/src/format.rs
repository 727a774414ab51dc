//! The formats of `printf` and `printa`: text, and conversions of values.

use std::ops::Range;

use crate::types::Type;

/// A format, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Format {
    /// Its parts in their order.
    pub pieces: Vec<Piece>,
}

/// A part of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Printed as it is.
    Text(Vec<u8>),
    /// A value's.
    Conversion(Conversion),
}

/// `%-10@d`: how a value is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conversion {
    /// The letter.
    pub letter: u8,
    /// `-`
    pub left: bool,
    /// `0`
    pub zeros: bool,
    /// `+`
    pub plus: bool,
    /// ` `
    pub blank: bool,
    /// `#`
    pub alternative: bool,
    /// `'`: groups of three digits.
    pub groups: bool,
    /// `@`: an aggregation's value.
    pub aggregation: bool,
    /// The least width.
    pub width: u16,
    /// Whether an argument has the width.
    pub width_argument: bool,
    /// The precision.
    pub precision: Option<u16>,
    /// Whether an argument has the precision.
    pub precision_argument: bool,
}

/// The widest field.
const MOST_WIDTH: u32 = 1024;

/// What is wrong with a format, and where in its bytes.
pub(crate) struct FormatProblem {
    pub(crate) at: Range<usize>,
    pub(crate) message: String,
    pub(crate) advice: &'static str,
}

const LETTERS: &str = "the conversions are %d %i %u %x %X %o %c %C %s %S %p %a %A %k %Y %T and %%";

impl Format {
    pub(crate) fn read(text: &[u8]) -> Result<Self, FormatProblem> {
        if text.is_empty() {
            let message = "an empty format".to_owned();
            return Err(FormatProblem { at: 0..0, message, advice: "" });
        }
        let mut pieces = Vec::new();
        let mut plain = Vec::new();
        let mut at = 0;
        while at < text.len() {
            if text[at] != b'%' {
                plain.push(text[at]);
                at += 1;
                continue;
            }
            if text.get(at + 1) == Some(&b'%') {
                plain.push(b'%');
                at += 2;
                continue;
            }
            let (conversion, end) = conversion(text, at)?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Conversion(conversion));
            at = end;
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self { pieces })
    }

    /// The conversions in their order.
    pub fn conversions(&self) -> impl Iterator<Item = &Conversion> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Conversion(conversion) => Some(conversion),
            Piece::Text(_) => None,
        })
    }
}

/// The conversion at a `%`, and the place behind it.
fn conversion(text: &[u8], start: usize) -> Result<(Conversion, usize), FormatProblem> {
    let mut one = Conversion::default();
    let mut at = start + 1;
    let mut in_precision = false;
    let mut has_digits = false;
    let problem = |end: usize, message: &str, advice: &'static str| {
        Err(FormatProblem { at: start..end.min(text.len()), message: message.to_owned(), advice })
    };
    loop {
        let Some(&byte) = text.get(at) else {
            return problem(at, "a conversion without its letter", LETTERS);
        };
        at += 1;
        match byte {
            b'0' if !in_precision && !has_digits => one.zeros = !one.left,
            b'0'..=b'9' => {
                let mut number = 0u32;
                at -= 1;
                while let Some(digit @ b'0'..=b'9') = text.get(at) {
                    number = (number * 10 + u32::from(digit - b'0')).min(MOST_WIDTH + 1);
                    at += 1;
                }
                if number > MOST_WIDTH {
                    return problem(at, "a field is at most 1,024 wide", "");
                }
                match in_precision {
                    true => one.precision = Some(number as u16),
                    false => one.width = number as u16,
                }
                has_digits = true;
            }
            b'#' => one.alternative = true,
            b'+' => one.plus = true,
            b' ' => one.blank = true,
            b'\'' => one.groups = true,
            b'@' => one.aggregation = true,
            b'-' => {
                one.left = true;
                one.zeros = false;
            }
            // As wide as an address.
            b'?' => one.width = 16,
            b'.' if in_precision => return problem(at, "a conversion has one `.`", ""),
            b'.' => {
                in_precision = true;
                has_digits = false;
                one.precision = Some(0);
            }
            b'*' if in_precision => one.precision_argument = true,
            b'*' => one.width_argument = true,
            // Sizes are those of the values.
            b'h' | b'l' | b'L' => {}
            b'$' => {
                let advice = "conversions take the arguments in their order";
                return problem(at, "conversions have no positions", advice);
            }
            b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c' | b'C' | b's' | b'S' | b'p' | b'a'
            | b'A' | b'k' | b'Y' | b'T' => {
                one.letter = byte;
                return Ok((one, at));
            }
            b'e' | b'E' | b'f' | b'g' | b'G' => {
                return problem(at, "D calculates with integers only", "print it by %d");
            }
            b'w' => return problem(at, "there are no wide characters", "print strings by %s"),
            b'P' | b'I' => return problem(at, "this conversion is not supported", LETTERS),
            other => {
                let shown = match other {
                    b' '..=b'~' => format!("unknown conversion `%{}`", other as char),
                    _ => "unknown conversion".to_owned(),
                };
                return Err(FormatProblem { at: start..at, message: shown, advice: LETTERS });
            }
        }
    }
}

impl Conversion {
    /// What a value has to be for this conversion, where this type is not it.
    pub(crate) fn refuses(&self, of: Type) -> Option<&'static str> {
        let integer = of.as_integer();
        match self.letter {
            b's' | b'S' if of != Type::String => {
                Some("a string; stringof() and copyinstr() make one")
            }
            b's' | b'S' => None,
            b'k' if !matches!(of, Type::Stack { .. }) => Some("stack() or ustack()"),
            b'k' => None,
            b'a' | b'A' if of == Type::Symbol => None,
            b'Y' | b'T' if integer.is_none_or(|one| one.bytes != 8) => {
                Some("nanoseconds in 64 bits, such as walltimestamp")
            }
            b'c' | b'C' if integer.is_none_or(|one| one.bytes > 4) => {
                Some("an int or a char; cast it by (char)")
            }
            _ if integer.is_none() && of == Type::String => Some("an integer; print strings by %s"),
            _ if integer.is_none() => Some("an integer"),
            _ => None,
        }
    }
}
