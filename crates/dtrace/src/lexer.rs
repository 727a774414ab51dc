//! A text to tokens, of a condition or of a program.
//!
//! A program has more signs, comments, macro arguments and lines of its own for the compiler
//! (`program.rs`); everything else is the same for both.

mod number;
mod program;

use crate::ast::{Number, Text};
use crate::error::{Problem, Span};

pub use program::Macros;

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Integer(Number),
    Text(Text),
    Name(String),
    /// An operator, a parenthesis, or another sign of the language.
    Sign(&'static str),
    /// The `/` behind a predicate, which no value follows.
    PredicateEnd,
    /// Behind the last one.
    End,
}

/// The longer ones first.
const SIGNS: [&str; 30] = [
    "<<=", ">>=", "&&", "||", "^^", "==", "!=", "<=", ">=", "<<", ">>", "->", "++", "--", "+=",
    "-=", "*=", "/=", "%=", "&=", "|=", "^=", "=", "<", ">", "(", ")", "?", ":", "!",
];
const SINGLE: [&str; 11] = ["~", "+", "-", "*", "/", "%", "&", "|", "^", ",", "."];
/// Those that only a program has.
const PROGRAM_SIGNS: [&str; 6] = ["{", "}", "[", "]", ";", "@"];

/// Reads a text one token after another: a program's, or a condition's.
pub(crate) struct Lexer<'a, const PROGRAM: bool> {
    text: &'a str,
    at: usize,
    /// What the macros of a program stand for; a condition has none.
    program: Option<&'a Macros>,
    /// The lines of a program that begin with `#`, without it.
    pub(crate) directives: Vec<Span>,
    /// Whether macro arguments that were not given are 0 and "".
    default_arguments: bool,
}

impl<'a, const PROGRAM: bool> Lexer<'a, PROGRAM> {
    /// Of a text without macros.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, program: None, directives: Vec::new(), default_arguments: false }
    }

    /// The next token, and its place.
    pub(crate) fn next(&mut self) -> Result<(Token, Span), Problem> {
        self.skip_blank()?;
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
            '$' if PROGRAM => self.macro_argument()?,
            '`' if PROGRAM => {
                let advice = "variables of the kernel are not known";
                return Err(Problem::new(start..start + 1, "names by ` are not supported", advice));
            }
            '/' if PROGRAM && self.ends_predicate() => {
                self.at += 1;
                Token::PredicateEnd
            }
            _ if PROGRAM && self.program_sign().is_some() => {
                let sign = self.program_sign().unwrap_or_default();
                self.at += sign.len();
                Token::Sign(sign)
            }
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

    /// Goes on behind blanks, and in a program behind comments and lines for the compiler.
    pub(crate) fn skip_blank(&mut self) -> Result<(), Problem> {
        let rest = &self.text[self.at..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']).len();
        self.at += blank;
        match PROGRAM {
            true => self.skip_comments(),
            false => Ok(()),
        }
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
        Ok(Token::Integer(Number::int(u64::from(value))))
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

/// Letters, digits and underscores at the beginning.
pub(crate) fn word(text: &str) -> usize {
    text.find(|one: char| !one.is_ascii_alphanumeric() && one != '_').unwrap_or(text.len())
}

/// The end of a character in quotes whose first one stands at `start`.
fn floor_end(text: &str, start: usize) -> usize {
    let mut signs = text[start..].char_indices().skip(2);
    signs.next().map_or(text.len(), |(at, _)| start + at)
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
