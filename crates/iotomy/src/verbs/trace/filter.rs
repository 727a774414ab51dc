//! `--where`, a condition on each call; `--until`, one on the call that ends the watch; and `--by`, the
//! variables to group calls by.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use iotomy_observe::{AGGREGATIONS, Filter, Request, VARIABLES};

use crate::errors::InText;

/// The help of `--where`, with every variable; `summary` and `cost` are the verb's own.
pub(in crate::verbs) fn help(summary: &str, cost: &str) -> String {
    let mut help = format!(
        "{summary}\n\nEXPR is an expression of D, with the operators of C. Strings are compared by == \
         and != with patterns of * and ?. Numbers have units: 10ms, 64K. {cost}\n\nVariables:",
    );
    for variable in VARIABLES {
        let _ = write!(help, "\n- {:<11} {}", variable.name, variable.summary);
    }
    help
}

/// The help of `iotomy trace --where`.
pub(super) fn help_of_trace() -> String {
    help(
        "Count only the calls and ring operations for which EXPR holds, as in 'call == \"read\" && bytes < 512'",
        "Calls that are left out cost little: the condition is compiled into the kernel's programs.",
    )
}

/// The help of `--until`.
pub(super) fn help_until() -> String {
    let mut help = String::from(
        "End the watch when a call for which EXPR holds has returned, as in 'duration > 10ms'\n\nEXPR is \
         an expression as for --where, of the calls and ring operations that are counted: those that \
         --call and --where leave. The report names the call. A command runs on unwatched. The status is 3 if a \
         call ended the watch; else it is the command's, or 1 without a command. With --keep, such a call ends \
         nothing.\n\nBesides the variables of --where, there are sums of all calls \
         counted so far, this one included:",
    );
    for sum in AGGREGATIONS {
        let _ = write!(help, "\n- {:<14} {}", sum.to_string(), sum.summary);
    }
    help
}

/// The help of `--by`.
pub(super) fn help_by() -> String {
    let names: Vec<&str> = VARIABLES.iter().map(|variable| variable.name).collect();
    format!(
        "Count calls and ring operations by the values of up to four variables as well, as in call,path\n\nA row for each \
         combination of values: calls, errors, bytes and time. Bytes and durations are grouped by \
         powers of two, titles without their numbers; a call of several groups (%io, %net) is in the rows of each.\n\nVariables: {}; \
         --where explains them.",
        names.join(", ")
    )
}

/// Checks that there are calls, or ring operations, which can fulfil a condition on those that are counted, and one
/// that ends the watch, where these are asked for.
///
/// # Errors
/// There are none for one of them.
pub(in crate::verbs) fn check(request: &Request, counts: bool, ends: bool) -> Result<()> {
    let unfulfilled =
        [("--where", counts && !request.can_count()), ("--until", ends && !request.can_be_ended())];
    match unfulfilled.iter().find(|(_, is)| *is) {
        Some((option, _)) => Err(anyhow!(
            "{option}: no call or ring operation that is counted can fulfil this; check the names of \
             calls and groups"
        )),
        None => Ok(()),
    }
}

/// The filter for a condition and one that ends the watch, if there are any, and the variables to group
/// by.
///
/// # Errors
/// What is wrong with one of them, and where.
pub(in crate::verbs) fn filter(
    text: Option<&str>,
    until: Option<&str>,
    by: &[String],
) -> Result<Filter> {
    let mut filter = match text {
        Some(text) => Filter::new(text)
            .map_err(|problem| InText(format!("--where: {}", problem.shown_in(text))))?,
        None => Filter::default(),
    };
    if let Some(until) = until {
        filter = filter
            .until(until)
            .map_err(|problem| InText(format!("--until: {}", problem.shown_in(until))))?;
    }
    filter.grouped(by).map_err(|mistake| anyhow!("--by: {mistake}"))
}
