//! The message for a word of the command line that is not UTF-8 where a text is wanted: the parser says only that
//! there is one.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::error::ErrorKind;
use clap::{Arg, Command, CommandFactory};
use iotomy_record::path_text;

use crate::cli::Cli;

const IN_A_STRING: &str = "write such a byte as \\xNN in a string";
const IN_A_SCRIPT: &str = "put the command into a script, and run that";

/// What to write in the place of such a byte, by the id of the option.
const ADVICE: [(&str, &str); 7] = [
    ("where", IN_A_STRING),
    ("until", IN_A_STRING),
    ("program", IN_A_STRING),
    ("command", IN_A_SCRIPT),
    ("prepare", IN_A_SCRIPT),
    ("setup", IN_A_SCRIPT),
    ("cleanup", IN_A_SCRIPT),
];

/// The same, by the id of the argument.
const ADVICE_ON_ARGUMENTS: [(&str, &str); 1] =
    [("commands", "put the command into a script, and race that")];

/// The message, if that is the parser's error.
pub(crate) fn message(error: &clap::Error, words: &[OsString]) -> Option<String> {
    if error.kind() != ErrorKind::InvalidUtf8 {
        return None;
    }
    let at = (0..words.len()).find(|at| is_refused(words, *at))?;
    let parser = Cli::command();
    let Value { option, of, text } = argument(verb(&parser, words), words, at);
    let advice = if option.is_some() { &ADVICE[..] } else { &ADVICE_ON_ARGUMENTS };
    let known = advice.iter().find(|(id, _)| of.is_some_and(|of| of.get_id() == *id));
    let advice = known.map_or("use a name that is UTF-8", |(_, advice)| advice);
    let place = option.map_or_else(String::new, |option| format!(" for {option}"));
    Some(format!("invalid value{place}: {} is not UTF-8; {advice}", path_text(text)))
}

/// Whether the parser refuses this word alone, with the others made UTF-8.
fn is_refused(words: &[OsString], at: usize) -> bool {
    if words[at].to_str().is_some() {
        return false;
    }
    let words = words.iter().enumerate().map(|(other, word)| match other == at {
        true => word.clone(),
        false => word.to_string_lossy().into_owned().into(),
    });
    let parser: Command = Cli::command();
    let parsed = parser.try_get_matches_from(words.collect::<Vec<OsString>>());
    parsed.is_err_and(|error| error.kind() == ErrorKind::InvalidUtf8)
}

/// A value on the command line.
struct Value<'a> {
    /// The option as it is written there; `None` for an argument.
    option: Option<String>,
    /// What it is a value of.
    of: Option<&'a Arg>,
    text: &'a OsStr,
}

/// The command that the words begin with.
fn verb<'a>(parser: &'a Command, words: &[OsString]) -> &'a Command {
    let mut verb = parser;
    for word in words.iter().skip(1) {
        match word.to_str().and_then(|word| verb.find_subcommand(word)) {
            Some(found) => verb = found,
            None => break,
        }
    }
    verb
}

/// Which option or argument the word belongs to, and what of the word is the value.
fn argument<'a>(verb: &'a Command, words: &'a [OsString], at: usize) -> Value<'a> {
    let text = words[at].as_os_str();
    // The last argument takes all words that are left.
    let argument = Value { option: None, of: verb.get_positionals().last(), text };
    if words[..at].iter().any(|word| word == "--") {
        return argument;
    }
    if let Some((option, of, Some(text))) = option_in(verb, text) {
        return Value { option: Some(option), of: Some(of), text };
    }
    let before = at.checked_sub(1).and_then(|before| option_in(verb, &words[before]));
    match before {
        Some((option, of, None)) if !of.is_require_equals_set() => {
            Value { option: Some(option), of: Some(of), text }
        }
        _ => argument,
    }
}

/// The option in a word that takes a value, and that value, where the word has it too. A flag takes none.
fn option_in<'a>(
    verb: &'a Command,
    word: &'a OsStr,
) -> Option<(String, &'a Arg, Option<&'a OsStr>)> {
    let named = |is_it: &dyn Fn(&Arg) -> bool| verb.get_arguments().find(|arg| is_it(arg));
    let bytes = word.as_bytes();
    if let Some(long) = bytes.strip_prefix(b"--") {
        let equals = long.iter().position(|byte| *byte == b'=');
        let (name, value) = long.split_at(equals.unwrap_or(long.len()));
        let name = str::from_utf8(name).ok()?;
        let of = named(&|arg| arg.get_long() == Some(name))?;
        let value = value.strip_prefix(b"=").map(OsStr::from_bytes);
        return takes_value(of).then(|| (format!("--{name}"), of, value));
    }
    let mut letters = bytes.strip_prefix(b"-")?;
    while let [letter, rest @ ..] = letters {
        let letter = char::from(*letter);
        let of = named(&|arg| arg.get_short() == Some(letter))?;
        if takes_value(of) {
            let value = rest.strip_prefix(b"=").unwrap_or(rest);
            let value = (!rest.is_empty()).then(|| OsStr::from_bytes(value));
            return Some((format!("-{letter}"), of, value));
        }
        letters = rest;
    }
    None
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}
