//! `iotomy complete`, by which the shells' scripts get the candidates at the cursor.
//!
//! All knowledge of the command line is here; a script only displays it, and asks its own shell for
//! files, users and the arguments of other commands. The answer is one line that names the
//! additions of the shell, one with the unchanged part of the word, and a line for each value, with
//! its description after a tab. Failed lookups are silent: the user is in the middle of a line.

mod kinds;
pub(crate) mod line;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Arg, Command, ValueHint};

use self::line::{Line, Place};
use crate::screen::shown;

/// The scripts, by the file names that their shells expect.
pub(super) const SCRIPTS: [(&str, &str); 3] = [
    ("iotomy.bash", include_str!("complete/iotomy.bash")),
    ("_iotomy", include_str!("complete/iotomy.zsh")),
    ("iotomy.fish", include_str!("complete/iotomy.fish")),
];

/// The verb's name.
pub(crate) const NAME: &str = "complete";

/// Print what may stand at the cursor of a command line; for the scripts of `iotomy generate completions`
#[derive(Debug, clap::Args)]
pub(crate) struct CompleteArgs {
    /// The words up to the cursor, the first of which is iotomy
    #[arg(value_name = "WORD", last = true)]
    words: Vec<OsString>,
}

/// The candidates at the cursor.
#[derive(Debug)]
struct Answer {
    add: Add,
    /// The part of the word that stays.
    fixed: String,
    values: Vec<Candidate>,
}

/// A value, and its description.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate(String, String);

/// The candidates that the shell adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Add {
    Nothing,
    Files,
    Folders,
    Users,
    /// Names of commands, as the word is a line for a shell.
    Commands,
    /// The candidates for the command that begins with the word of this number.
    Command(usize),
}

/// Prints the answer.
pub(crate) fn run(args: &CompleteArgs, root: Command) -> Result<ExitCode> {
    let mut root = root.disable_help_subcommand(true);
    root.build();
    let words: Vec<String> =
        args.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let answer = Answer::for_words(&root, &words).text();
    // A shell that does not listen has nothing to complete.
    let _ = io::stdout().write_all(answer.as_bytes());
    Ok(ExitCode::SUCCESS)
}

impl Answer {
    fn for_words(root: &Command, words: &[String]) -> Self {
        let line = Line::read(root, words);
        let word = words.last().map_or("", String::as_str);
        let plain = |add, values| Self { add, fixed: String::new(), values };
        match line.place {
            Place::Verb => plain(Add::Nothing, verbs(line.command)),
            Place::Option => plain(Add::Nothing, options(line.command)),
            Place::Command(first) => plain(Add::Command(first), Vec::new()),
            Place::Nothing => plain(Add::Nothing, Vec::new()),
            Place::Value(argument, at) => Self::value(&line, argument, word, at),
        }
    }

    fn value(line: &Line<'_>, argument: &Arg, word: &str, mut at: usize) -> Self {
        let mut given = Vec::new();
        if let Some(delimiter) = argument.get_value_delimiter() {
            let values = word.get(at..).unwrap_or_default();
            let last = values.rfind(delimiter).map_or(0, |end| end + delimiter.len_utf8());
            given = values[..last].split(delimiter).collect();
            at += last;
        }
        let kind = kinds::for_argument(&line.name, argument.get_id().as_str());
        let (add, values) = match kind {
            Some(kind) => {
                let rest = word.get(at..).unwrap_or_default();
                let (add, inner, values) = kind.candidates(rest, &line.positionals);
                at += inner;
                (add, values)
            }
            None => (paths(argument), possible(argument)),
        };
        let mut values: Vec<Candidate> =
            values.into_iter().filter(|one| !given.contains(&one.0.as_str())).collect();
        // It would be several lines, or a column of its own.
        values.retain(|one| !one.0.is_empty() && !one.0.contains(char::is_control));
        Self { add, fixed: word.get(..at).unwrap_or_default().to_owned(), values }
    }

    fn text(&self) -> String {
        let add = match self.add {
            Add::Nothing => String::from("values"),
            Add::Files => String::from("files"),
            Add::Folders => String::from("folders"),
            Add::Users => String::from("users"),
            Add::Commands => String::from("commands"),
            Add::Command(first) => format!("command {first}"),
        };
        let mut text = format!("{add}\n{}\n", self.fixed);
        for Candidate(value, says) in &self.values {
            let says = says.lines().next().unwrap_or_default();
            text.push_str(value);
            if !says.is_empty() {
                text.push('\t');
                text.push_str(&shown(says));
            }
            text.push('\n');
        }
        text
    }
}

fn verbs(command: &Command) -> Vec<Candidate> {
    let lower = command.get_subcommands().filter(|lower| !lower.is_hide_set());
    let about = |lower: &Command| lower.get_about().map(ToString::to_string).unwrap_or_default();
    lower.map(|lower| Candidate(lower.get_name().to_owned(), about(lower))).collect()
}

fn options(command: &Command) -> Vec<Candidate> {
    let shown = command.get_arguments().filter(|one| !one.is_hide_set() && !one.is_positional());
    let each = shown.flat_map(|one| {
        let help = one.get_help().map(ToString::to_string).unwrap_or_default();
        let long = one.get_long().map(|name| format!("--{name}"));
        let short = one.get_short().map(|sign| format!("-{sign}"));
        long.into_iter().chain(short).map(move |name| Candidate(name, help.clone()))
    });
    each.collect()
}

/// Whether an argument of a verb names commands, processes or users: what is run or watched, and as whom.
pub(crate) fn chooses_subject(verb: &str, argument: &str) -> bool {
    kinds::for_argument(verb, argument).is_some_and(kinds::Kind::is_subject)
}

