//! The command line with the defaults of the configuration.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use super::Setting;
use crate::manual::below;

/// The command `fresh`, which has parsed nothing, with defaults for the verb that was given, or nothing where it has none. An option on the
/// command line goes before its default, and before that of an option it excludes.
pub(crate) fn with_defaults(
    command: &Command,
    fresh: Command,
    given: &ArgMatches,
    settings: &[Setting],
) -> Option<Command> {
    let mut path = Vec::new();
    let (mut verb, mut matches) = (command, given);
    let mut name = String::new();
    while let Some((lower, inner)) = matches.subcommand() {
        verb = verb.find_subcommand(lower)?;
        name = below(&name, verb);
        path.push(lower.to_owned());
        matches = inner;
    }
    let mut wanted: Vec<&Setting> = Vec::new();
    for setting in settings.iter().filter(|one| one.verb == name) {
        let is_set = wanted.iter().any(|earlier| earlier.id == setting.id);
        if !is_set && setting.values != ["false"] && applies(verb, matches, setting) {
            wanted.push(setting);
        }
    }
    // One that says `false` goes before the `true` of a file that counts less.
    wanted.retain(|one| {
        let first = settings.iter().find(|other| other.is(&one.verb, &one.id));
        first == Some(*one)
    });
    if wanted.is_empty() {
        return None;
    }
    Some(set(fresh, &path, &wanted))
}

/// Whether a default counts beside what was given.
fn applies(verb: &Command, given: &ArgMatches, setting: &Setting) -> bool {
    let Some(argument) = verb.get_arguments().find(|one| one.get_id() == &setting.id) else {
        return false;
    };
    let is_given = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
    let excludes = |one: &clap::Arg, other: &str| {
        verb.get_arg_conflicts_with(one).iter().any(|excluded| excluded.get_id() == other)
    };
    let in_conflict =
        verb.get_arguments().filter(|one| is_given(one.get_id().as_str())).any(|one| {
            excludes(one, &setting.id)
                || excludes(argument, one.get_id().as_str())
                || share_a_group(verb, one, argument)
        });
    !is_given(&setting.id) && !in_conflict
}

/// Whether only one of the two may be given.
fn share_a_group(verb: &Command, one: &clap::Arg, other: &clap::Arg) -> bool {
    verb.get_groups().any(|group| {
        let has = |argument: &clap::Arg| group.get_args().any(|id| id == argument.get_id());
        !group.clone().is_multiple() && has(one) && has(other)
    })
}

fn set(command: Command, path: &[String], wanted: &[&Setting]) -> Command {
    match path.split_first() {
        Some((first, rest)) => command.mut_subcommand(first, |lower| set(lower, rest, wanted)),
        None => wanted.iter().fold(command, |command, setting| {
            // The parser holds texts that live as long as it does; it lives as long as the process.
            let values = setting.values.iter().map(|value| &*value.clone().leak());
            command.mut_arg(&setting.id, |argument| argument.default_values(values))
        }),
    }
}
