//! A text to tokens.

use crate::ast::Text;
use crate::error::{Problem, Span};

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Integer(i64),
    Text(Text),
    Name(String),
    /// An operator, a parenthesis, or another sign of the language.
    Sign(&'static str),
    /// Behind the last one.
    End,
}

/// The longer ones first.
const SIGNS: [&str; 30] = [
    "<<=", ">>=", "&&", "||", "^^", "==", "!=", "<=", ">=", "<<", ">>", "->", "++", "--", "+=",
    "-=", "*=", "/=", "%=", "&=", "|=", "^=", "=", "<", ">", "(", ")", "?", ":", "!",
];
const SINGLE: [&str; 11] = ["~", "+", "-", "*", "/", "%", "&", "|", "^", ",", "."];

/// The units an integer may have behind it.
pub(crate) const UNITS: &str = "the units are ns, us, ms and s (nanoseconds), and K, M, G and T or KiB, MiB, GiB and TiB \
     (powers of 1024)";

/// Reads a text one token after another.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token, and its place.
    pub(crate) fn next(&mut self) -> Result<(Token, Span), Problem> {
        let rest = &self.text[self.at..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']).len();
        self.at += blank;
        let start = self.at;
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else {
            return Ok((Token::End, start..start));
        };
        let token = match first {
            '0'..='9' => self.integer()?,
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = word(rest);
                self.at += length;
                Token::Name(rest[..length].to_owned())
            }
            '"' => Token::Text(self.text()?),
            '\'' => self.character()?,
            _ => match SIGNS.iter().chain(&SINGLE).find(|sign| rest.starts_with(**sign)) {
                Some(sign) => {
                    self.at += sign.len();
                    Token::Sign(sign)
                }
                None => {
                    let span = start..start + first.len_utf8();
                    return Err(Problem::new(
                        span,
                        "this sign has no meaning here",
                        look_alike(first),
                    ));
                }
            },
        };
        Ok((token, start..self.at))
    }

    fn integer(&mut self) -> Result<Token, Problem> {
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
                PosOverflow => too_large(&span),
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
        let number = number.checked_mul(factor).and_then(|number| i64::try_from(number).ok());
        number.map(Token::Integer).ok_or_else(|| too_large(&span))
    }

    fn text(&mut self) -> Result<Text, Problem> {
        let start = self.at;
        self.at += 1;
        let mut text = Text::default();
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            match rest.first() {
                None | Some(b'\n') => {
                    let span = start..self.at;
                    return Err(Problem::new(span, "a string without its closing \"", ""));
                }
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.0.push((self.escape()?, true)),
                Some(byte) => {
                    self.at += 1;
                    text.0.push((*byte, false));
                }
            }
        }
    }

    /// A character in single quotes: its number.
    fn character(&mut self) -> Result<Token, Problem> {
        let start = self.at;
        self.at += 1;
        let rest = &self.text[self.at..];
        let value = match rest.chars().next() {
            Some('\\') => self.escape()?,
            Some(one) if one.is_ascii() && one != '\'' && one != '\n' => {
                self.at += 1;
                one as u8
            }
            _ => {
                let end = floor_end(self.text, start);
                let advice = "strings stand in double quotes";
                return Err(Problem::new(start..end, "expected one ASCII character", advice));
            }
        };
        if !self.text[self.at..].starts_with('\'') {
            let rest = &self.text[self.at..];
            let end = rest.find('\'').map_or(self.text.len(), |at| self.at + at + 1);
            let advice = "strings stand in double quotes";
            return Err(Problem::new(start..end, "expected one character and a '", advice));
        }
        self.at += 1;
        Ok(Token::Integer(i64::from(value)))
    }

    /// What follows a backslash, as in C; before the signs of a pattern it has these stand for
    /// themselves.
    fn escape(&mut self) -> Result<u8, Problem> {
        let start = self.at;
        let rest = &self.text[start + 1..];
        let digits = |radix: u32, most: usize, from: &str| {
            from.chars().take(most).take_while(|one| one.is_digit(radix)).count()
        };
        let (value, length) = match rest.as_bytes().first() {
            Some(b'a') => (7, 1),
            Some(b'b') => (8, 1),
            Some(b't') => (9, 1),
            Some(b'n') => (10, 1),
            Some(b'v') => (11, 1),
            Some(b'f') => (12, 1),
            Some(b'r') => (13, 1),
            Some(sign @ (b'"' | b'\'' | b'\\' | b'*' | b'?' | b'[' | b']')) => {
                (u32::from(*sign), 1)
            }
            Some(b'x') if digits(16, 2, &rest[1..]) > 0 => {
                let count = digits(16, 2, &rest[1..]);
                (u32::from_str_radix(&rest[1..=count], 16).unwrap_or(0), count + 1)
            }
            Some(b'0'..=b'7') => {
                let count = digits(8, 3, rest);
                (u32::from_str_radix(&rest[..count], 8).unwrap_or(0), count)
            }
            _ => (u32::MAX, rest.chars().next().map_or(0, char::len_utf8)),
        };
        let span = start..start + 1 + length;
        let Ok(value) = u8::try_from(value) else {
            let advice = "write \\\\ for a backslash, \\* or \\? for these signs themselves";
            return Err(Problem::new(span, "unknown escape", advice));
        };
        self.at = span.end;
        Ok(value)
    }
}

fn too_large(span: &Span) -> Problem {
    Problem::new(span.clone(), "this number is too large", "the largest is 9223372036854775807")
}

/// Letters, digits and underscores at the beginning.
fn word(text: &str) -> usize {
    text.find(|one: char| !one.is_ascii_alphanumeric() && one != '_').unwrap_or(text.len())
}

/// The end of a character in quotes whose first one stands at `start`.
fn floor_end(text: &str, start: usize) -> usize {
    let mut signs = text[start..].char_indices().skip(2);
    signs.next().map_or(text.len(), |(at, _)| start + at)
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

/// The sign that was meant by one that a text processor has made of it.
fn look_alike(sign: char) -> &'static str {
    match sign {
        '“' | '”' | '„' | '«' | '»' => "strings stand in \"",
        '‘' | '’' | '`' => "characters stand in '",
        '–' | '—' | '−' => "write -",
        '≤' => "write <=",
        '≥' => "write >=",
        '≠' => "write !=",
        '@' | '$' | '#' | '{' | '}' | '[' | ']' | ';' => "an expression is expected",
        _ => "",
    }
}