/// The values that are declared with the argument.
fn possible(argument: &Arg) -> Vec<Candidate> {
    let values = argument.get_possible_values();
    let help = |value: &clap::builder::PossibleValue| {
        value.get_help().map(ToString::to_string).unwrap_or_default()
    };
    let shown = values.iter().filter(|value| !value.is_hide_set());
    shown.map(|value| Candidate(value.get_name().to_owned(), help(value))).collect()
}

/// Whether the value is a path.
fn paths(argument: &Arg) -> Add {
    let is_folder =
        argument.get_value_names().is_some_and(|names| names.iter().any(|name| name == "DIR"));
    match argument.get_value_hint() {
        ValueHint::AnyPath if is_folder => Add::Folders,
        ValueHint::AnyPath => Add::Files,
        _ => Add::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn root() -> Command {
        let mut root = Cli::command();
        root.build();
        root
    }

    fn answer(words: &[&str]) -> (String, String, Vec<String>) {
        let words: Vec<String> =
            ["iotomy"].iter().chain(words).map(|word| word.to_string()).collect();
        let text = Answer::for_words(&root(), &words).text();
        let mut lines = text.lines().map(str::to_owned);
        let (add, fixed) = (lines.next().unwrap(), lines.next().unwrap());
        (add, fixed, lines.map(|line| line.split('\t').next().unwrap().to_owned()).collect())
    }

    #[test]
    fn values_of_a_list_that_are_given_are_not_offered_again() {
        let (add, fixed, values) = answer(&["limits", "--only=syscall,memory-copy,"]);
        assert_eq!((add.as_str(), fixed.as_str()), ("values", "--only=syscall,memory-copy,"));
        assert!(!values.contains(&"syscall".into()) && values.len() > 5, "{values:?}");
    }

    #[test]
    fn a_hidden_verb_is_not_offered() {
        let (_, _, values) = answer(&[""]);
        assert!(values.contains(&"trace".into()) && !values.contains(&"complete".into()));
    }

    #[test]
    fn an_axis_is_completed_by_the_experiments_named_and_then_its_values_are() {
        let (_, fixed, values) = answer(&["lab", "run", "null-sink", "-L", "si"]);
        assert_eq!((fixed.as_str(), values.contains(&"size=".into())), ("", true));
        assert!(values.iter().all(|value| value.ends_with('=')), "{values:?}");
        let (_, all, _) = answer(&["lab", "run", "-L", "si"]);
        assert_eq!(all, "");
        let (_, fixed, values) = answer(&["lab", "run", "null-sink", "-L", "size=64M,"]);
        assert_eq!(fixed, "size=64M,");
        assert!(!values.is_empty() && values.iter().all(|value| !value.contains('=')));
    }

    #[test]
    fn a_denial_has_a_label_a_call_and_an_error() {
        let (_, fixed, values) = answer(&["race", "--deny", "B:copy"]);
        assert_eq!((fixed.as_str(), values.contains(&"copy_file_range".into())), ("B:", true));
        let (_, fixed, values) = answer(&["race", "--deny=B:splice=E"]);
        assert_eq!((fixed.as_str(), values.contains(&"EINVAL".into())), ("--deny=B:splice=", true));
    }

    /// Arguments that are a number, a time, a size or a text of the user's own.
    const FREE: &[&str] = &[
        "agent budget",
        "agent cgroup",
        "agent listen",
        "agent max_services",
        "agent otlp",
        "agent otlp_interval",
        "anatomy duration",
        "anatomy rate",
        "anatomy timeline",
        "anatomy top",
        "anatomy where",
        "copy block_size",
        "copy count",
        "copy depth",
        "copy seek",
        "copy skip",
        "copy threads",
        "d arguments",
        "d duration",
        "d program",
        "diff top",
        "export machine",
        "history list last",
        "history show top",
        "history trend last",
        "history trend measure",
        "lab run machine",
        "lab run max_time",
        "lab run seed",
        "lab run shard",
        "race axes",
        "race max_time",
        "race min_effect",
        "race redo",
        "race runs",
        "race seed",
        "race warmup",
        "report part",
        "show top",
        "trace duration",
        "trace interval",
        "trace keep",
        "trace max_rows",
        "trace ring",
        "trace sample",
        "trace slowest",
        "trace top",
        "trace until",
        "trace where",
    ];

    #[test]
    fn every_value_is_completed_or_free() {
        fn collect_free(command: &Command, name: &str, free: &mut Vec<String>) {
            for argument in command.get_arguments().filter(|one| one.get_action().takes_values()) {
                let id = argument.get_id().as_str();
                let is_known = kinds::for_argument(name, id).is_some()
                    || !argument.get_possible_values().is_empty()
                    || paths(argument) != Add::Nothing
                    || argument.is_trailing_var_arg_set();
                if !is_known {
                    free.push(format!("{name} {id}"));
                }
            }
            for lower in command.get_subcommands().filter(|lower| !lower.is_hide_set()) {
                collect_free(lower, &crate::manual::below(name, lower), free);
            }
        }
        let mut free = Vec::new();
        collect_free(&root(), "", &mut free);
        free.sort();
        assert_eq!(free, FREE);
    }

    #[test]
    fn every_declared_kind_is_of_an_argument() {
        for (verb, id, kind) in kinds::KINDS {
            let mut commands = vec![(String::new(), root())];
            let mut is_there = false;
            while let Some((name, command)) = commands.pop() {
                let has = command.get_arguments().any(|one| one.get_id() == *id);
                is_there |= has && (verb.is_empty() || name == *verb);
                let lower = command.get_subcommands();
                commands.extend(lower.map(|one| (crate::manual::below(&name, one), one.clone())));
            }
            assert!(is_there, "{verb} {id}: {kind:?}");
        }
    }
}
