//! What was run, and under which conditions.

use iotomy_record::{Difference, Trace};

use crate::{DiffError, Run};

/// The longest line that says what ran, in characters: more than any report shows.
const LONGEST: usize = 4096;

/// What ran, or was watched, in a line; a longer one is cut.
pub(crate) fn subject(trace: &Trace) -> String {
    if trace.view.machine {
        return "the machine".to_owned();
    }
    if trace.command.is_empty() {
        let each = trace.targets.iter().map(|target| format!("{} {}", target.kind, target.name));
        let targets = each.collect::<Vec<_>>().join(", ");
        let first =
            || trace.processes.first().map_or(String::new(), |one| one.program().to_owned());
        return if targets.is_empty() { first() } else { targets };
    }
    let words = trace.command.iter().enumerate().flat_map(|(at, word)| {
        let quote = if word.is_empty() || word.contains(char::is_whitespace) { "'" } else { "" };
        [if at == 0 { "" } else { " " }, quote, word, quote]
    });
    let mut chars = words.flat_map(str::chars);
    let mut line: String = chars.by_ref().take(LONGEST).collect();
    if chars.next().is_some() {
        line.push('…');
    }
    line
}

/// What may be the reason for a difference, and is none of the program.
pub(crate) fn conditions(a: &Run<'_>, b: &Run<'_>) -> Vec<Difference> {
    let mut found = a.trace.machine.differences(&b.trace.machine);
    let hz = |run: &Run<'_>| run.anatomy.map_or(String::new(), |one| one.sampling.hz.to_string());
    let rows = [
        ("observer", a.trace.observer.name.clone(), b.trace.observer.name.clone(), true),
        ("samples a second", hz(a), hz(b), true),
        (Difference::COMMAND, subject(a.trace), subject(b.trace), false),
    ];
    // Of long commands, the ends may differ.
    let other_words = a.trace.command != b.trace.command;
    let differing = rows.into_iter().filter(|(what, then, now, _)| {
        then != now || (other_words && *what == Difference::COMMAND)
    });
    found.extend(differing.map(|(what, then, now, matters)| Difference {
        what: what.to_owned(),
        then,
        now,
        matters,
    }));
    found
}

/// Calls that a trace did not count would look as if they had not been made.
pub(crate) fn same_calls(first: &Run<'_>, other: &Run<'_>) -> Result<(), DiffError> {
    let sorted = |trace: &Trace| {
        let mut calls = trace.view.calls.clone();
        calls.sort();
        calls.dedup();
        (calls, trace.view.r#where.trim().to_owned())
    };
    let (a, b) = (sorted(first.trace), sorted(other.trace));
    let text = |(calls, condition): &(Vec<String>, String)| {
        let calls = match &calls[..] {
            [] => "all calls".to_owned(),
            calls => format!("only {}", calls.join(",")),
        };
        match condition.is_empty() {
            true => calls,
            false => format!("{calls} where {condition}"),
        }
    };
    match a == b {
        true => Ok(()),
        false => Err(DiffError::Calls {
            first: first.name.to_owned(),
            first_calls: text(&a),
            other: other.name.to_owned(),
            other_calls: text(&b),
        }),
    }
}
