//! The tables of a file, checked against the declarations of the command line.

use std::ops::Range;

use clap::builder::ValueHint;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command};
use iotomy_dtrace::nearest;
use toml::de::{DeTable, DeValue};

use crate::errors;
use crate::manual::below;

/// The one key that is not an option: whether every run is kept.
pub(super) const HISTORY: &str = "history";
pub(super) const ALWAYS: &str = "always";

/// The default of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The verb, as in `history list`.
    pub(crate) verb: String,
    /// The argument's id.
    pub(crate) id: String,
    /// Its values; of a switch `true` or `false`.
    pub(crate) values: Vec<String>,
}

impl Setting {
    pub(super) fn is(&self, verb: &str, id: &str) -> bool {
        self.verb == verb && self.id == id
    }
}

/// What is wrong in a file.
#[derive(Debug)]
pub(super) struct Mistake {
    /// From 1.
    pub(super) line: usize,
    pub(super) what: String,
}

/// Whether an argument of a verb chooses what is run or watched.
type IsSubject = fn(&str, &str) -> bool;

/// The settings in a text, for the verbs below `root`, which was built.
pub(super) fn settings(
    text: &str,
    root: &Command,
    is_subject: IsSubject,
) -> Result<Vec<Setting>, Mistake> {
    let line = |span: Range<usize>| {
        text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1)
    };
    let table = DeTable::parse(text).map_err(|error| Mistake {
        line: error.span().map_or(1, line),
        what: error.message().replace('\n', ", "),
    })?;
    let mut settings = Vec::new();
    let places = Places { line: &line, is_subject };
    read(table.get_ref(), root, "", &places, &mut settings)?;
    Ok(settings)
}

/// What is known of places in the text and on the command line.
struct Places<'p> {
    line: &'p dyn Fn(Range<usize>) -> usize,
    is_subject: IsSubject,
}

fn read(
    table: &DeTable<'_>,
    command: &Command,
    verb: &str,
    places: &Places<'_>,
    settings: &mut Vec<Setting>,
) -> Result<(), Mistake> {
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let mistake = |what: String| Mistake { line: (places.line)(key.span()), what };
        let lower =
            command.get_subcommands().find(|one| !one.is_hide_set() && one.get_name() == name);
        if let Some(lower) = lower {
            let DeValue::Table(inner) = value.get_ref() else {
                let what =
                    format!("{name} is a verb: expected a table, as in [{}]", dotted(verb, name));
                return Err(mistake(what));
            };
            read(inner, lower, &below(verb, lower), places, settings)?;
        } else if (verb, name) == (HISTORY, ALWAYS) {
            let DeValue::Boolean(is) = value.get_ref() else {
                return Err(mistake("history.always: expected true or false".to_owned()));
            };
            let values = vec![is.to_string()];
            settings.push(Setting { verb: verb.to_owned(), id: name.to_owned(), values });
        } else {
            let argument =
                option(command, verb, name, value.get_ref(), places.is_subject).map_err(mistake)?;
            let values = values(argument, value.get_ref())
                .and_then(|values| checked(argument, values))
                .map_err(|what| mistake(format!("{}: {what}", dotted(verb, name))))?;
            let id = argument.get_id().as_str().to_owned();
            settings.push(Setting { verb: verb.to_owned(), id, values });
        }
    }
    Ok(())
}

/// A key as it is written in one line.
fn dotted(verb: &str, name: &str) -> String {
    format!("{} {name}", verb).trim_start().replace(' ', ".")
}

