//! Asking after files more than doing anything with them.

use iotomy_record::Verdict;
use iotomy_record::numbers::{share, thousands};
use serde_json::json;

use crate::run::Run;
use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "stat-storm",
    verdict: Verdict::Note,
    summary: "most calls only ask after files",
    description: "1,000 or more calls of stat, access and readlink and their kin, and half of all calls or more. How \
                  many of them found no file is said; whether they can be spared is not in the record. Not said where directories were read that may have had a fourth as many entries: a walk over \
                  files (find, du, ls -l, tar) asks for each.",
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
/// The least room an entry of a directory takes in what getdents64 returns: a name of up to four letters.
const A_SHORT_ENTRY: u64 = 24;
/// How often a walk asks for an entry: tar, twice; others, once.
const PER_ENTRY: u64 = 4;

fn judge(run: &Run<'_>) -> Option<Found> {
    let asked = run.total(&CALLS);
    let all: u64 = run.trace.calls.iter().map(|call| call.calls).fold(0, u64::saturating_add);
    if asked.calls < MANY || asked.calls < all / 2 {
        return None;
    }
    let listed = run.total(&["getdents64", "getdents"]).bytes / A_SHORT_ENTRY;
    if listed.saturating_mul(PER_ENTRY) >= asked.calls {
        return None;
    }
    let vain = not_there(run);
    let those = match vain {
        0 => String::new(),
        vain => format!(", and {} of them found no file", thousands(vain.into())),
    };
    let text = format!(
        "{} of {} calls ({}) only ask after files{those}",
        thousands(asked.calls.into()),
        thousands(all.into()),
        share(asked.calls.into(), all.into())
    );
    let evidence =
        [("asked", json!(asked.calls)), ("not_there", json!(vain)), ("calls", json!(all))];
    let advice = "strace -f -e trace=%file prints the paths";
    Some(Found::new(text, evidence).advise(advice))
}

/// How many of the calls were told that there is no such file.
fn not_there(run: &Run<'_>) -> u64 {
    let asking = run.trace.calls.iter().filter(|call| CALLS.contains(&call.syscall.as_str()));
    let kinds = asking.flat_map(|call| &call.error_kinds);
    let of_those = kinds.filter(|(kind, _)| ["ENOENT", "ENOTDIR"].contains(&kind.as_str()));
    of_those.map(|(_, count)| *count).fold(0, u64::saturating_add)
}
