//! What only a program's text has: comments, lines for the compiler, macro arguments, the end of a
//! predicate, and the words of probe descriptions.

use super::{Lexer, PROGRAM_SIGNS, Token, word};
use crate::ast::{Number, Text};
use crate::error::{Problem, Span};
use crate::types::Integer;

/// What a program's macros (`$1`, `$target`…) stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Macros {
    /// `$0`, `$1`…: the script's name, then its arguments.
    pub arguments: Vec<String>,
    /// Whether arguments that were not given are 0 and "", as by the option `defaultargs`.
    pub defaults: bool,
    /// `$target`: the process of `-c` or `-p`.
    pub target: Option<i64>,
    /// `$pid`, `$ppid`, `$pgid`, `$sid`, `$uid`, `$euid`, `$gid` and `$egid` of the command itself.
    pub own: Vec<(&'static str, i64)>,
}

/// What separates words in a text.
const BLANKS: [char; 5] = [' ', '\t', '\n', '\r', '\u{c}'];

impl<'a, const PROGRAM: bool> Lexer<'a, PROGRAM> {
    /// Of a program.
    pub(crate) fn of_program(text: &'a str, macros: &'a Macros) -> Self {
        let default_arguments = macros.defaults;
        let mut lexer = Self { program: Some(macros), default_arguments, ..Self::new(text) };
        // The line that names an interpreter.
        if text.starts_with("#!") {
            lexer.at = text.find('\n').unwrap_or(text.len());
        }
        lexer
    }

    /// The place it has come to.
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// Goes back, or on, to a place between two tokens.
    pub(crate) fn go_to(&mut self, place: usize) {
        self.at = place.min(self.text.len());
    }

