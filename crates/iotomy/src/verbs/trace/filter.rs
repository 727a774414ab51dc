//! `--where`, a condition on each call, and `--by`, the variables to group calls by.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use iotomy_observe::{Filter, VARIABLES};

use crate::errors::InText;

/// The help of `--where`, with every variable.
pub(super) fn help() -> String {
    let mut help = String::from(
        "Count only the calls for which EXPR holds, as in 'call == \"read\" && bytes < 512'\n\nEXPR is \
         an expression of D, with the operators of C. Strings are compared by == and != with \
         patterns of * and ?. Numbers have units: 10ms, 64K. Calls that are left out cost little: \
         the condition is compiled into the kernel's programs.\n\nVariables:",
    );
    for variable in VARIABLES {
        let _ = write!(help, "\n- {:<11} {}", variable.name, variable.summary);
    }
    help
}

/// The help of `--by`.
pub(super) fn help_by() -> String {
    let names: Vec<&str> = VARIABLES.iter().map(|variable| variable.name).collect();
    format!(
        "Count calls by the values of up to four variables as well, as in call,path\n\nA row for each \
         combination of values: calls, errors, bytes and time. Bytes and durations are grouped by \
         powers of two; a call of several groups (%io, %net) is in the rows of each.\n\nVariables: {}; \
         --where explains them.",
        names.join(", ")
    )
}

/// The filter for a condition, if there is one, and the variables to group by.
///
/// # Errors
/// What is wrong with it, and where.
pub(super) fn filter(text: Option<&str>, by: &[String]) -> Result<Filter> {
    let filter = match text {
        Some(text) => Filter::new(text)
            .map_err(|problem| InText(format!("--where: {}", problem.shown_in(text))))?,
        None => Filter::default(),
    };
    filter.grouped(by).map_err(|mistake| anyhow!("--by: {mistake}"))
}
