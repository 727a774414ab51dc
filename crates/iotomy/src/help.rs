//! The parts of help and man pages besides the options: exit status, environment, files, examples.
//!
//! Each verb declares its own part ([`Manual`]) beside its options; environment and files follow
//! from the options of the verb ([`surroundings`]). Help builds them only on request, so that other
//! starts do not pay for the text.

mod page;
mod surroundings;
#[cfg(test)]
mod tests;

use std::io::stdout;

use clap::{Command, CommandFactory};

pub(crate) use self::page::page;
use self::surroundings::{ENVIRONMENT, FILES, facts};
use crate::cli::{self, Cli};
use crate::manual::{Manual, below};
use crate::screen::OutputStyle;
use crate::verbs;

/// The declaration of a verb, or of a subcommand, as in `history list`; that of iotomy itself where
/// the name is empty.
fn manual(name: &str) -> Option<&'static Manual> {
    let own: [(&str, &Manual); 17] = [
        ("", &cli::MANUAL),
        ("trace", &verbs::trace::MANUAL),
        ("anatomy", &verbs::anatomy::MANUAL),
        ("race", &verbs::race::MANUAL),
        ("copy", &verbs::copy::MANUAL),
        ("diff", &verbs::diff::MANUAL),
        ("show", &verbs::show::MANUAL),
        ("report", &verbs::report::MANUAL),
        ("limits", &verbs::limits::MANUAL),
        ("lab", &verbs::lab::MANUAL),
        ("history", &verbs::history::MANUAL),
        ("export", &verbs::export::MANUAL),
        ("agent", &verbs::agent::MANUAL),
        ("doctor", &verbs::doctor::MANUAL),
        ("d", &verbs::d::MANUAL),
        ("ports", &verbs::ports::MANUAL),
        ("generate", &verbs::generate::MANUAL),
    ];
    let below = verbs::history::MANUALS.iter().chain(verbs::lab::MANUALS).copied();
    own.into_iter().chain(below).find(|(of, _)| *of == name).map(|(_, manual)| manual)
}

/// The answer to `-h` or `--help`: the parser's, with the declared parts.
pub(crate) fn help(words: impl Iterator<Item = std::ffi::OsString>) -> Option<clap::Error> {
    let width = OutputStyle::default().on(&stdout()).width - 2;
    with_manual(Cli::command(), "", width).try_get_matches_from(words).err()
}

fn with_manual(command: Command, name: &str, width: usize) -> Command {
    let Some(manual) = manual(name) else { return command };
    let long = long_help(manual, name, &command, width);
    let command = command.mut_subcommands(|one| {
        let name = below(name, &one);
        with_manual(one, &name, width)
    });
    command.after_help(short_help(manual, width)).after_long_help(long)
}

/// The examples alone.
fn short_help(manual: &Manual, width: usize) -> String {
    let mut text = String::from("Examples:");
    for line in manual.examples.iter().flat_map(|(lines, _)| lines.lines()) {
        text.push('\n');
        text.push_str(&continued(line, 2, width));
    }
    text
}

fn long_help(manual: &Manual, name: &str, command: &Command, width: usize) -> String {
    let mut text = String::new();
    let sections = [
        ("Exit status", manual.status.to_vec()),
        ("Environment", facts(ENVIRONMENT, name, command)),
        ("Files", facts(FILES, name, command)),
    ];
    for (heading, facts) in sections.into_iter().filter(|(_, facts)| !facts.is_empty()) {
        text.push_str(&format!("{heading}:\n"));
        for (name, says) in facts {
            text.push_str(&format!("  {name}\n{}", wrapped(says, 10, width)));
        }
        text.push('\n');
    }
    text.push_str("Examples:");
    for (lines, says) in manual.examples {
        text.push_str(&format!("\n{}", wrapped(says, 2, width)));
        let lines: Vec<String> = lines.lines().map(|line| continued(line, 6, width)).collect();
        text.push_str(&lines.join("\n"));
    }
    text
}

/// A line for a shell in lines of at most `width` columns, each but the last with a backslash at its end: the parser would
/// wrap it without. A word, which quotes hold together, stays whole.
fn continued(line: &str, indent: usize, width: usize) -> String {
    const BACKSLASH: &str = " \\";
    let mut text = format!("{}{line}", " ".repeat(indent));
    if text.chars().count() <= width {
        return text;
    }
    text.clear();
    let (mut quote, mut column) = (None, 0);
    let words = line.split(|sign| {
        match quote {
            None if ['\'', '"'].contains(&sign) => quote = Some(sign),
            Some(open) if open == sign => quote = None,
            _ => {}
        }
        quote.is_none() && sign == ' '
    });
    for word in words {
        let wide = word.chars().count();
        if text.is_empty() {
            text = " ".repeat(indent);
            column = indent;
        } else if column + 1 + wide + BACKSLASH.len() > width {
            text = format!("{text}{BACKSLASH}\n{}", " ".repeat(indent + 4));
            column = indent + 4;
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += wide;
    }
    text
}

/// A text in lines of at most `width` columns, each with its end.
fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let (mut lines, mut column) = (String::new(), usize::MAX);
    for word in text.split(' ') {
        let wide = word.chars().count();
        if column.saturating_add(1 + wide) > width {
            if !lines.is_empty() {
                lines.push('\n');
            }
            lines.push_str(&" ".repeat(indent));
            column = indent + wide;
        } else {
            lines.push(' ');
            column += 1 + wide;
        }
        lines.push_str(word);
    }
    lines + "\n"
}
