//! A command line up to the cursor, and the candidates there by its declaration.

use clap::{Arg, ArgAction, Command};

use crate::manual::below;

/// The role of the word at the cursor.
#[derive(Debug)]
pub(crate) enum Place<'a> {
    /// A verb.
    Verb,
    /// An option.
    Option,
    /// A value of this argument, after this many bytes of the word.
    Value(&'a Arg, usize),
    /// A word of the command that iotomy runs, which begins with the word of this number.
    Command(usize),
    /// Nothing more is taken.
    Nothing,
}

/// A command line.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// The command of the verb, if there is one yet.
    pub(crate) command: &'a Command,
    /// Its name, as in `history list`.
    pub(crate) name: String,
    /// The positional arguments before the cursor.
    pub(crate) positionals: Vec<String>,
    pub(crate) place: Place<'a>,
}

impl<'a> Line<'a> {
    /// Parses the words of a command line, from iotomy itself to the word at the cursor.
    pub(crate) fn read(root: &'a Command, words: &[String]) -> Self {
        let mut line =
            Self { command: root, name: String::new(), positionals: vec![], place: Place::Nothing };
        let Some((current, before)) = words.split_last() else { return line };
        let (mut takes_options, mut waiting) = (true, None);
        for (at, word) in before.iter().enumerate().skip(1) {
            if waiting.take().is_some() {
                continue;
            }
            if takes_options && word == "--" {
                takes_options = false;
            } else if let Some(option) = option(word).filter(|_| takes_options) {
                waiting = line.value_behind(option);
            } else if let Some(lower) = line.command.find_subcommand(word) {
                line.name = below(&line.name, lower);
                line.command = lower;
            } else if line.positional().is_some_and(Arg::is_trailing_var_arg_set) {
                line.place = Place::Command(at);
                return line;
            } else {
                line.positionals.push(word.clone());
            }
        }
        line.place = match waiting {
            Some(argument) => Place::Value(argument, 0),
            None if takes_options && current.starts_with('-') => line.at_option(current),
            None if line.command.has_subcommands() => Place::Verb,
            None => match line.positional() {
                Some(first) if first.is_trailing_var_arg_set() => Place::Command(before.len()),
                Some(argument) => Place::Value(argument, 0),
                None => Place::Nothing,
            },
        };
        line
    }

    /// The positional argument that the next word is one of.
    fn positional(&self) -> Option<&'a Arg> {
        let all: Vec<&Arg> = self.command.get_positionals().collect();
        let is_repeated = |one: &&&Arg| matches!(one.get_action(), ArgAction::Append);
        all.get(self.positionals.len()).or_else(|| all.last().filter(is_repeated)).copied()
    }

    /// The option whose value is the next word, if any.
    fn value_behind(&self, option: Written<'_>) -> Option<&'a Arg> {
        let takes = |argument: &&Arg| takes_value(argument) && !argument.is_require_equals_set();
        match option {
            Written::Long(_, Some(_)) => None,
            Written::Long(name, None) => self.long(name).filter(takes),
            Written::Short(signs) => {
                let (at, argument) = self.short_with_value(signs)?;
                Some(argument).filter(takes).filter(|_| at == signs.len())
            }
        }
    }

    fn at_option(&self, word: &str) -> Place<'a> {
        let value = match option(word) {
            Some(Written::Long(name, Some(at))) => {
                self.long(name).filter(|one| takes_value(one)).map(|argument| (at, argument))
            }
            Some(Written::Short(signs)) => {
                self.short_with_value(signs).map(|(at, one)| (at + 1, one))
            }
            _ => return Place::Option,
        };
        match value {
            Some((at, argument)) if at < word.len() || word.contains('=') => {
                Place::Value(argument, at)
            }
            _ => Place::Option,
        }
    }

    fn long(&self, name: &str) -> Option<&'a Arg> {
        self.command.get_arguments().find(|one| one.get_long() == Some(name))
    }

    /// The first of these short options that takes a value, and the place behind it.
    fn short_with_value(&self, signs: &str) -> Option<(usize, &'a Arg)> {
        let of =
            |sign: char| self.command.get_arguments().find(|one| one.get_short() == Some(sign));
        signs.char_indices().find_map(|(at, sign)| {
            of(sign).filter(|one| takes_value(one)).map(|one| (at + sign.len_utf8(), one))
        })
    }
}

/// An option as it is written.
enum Written<'a> {
    /// The name, and where its value begins in the word.
    Long(&'a str, Option<usize>),
    /// The letters.
    Short(&'a str),
}

fn option(word: &str) -> Option<Written<'_>> {
    match word.strip_prefix("--") {
        Some(long) => match long.split_once('=') {
            Some((name, _)) => Some(Written::Long(name, Some(name.len() + 3))),
            None => Some(Written::Long(long, None)),
        },
        None => word.strip_prefix('-').filter(|signs| !signs.is_empty()).map(Written::Short),
    }
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn place(words: &[&str]) -> String {
        let mut root = Cli::command();
        root.build();
        let words: Vec<String> =
            ["iotomy"].iter().chain(words).map(|word| word.to_string()).collect();
        let line = Line::read(&root, &words);
        match line.place {
            Place::Value(argument, at) => format!("{} {} {at}", line.name, argument.get_id()),
            place => format!("{} {place:?}", line.name),
        }
    }

    #[test]
    fn the_place_of_a_word_follows_from_the_words_before_it() {
        for (words, expected) in [
            (&[""][..], " Verb"),
            (&["-"], " Option"),
            (&["tr"], " Verb"),
            (&["lab", ""], "lab Verb"),
            (&["lab", "run", ""], "lab run names 0"),
            (&["lab", "run", "copy", "her"], "lab run names 0"),
            (&["lab", "run", "-L", "si"], "lab run axes 0"),
            (&["lab", "run", "-Lsi"], "lab run axes 2"),
            (&["limits", "--only", ""], "limits only 0"),
            (&["limits", "--only="], "limits only 7"),
            (&["limits", "--only=a,b"], "limits only 7"),
            (&["limits", "x"], "limits Nothing"),
            (&["trace", "--ob"], "trace Option"),
            (&["trace", "-"], "trace Option"),
            (&["trace", "-p", "1"], "trace pid 0"),
            (&["trace", "-qp", "1"], "trace pid 0"),
            (&["trace", "-qp1"], "trace pid 3"),
            (&["trace", "--save", ""], "trace Command(3)"),
            (&["trace", "--save=ma"], "trace save 7"),
            (&["trace", "--", ""], "trace Command(3)"),
            (&["trace", "-q", "--", "ls", "-"], "trace Command(4)"),
            (&["trace", "-q", "ls", "--color"], "trace Command(3)"),
            (&["trace", "--files", "l"], "trace Command(3)"),
            (&["race", "ls", ""], "race commands 0"),
            (&["race", "--", "-"], "race commands 0"),
            (&["copy", "a", "--json", "b"], "copy json 0"),
            (&["history", "name", "3", ""], "history name name 0"),
            (&["history", "name", "3", "x", ""], "history name Nothing"),
        ] {
            assert_eq!(place(words), expected, "{words:?}");
        }
    }
}