    /// The text from its place on.
    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The text of a place.
    pub(crate) fn text_of(&self, span: &Span) -> &'a str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    pub(super) fn skip_comments(&mut self) -> Result<(), Problem> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(BLANKS);
            self.at += rest.len() - trimmed.len();
            let start = self.at;
            if let Some(comment) = trimmed.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else {
                    self.at = self.text.len();
                    let advice = "it ends with */";
                    return Err(Problem::new(
                        start..start + 2,
                        "a comment without its end",
                        advice,
                    ));
                };
                self.at += end + 4;
            } else if trimmed.starts_with("//") && self.at_line_start() {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
                let advice = "a comment stands between /* and */";
                return Err(Problem::new(start..start + 2, "D has no comments by //", advice));
            } else if trimmed.starts_with('#') && self.at_line_start() {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
                if self.directives.last().is_none_or(|last| last.start < start) {
                    self.directives.push(start..self.at);
                }
                let words: Vec<&str> = self.text[start..self.at].split_whitespace().collect();
                self.default_arguments |= words.contains(&"defaultargs");
            } else {
                return Ok(());
            }
        }
    }

    /// Whether nothing but blanks stands before its place in the line.
    fn at_line_start(&self) -> bool {
        // No further back than the blanks, or long lines would take the square of their length.
        let before = self.text[..self.at].trim_end_matches([' ', '\t', '\r', '\u{c}']);
        before.is_empty() || before.ends_with('\n')
    }

    pub(super) fn program_sign(&self) -> Option<&'static str> {
        PROGRAM_SIGNS.into_iter().find(|sign| self.rest().starts_with(sign))
    }

    /// Whether the `/` here ends a predicate: behind it is `{`, `;`, `/` or nothing.
    pub(super) fn ends_predicate(&self) -> bool {
        if self.rest().starts_with("/=") {
            return false;
        }
        let mut behind = self.rest()[1..].trim_start_matches(BLANKS);
        while let Some(comment) = behind.strip_prefix("/*") {
            let end = comment.find("*/").map_or(comment.len(), |end| end + 2);
            behind = comment[end..].trim_start_matches(BLANKS);
        }
        behind.is_empty() || behind.starts_with(['{', ';', '/'])
    }

    /// `$1`, `$$1`, `$target`…: an integer, a name or a string.
    pub(super) fn macro_argument(&mut self) -> Result<Token, Problem> {
        let start = self.at;
        let is_text = self.rest().starts_with("$$");
        self.at += 1 + usize::from(is_text);
        let length = word(self.rest());
        let name = &self.rest()[..length];
        self.at += length;
        let span = start..self.at;
        let value = self.macro_value(name, &span)?;
        if is_text {
            return Ok(Token::Text(Text(value.bytes().map(|byte| (byte, true)).collect())));
        }
        if let Some(number) = integer(&value) {
            return Ok(Token::Integer(number));
        }
        let is_name =
            word(&value) == value.len() && !value.starts_with(|one: char| one.is_ascii_digit());
        match is_name && !value.is_empty() {
            true => Ok(Token::Name(value)),
            // A path, say.
            false => Ok(Token::Text(Text(value.bytes().map(|byte| (byte, true)).collect()))),
        }
    }

    /// What a macro stands for, as text.
    fn macro_value(&self, name: &str, span: &Span) -> Result<String, Problem> {
        let undefined = |advice: &str| {
            Err(Problem::new(span.clone(), format!("`${name}` is not defined"), advice))
        };
        let Some(macros) = self.program else {
            return undefined("");
        };
        if let Ok(number) = name.parse::<usize>() {
            return match macros.arguments.get(number) {
                Some(value) => Ok(value.clone()),
                None if self.default_arguments => {
                    let is_text = self.text[span.start..].starts_with("$$");
                    Ok(if is_text { String::new() } else { "0".to_owned() })
                }
                None => undefined(
                    "give the script more arguments, or write #pragma D option defaultargs",
                ),
            };
        }
        if name == "target" {
            return match macros.target {
                Some(process) => Ok(process.to_string()),
                None => undefined("give a command by -c, or a process by -p"),
            };
        }
        match macros.own.iter().find(|(own, _)| *own == name) {
            Some((_, value)) => Ok(value.to_string()),
            None => undefined(
                "the macros are $1 and so on, $target, $pid, $ppid, $pgid, $sid, $uid, $euid, $gid, $egid",
            ),
        }
    }

    /// A word of a probe description, with its macros put in; `None` where no such word begins.
    pub(crate) fn probe_word(&mut self) -> Result<Option<(String, Span)>, Problem> {
        let start = self.at;
        let is_part = |one: char| one.is_ascii_alphanumeric() || "-_.:?*[]!\\`$^".contains(one);
        let rest = self.rest();
        let length = rest.find(|one| !is_part(one)).unwrap_or(rest.len());
        if length == 0 {
            return Ok(None);
        }
        let mut description = String::new();
        let mut rest = &rest[..length];
        while let Some((before, behind)) = rest.split_once('$') {
            description.push_str(before);
            let behind = behind.strip_prefix('$').unwrap_or(behind);
            let name = &behind[..word(behind)];
            description.push_str(&self.macro_value(name, &(start..start + length))?);
            rest = &behind[name.len()..];
        }
        description.push_str(rest);
        self.at += length;
        Ok(Some((description, start..self.at)))
    }
}

/// A macro argument as an integer, which may have a sign.
fn integer(text: &str) -> Option<Number> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, body) = match lower.strip_prefix("0x") {
        Some(body) => (16, body),
        None if lower.len() > 1 && lower.starts_with('0') => (8, &lower[1..]),
        None => (10, &*lower),
    };
    if body.starts_with('+') {
        return None;
    }
    let value = u64::from_str_radix(body, radix).ok()?;
    let integer = Integer::of_constant(value, false, false, radix == 10);
    match is_negative {
        true => Some(Number {
            value: value.wrapping_neg(),
            integer: Integer { signed: true, ..integer },
        }),
        false => Some(Number { value, integer }),
    }
}
