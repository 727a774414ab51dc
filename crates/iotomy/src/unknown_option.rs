//! The message for an unknown option: the closest one, and where to look. The parser's own advice,
//! to write it behind `--`, would make it a file to copy or a command to run.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory};

use crate::cli::Cli;
use crate::manual::below;
use crate::verbs::complete::line::Line;

/// The message about an unknown option, if the parser reports one; `words` is the command line.
pub(crate) fn message(error: &clap::Error, words: &[String]) -> Option<String> {
    // Other errors name options, too: two that exclude each other.
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let unknown = context(ContextKind::InvalidArg).filter(|word| word.starts_with('-'))?;
    let at = words.iter().position(|word| is_written(unknown, word))?;
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let line = Line::read(&root, &words[..=at]);
    let is_verb = !line.command.has_subcommands();
    let similar = context(ContextKind::SuggestedArg).map(str::to_owned);
    let hint = if !line.positionals.is_empty() && takes_quoted_commands(line.command) {
        Some(String::from("quote a command with its options as one word, as in 'ls -l';"))
    } else if let Some(option) = similar.or_else(|| like_short(line.command, unknown)) {
        Some(format!("is it {option}?"))
    } else {
        elsewhere(&root, "", unknown).map(|other| match is_verb {
            true => format!("{other} has one;"),
            false => format!("options stand behind the verb, as in iotomy {other} {unknown};"),
        })
    };
    let hint = hint.map(|hint| hint + " ").unwrap_or_default();
    Some(match line.name.as_str() {
        "" => format!("there is no option {unknown}; {hint}see iotomy --help"),
        verb => format!("{verb} has no option {unknown}; {hint}see iotomy {verb} --help"),
    })
}

/// Whether a word of the command line is this option, or several with this one among them.
fn is_written(option: &str, word: &str) -> bool {
    match option.strip_prefix("--") {
        Some(_) => word.split('=').next() == Some(option),
        None => {
            let is_short = word.starts_with('-') && !word.starts_with("--");
            is_short && word.chars().skip(1).any(|sign| option.ends_with(sign))
        }
    }
}

/// Whether the commands that a verb takes are a word each.
fn takes_quoted_commands(verb: &Command) -> bool {
    let is_command = |one: &Arg| one.get_value_names().is_some_and(|names| names[0] == "CMD");
    verb.get_positionals().any(|one| is_command(one) && !one.is_trailing_var_arg_set())
}

/// The option that an unknown short one may mean: the same letter in the other case, or the first
/// long option that begins with it.
fn like_short(verb: &Command, unknown: &str) -> Option<String> {
    let sign =
        unknown.strip_prefix('-').filter(|signs| signs.chars().count() == 1)?.chars().next()?;
    let options = || verb.get_arguments().filter(|one| !one.is_hide_set());
    let short = |one: &Arg| one.get_short().filter(|other| other.eq_ignore_ascii_case(&sign));
    let long = |one: &Arg| one.get_long().filter(|name| name.starts_with(sign)).map(str::to_owned);
    let other = options().find_map(short).map(|sign| format!("-{sign}"));
    other.or_else(|| options().find_map(long).map(|name| format!("--{name}")))
}

/// The first verb below that has the option.
fn elsewhere(command: &Command, name: &str, option: &str) -> Option<String> {
    let has = |one: &Arg| {
        one.get_long().is_some_and(|long| option.strip_prefix("--") == Some(long))
            || one
                .get_short()
                .is_some_and(|short| option.strip_prefix('-') == Some(&short.to_string()))
    };
    command.get_subcommands().filter(|lower| !lower.is_hide_set()).find_map(|lower| {
        let name = below(name, lower);
        let is_here = lower.get_arguments().any(has);
        if is_here { Some(name) } else { elsewhere(lower, &name, option) }
    })
}
