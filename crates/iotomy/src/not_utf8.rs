//! The message for a word of the command line that is not UTF-8 where a text is wanted: the parser says only that
//! there is one.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory};
use iotomy_record::path_text;

use crate::cli::Cli;

/// What to write in the place of such a byte, by the option; else that of a word that is none's.
const ADVICE: [(&str, &str); 4] = [
    ("--where", "write such a byte as \\xNN in a string"),
    ("--until", "write such a byte as \\xNN in a string"),
    ("-n", "write such a byte as \\xNN in a string"),
    ("-c", "put the command into a script, and run that"),
];

/// The message, if that is the parser's error.
pub(crate) fn message(error: &clap::Error, words: &[OsString]) -> Option<String> {
    if error.kind() != ErrorKind::InvalidUtf8 {
        return None;
    }
    let at = (0..words.len()).find(|at| is_refused(words, *at))?;
    let word = path_text(&words[at]);
    let text = words[at].to_string_lossy();
    let before = at.checked_sub(1).and_then(|before| words[before].to_str());
    let (option, value) = match (text.split_once('='), before) {
        (Some((option, _)), _) if option.starts_with("--") => {
            (Some(option), word.get(option.len() + 1..).unwrap_or_default().to_owned())
        }
        (_, Some(option)) if option.len() > 1 && option.starts_with('-') && option != "--" => {
            (Some(option), word)
        }
        _ => (None, word),
    };
    let verb = words.get(1).and_then(|verb| verb.to_str());
    let known = option.and_then(|option| ADVICE.iter().find(|(name, _)| *name == option));
    let advice = match (known, verb) {
        (Some((_, advice)), _) => advice,
        (None, Some("race")) if option.is_none() => "put the command into a script, and race that",
        _ => "use a name that is UTF-8",
    };
    let place = option.map_or_else(String::new, |option| format!(" for {option}"));
    Some(format!("invalid value{place}: {value} is not UTF-8; {advice}"))
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
