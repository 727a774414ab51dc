//! Asking after files more than doing anything with them.

use iotomy_record::Verdict;
use iotomy_record::numbers::{share, thousands};
use serde_json::json;

use crate::run::Run;
use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "stat-storm",
    verdict: Verdict::Advice,
    summary: "most calls only ask after files",
    description: "1,000 or more calls of stat, access and readlink and their kin by path, and half of all \
                  calls or more. How many of them found nothing is said.",
    rules: &[Rule::Run(judge)],
};

const CALLS: [&str; 11] = [
    "stat",
    "lstat",
    "newfstatat",
    "statx",
    "stat64",
    "lstat64",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
];
const MANY: u64 = 1_000;

fn judge(run: &Run<'_>) -> Option<Found> {
    let asked = run.total(&CALLS);
    let all: u64 = run.trace.calls.iter().map(|call| call.calls).fold(0, u64::saturating_add);
    if asked.calls < MANY || asked.calls < all / 2 {
        return None;
    }
    let vain = match asked.errors {
        0 => String::new(),
        vain => format!(", and {} of them found nothing", thousands(vain.into())),
    };
    let text = format!(
        "{} of {} calls ({}) only ask after files{vain}",
        thousands(asked.calls.into()),
        thousands(all.into()),
        share(asked.calls.into(), all.into())
    );
    let evidence =
        [("asked", json!(asked.calls)), ("errors", json!(asked.errors)), ("calls", json!(all))];
    let advice = "keep what is known: iotomy trace --call %file shows which; a directory's entries carry their kind (d_type)";
    Some(Found::new(text, evidence).advise(advice))
}
