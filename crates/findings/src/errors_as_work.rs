//! Calls and requests that fail over and over, and are timed as if they did something.

use std::collections::BTreeMap;

use iotomy_record::Verdict;
use iotomy_record::numbers::thousands;
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "errors-as-work",
    verdict: Verdict::Suspect,
    summary: "most calls of a kind failed: the timed work is errors",
    description: "At least 1,000 calls, or requests to io_uring, that move bytes or sync returned an \
        error other than EAGAIN and EINTR, which ask for a retry, and ECANCELED. They are \
        more than half of the calls of that name, and more than half of all such calls and \
        requests (a copy that is refused and then made by another call is work). A loop over \
        a closed or full descriptor is fast and moves nothing.",
    facts: &[Fact::Calls(&CALLS), Fact::Rings(&OPERATIONS)],
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
/// The operations of io_uring that do the same.
const OPERATIONS: [&str; 18] = [
    "read",
    "readv",
    "read_fixed",
    "readv_fixed",
    "write",
    "writev",
    "write_fixed",
    "writev_fixed",
    "send",
    "sendmsg",
    "send_zc",
    "sendmsg_zc",
    "recv",
    "recvmsg",
    "splice",
    "tee",
    "fsync",
    "sync_file_range",
];

const MANY: u64 = 1_000;

/// They ask for a retry, or the program has asked for it, and are not a failure.
const NO_FAILURE: [&str; 3] = ["EAGAIN", "EINTR", "ECANCELED"];

/// Calls of a name, or requests of an operation.
struct Work<'r> {
    what: String,
    name: &'r str,
    made: u64,
    /// The failures, by name.
    kinds: BTreeMap<&'r str, u64>,
}

impl Work<'_> {
    fn errors(&self) -> u64 {
        self.kinds.values().fold(0, |sum: u64, count| sum.saturating_add(*count))
    }
}

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let all: Vec<Work<'_>> = work(run);
    let made = all.iter().fold(0, |sum: u64, work| sum.saturating_add(work.made));
    let fails = |work: &&Work<'_>| work.errors() >= MANY && work.errors() > work.made / 2;
    let worst = all.iter().filter(fails).max_by_key(|work| work.errors())?;
    let errors = worst.errors();
    // Refused calls that another call then made are not the work of the run.
    if errors <= made / 2 {
        return None;
    }
    let most = worst.kinds.iter().max_by_key(|(_, count)| **count).map_or("", |(kind, _)| kind);
    let text = format!(
        "{} of {} {} failed, mostly with {most}: their time is not spent moving bytes",
        thousands(errors.into()),
        thousands(worst.made.into()),
        worst.what
    );
    let evidence = [
        ("call", json!(worst.name)),
        ("errors", json!(errors)),
        ("calls", json!(worst.made)),
        ("error_kinds", json!(worst.kinds)),
    ];
    Some(UnnamedFinding::new(text, evidence))
}

fn work<'r>(run: &'r Run<'_>) -> Vec<Work<'r>> {
    let calls = CALLS.into_iter().map(|name| {
        let rows = run.trace.calls.iter().filter(|call| call.syscall == name);
        let kinds = failures(rows.map(|call| &call.error_kinds));
        Work { what: format!("calls of {name}"), name, made: run.total(&[name]).calls, kinds }
    });
    let requests = OPERATIONS.into_iter().map(|name| {
        let rows = || run.trace.ring_operations.iter().filter(|row| row.op == name);
        let made = rows().fold(0, |sum: u64, row| sum.saturating_add(row.submitted));
        let kinds = failures(rows().map(|row| &row.error_kinds));
        Work { what: format!("requests of {name} to io_uring"), name, made, kinds }
    });
    calls.chain(requests).collect()
}

/// The failures of some rows, by name.
fn failures<'r>(rows: impl Iterator<Item = &'r BTreeMap<String, u64>>) -> BTreeMap<&'r str, u64> {
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for (kind, count) in rows.flatten().filter(|(kind, _)| !NO_FAILURE.contains(&kind.as_str())) {
        let sum = kinds.entry(kind).or_default();
        *sum = sum.saturating_add(*count);
    }
    kinds
}
