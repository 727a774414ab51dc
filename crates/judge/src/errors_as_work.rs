//! Calls that fail over and over, and are timed as if they did something.

use std::collections::BTreeMap;

use iotomy_record::Verdict;
use iotomy_record::numbers::thousands;
use serde_json::json;

use crate::finding::{Declaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "errors-as-work",
    verdict: Verdict::Suspect,
    summary: "most calls of a kind failed: the timed work is errors",
    description: "At least 1,000 calls that move bytes or sync returned an error other than \
        EAGAIN and EINTR, which ask for a retry. They are more than half of the calls of that \
        name, and more than half of all such calls (a copy that is refused and then made by \
        another call is work). A loop over a closed or full descriptor is fast and moves nothing.",
    rules: &[Rule::Run(judge)],
};

/// Failing calls among these are not a way of testing something.
const CALLS: [&str; 19] = [
    "read",
    "pread64",
    "readv",
    "preadv",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "sendto",
    "recvfrom",
    "sendmsg",
    "recvmsg",
    "sendfile",
    "splice",
    "copy_file_range",
    "vmsplice",
    "tee",
    "fsync",
    "fdatasync",
];
const MANY: u64 = 1_000;

/// They ask for a retry, and are no failure.
const AGAIN: [&str; 2] = ["EAGAIN", "EINTR"];

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let worst = CALLS
        .iter()
        .map(|name| (*name, run.total(&[name]).calls, kinds(run, name)))
        .map(|(name, calls, kinds)| {
            let errors = kinds.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
            (name, calls, errors, kinds)
        })
        .filter(|(_, calls, errors, _)| *errors >= MANY && *errors > calls / 2)
        .max_by_key(|(_, _, errors, _)| *errors)?;
    let (name, calls, errors, kinds) = worst;
    // Refused calls that another call then made are not the work of the run.
    if errors <= run.total(&CALLS).calls / 2 {
        return None;
    }
    let most = kinds.iter().max_by_key(|(_, count)| **count).map_or("", |(kind, _)| kind);
    let text = format!(
        "{} of {} calls of {name} failed, mostly with {most}: their time is not spent moving bytes",
        thousands(errors.into()),
        thousands(calls.into())
    );
    let evidence = [
        ("call", json!(name)),
        ("errors", json!(errors)),
        ("calls", json!(calls)),
        ("error_kinds", json!(kinds)),
    ];
    Some(UnnamedFinding::new(text, evidence))
}

/// The failures of a call, by name.
fn kinds<'r>(run: &'r Run<'_>, name: &str) -> BTreeMap<&'r str, u64> {
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for call in run.trace.calls.iter().filter(|call| call.syscall == name) {
        let failures = call.error_kinds.iter().filter(|(kind, _)| !AGAIN.contains(&kind.as_str()));
        for (kind, count) in failures {
            let sum = kinds.entry(kind).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    kinds
}