/// The option of this name that a default may be given for.
fn option<'c>(
    command: &'c Command,
    verb: &str,
    name: &str,
    value: &DeValue<'_>,
    is_subject: IsSubject,
) -> Result<&'c Arg, String> {
    let options = || command.get_arguments().filter(|one| !one.is_hide_set());
    let is_called = |one: &&Arg| {
        let aliases = one.get_all_aliases().unwrap_or_default();
        one.get_long() == Some(name) || aliases.contains(&name)
    };
    let found = options().find(is_called);
    let Some(argument) = found else {
        let is_table = matches!(value, DeValue::Table(_));
        let verbs = command.get_subcommands().filter(|one| !one.is_hide_set());
        let verbs: Vec<&str> = verbs.map(Command::get_name).collect();
        let longs: Vec<&str> = options().filter_map(Arg::get_long).collect();
        let near = nearest(name, verbs.iter().chain(&longs).copied());
        let near = near.map_or_else(String::new, |near| format!("; is it {near}?"));
        return Err(match (verb, is_table || longs.is_empty()) {
            ("", true) => format!("there is no verb {name:?}{near}"),
            ("", false) => format!("{name} is in no table: write it below a verb, as in [trace]"),
            (verb, _) => format!("{verb} has no option {name:?}{near}"),
        });
    };
    match kept_out(argument, command, verb, is_subject) {
        Some(reason) => {
            Err(format!("{}: {reason}; give it on the command line", dotted(verb, name)))
        }
        None => Ok(argument),
    }
}

/// Why an option has no default: a run would be another one than its command line says.
fn kept_out(
    argument: &Arg,
    command: &Command,
    verb: &str,
    is_subject: IsSubject,
) -> Option<&'static str> {
    let id = argument.get_id();
    let is_path = !matches!(argument.get_value_hint(), ValueHint::Unknown | ValueHint::Other);
    let in_group =
        |group: &clap::ArgGroup| group.is_required_set() && group.get_args().any(|one| one == id);
    if is_path && argument.get_action().takes_values() {
        Some("it names a file")
    } else if argument.is_global_set() {
        Some("it is of every verb")
    } else if matches!(
        argument.get_action(),
        ArgAction::Help | ArgAction::HelpLong | ArgAction::HelpShort | ArgAction::Version
    ) {
        Some("it only prints a text")
    } else if argument.is_required_set()
        || is_subject(verb, id.as_str())
        || command.get_groups().any(in_group)
    {
        Some("it chooses what is run or watched")
    } else {
        None
    }
}

/// The words that stand for a value.
fn values(argument: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let takes = argument.get_action().takes_values();
    let one = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        other => Err(format!("expected a text or a number, not {}", article(other))),
    };
    match value {
        DeValue::Boolean(is) if !takes => Ok(vec![is.to_string()]),
        _ if !takes => Err(format!("expected true or false, not {}", article(value))),
        DeValue::Array(items) => {
            let is_list = argument.get_value_delimiter().is_some()
                || matches!(argument.get_action(), ArgAction::Append);
            match is_list {
                true => items.iter().map(|item| one(item.get_ref())).collect(),
                false => Err("expected one value, not a list".to_owned()),
            }
        }
        value => Ok(vec![one(value)?]),
    }
}

fn article(value: &DeValue<'_>) -> String {
    let kind = value.type_str();
    match kind.starts_with(['a', 'i', 'o']) {
        true => format!("an {kind}"),
        false => format!("a {kind}"),
    }
}

