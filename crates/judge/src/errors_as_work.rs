//! Calls that fail over and over, and are timed as if they did something.

use std::collections::BTreeMap;

use iotomy_record::Verdict;
use iotomy_record::numbers::thousands;
use serde_json::json;

use crate::run::Run;
use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "errors-as-work",
    verdict: Verdict::Suspect,
    summary: "most calls of a kind failed: what was timed is errors",
    description: "Of 1,000 or more calls that move bytes, sync or seek, more than half returned an \
                  error. A loop over a closed or full descriptor is fast, and moves nothing.",
    rules: &[Rule::Run(judge)],
};

/// Of these, failing is no way of asking.
const CALLS: [&str; 20] = [
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
    "lseek",
];
const MANY: u64 = 1_000;

fn judge(run: &Run<'_>) -> Option<Found> {
    let worst = CALLS
        .iter()
        .map(|name| (*name, run.total(&[name])))
        .filter(|(_, total)| total.calls >= MANY && total.errors > total.calls / 2)
        .max_by_key(|(_, total)| total.errors)?;
    let (name, total) = worst;
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for call in run.trace.calls.iter().filter(|call| call.syscall == name) {
        for (kind, count) in &call.error_kinds {
            *kinds.entry(kind).or_default() += count;
        }
    }
    let most = kinds.iter().max_by_key(|(_, count)| **count).map_or("", |(kind, _)| kind);
    let text = format!(
        "{} of {} calls of {name} failed, mostly with {most}: what they took is not the time of \
         moving bytes",
        thousands(total.errors.into()),
        thousands(total.calls.into())
    );
    let evidence = [
        ("call", json!(name)),
        ("errors", json!(total.errors)),
        ("calls", json!(total.calls)),
        ("error_kinds", json!(kinds)),
    ];
    Some(Found::new(text, evidence))
}