/// The same values, if the option's own parser takes them.
fn checked(argument: &Arg, values: Vec<String>) -> Result<Vec<String>, String> {
    if !argument.get_action().takes_values() {
        return Ok(values);
    }
    // Alone, as its relations to other arguments do not count here.
    let mut alone = Arg::new("value")
        .action(argument.get_action().clone())
        .value_parser(argument.get_value_parser().clone())
        .long("value");
    if let Some(delimiter) = argument.get_value_delimiter() {
        alone = alone.value_delimiter(delimiter);
    }
    let words = values.iter().map(|value| format!("--value={value}"));
    let words = ["iotomy".to_owned()].into_iter().chain(words);
    match Command::new("iotomy").no_binary_name(false).arg(alone).try_get_matches_from(words) {
        Ok(_) => Ok(values),
        Err(error) => {
            let value = match error.get(ContextKind::InvalidValue) {
                Some(ContextValue::String(value)) => format!("invalid value {value:?}"),
                _ => "invalid value".to_owned(),
            };
            let known = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(known)) => format!("; there are {}", known.join(", ")),
                _ => String::new(),
            };
            let source = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            Err(format!("{value}{}{known}", errors::plain(source.unwrap_or_default())))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn read(text: &str) -> Result<Vec<(String, String, String)>, String> {
        let mut root = Cli::command().disable_help_subcommand(true);
        root.build();
        let found = settings(text, &root, crate::verbs::complete::chooses_subject);
        let found = found.map_err(|mistake| format!("{}: {}", mistake.line, mistake.what))?;
        Ok(found.into_iter().map(|one| (one.verb, one.id, one.values.join("|"))).collect())
    }

    #[test]
    fn a_table_is_a_verb_and_its_keys_are_long_options() {
        for (text, verb, id, value) in [
            ("[trace]\ntop = 20", "trace", "top", "20"),
            ("[trace]\nduration = 2.5", "trace", "duration", "2.5"),
            ("trace.files = true", "trace", "files", "true"),
            ("[trace]\nquantize = ['wall', 'return']", "trace", "quantize", "wall|return"),
            ("[trace]\ncall = 'read,%file'", "trace", "calls", "read,%file"),
            ("[history.list]\nlast = 50", "history list", "last", "50"),
            ("[anatomy]\ntimeline = 2", "anatomy", "timeline", "2"),
            // As it was called.
            ("[anatomy]\nstory = 2", "anatomy", "timeline", "2"),
            ("[history]\nalways = true", "history", "always", "true"),
            ("[lab.run]\nquick = true", "lab run", "quick", "true"),
        ] {
            assert_eq!(read(text), Ok(vec![(verb.into(), id.into(), value.into())]), "{text}");
        }
        assert_eq!(read("").unwrap(), []);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, wanted) in [
            ("\n[trase]\ntop = 1", "2: there is no verb \"trase\"; is it trace?"),
            ("[trace]\n\ntpo = 1", "3: trace has no option \"tpo\"; is it top?"),
            ("[trace]\ntops = 1", "2: trace has no option \"tops\"; is it top?"),
            (
                "[trace]\ntop = 'many'",
                "2: trace.top: invalid value \"many\": expected a whole number",
            ),
            ("[trace]\ntop = true", "2: trace.top: expected a text or a number, not a boolean"),
            ("[trace]\ntop = [1, 2]", "2: trace.top: expected one value, not a list"),
            ("[trace]\nfiles = 1", "2: trace.files: expected true or false, not an integer"),
            ("[trace]\nsort = 'size'", "2: trace.sort: invalid value \"size\"; there are wall"),
            ("top = 1", "1: top is in no table: write it below a verb"),
            ("trace = 1", "1: trace is a verb: expected a table, as in [trace]"),
            ("[complete]", "1: there is no verb \"complete\""),
            ("[history]\nalway = true", "2: history has no option \"alway\""),
            ("[history]\nalways = 1", "2: history.always: expected true or false"),
            ("[trace]\ntop = ", "2: "),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.starts_with(wanted), "{text:?}: {found}");
            assert!(!found.contains('\n'), "{found}");
        }
    }

    #[test]
    fn what_is_run_watched_or_written_has_no_default() {
        for (text, wanted) in [
            ("[trace]\njson = 'x'", "names a file"),
            ("[trace]\noutput = 'x'", "names a file"),
            ("[anatomy]\nfolded = 'x'", "names a file"),
            ("[trace]\npid = 7", "run or watched"),
            ("[trace]\nall = true", "run or watched"),
            ("[trace]\nuser = 'root'", "run or watched"),
            ("[race]\nprepare = 'rm x'", "run or watched"),
            ("[race]\ncleanup = 'rm x'", "run or watched"),
            ("[trace]\nhelp = true", "prints a text"),
            ("[trace]\nno-config = true", "of every verb"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.contains(wanted) && found.contains("command line"), "{text:?}: {found}");
        }
    }
}
