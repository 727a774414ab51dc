//! Bytes that were passed on without a copy.

use iotomy_record::Verdict;
use iotomy_record::numbers::bytes;
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{Copied, FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{MIB, Run};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "by-reference",
    verdict: Verdict::Note,
    summary: "bytes were passed on by reference, not copied",
    description: "splice, tee, vmsplice or sendfile, as calls or by io_uring, moved at least \
        1 MiB. Where they can, they pass on references to pages: later changes of the source \
        may show in the target, and their rate is not a copying rate. For iotomy copy: at \
        least 1 MiB was referenced, and nothing was copied.",
    facts: &[Fact::Calls(&CALLS), Fact::Rings(&CALLS)],
    rules: &[Rule::Run(judge), Rule::Copy(judge_copy)],
};

pub(crate) const CALLS: [&str; 4] = ["splice", "tee", "vmsplice", "sendfile"];

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let passed = passed(run);
    (passed >= MIB).then(|| {
        let text = format!(
            "{} moved {} in total, by references to pages where possible: bytes that two calls \
             move in turn count twice",
            names(run),
            bytes(passed.into()),
        );
        UnnamedFinding::new(text, [("bytes", json!(passed))])
    })
}

fn judge_copy(copied: &Copied<'_>) -> Option<UnnamedFinding> {
    let (passed, copies) = (copied.record.referenced_bytes, copied.record.copied_bytes);
    (passed >= MIB && copies == 0).then(|| {
        let text = format!(
            "nothing was copied: the target was given references to {} of the source",
            bytes(passed.into())
        );
        UnnamedFinding::new(text, [("bytes", json!(passed))])
    })
}

/// The same as the cause of something.
pub(crate) fn cause(run: &Run<'_>) -> Option<String> {
    let shared = run.total(&["copy_file_range"]).bytes;
    let passed = passed(run);
    if passed >= MIB {
        Some(format!("{} were passed on by reference, by {}", bytes(passed.into()), names(run)))
    } else if shared >= MIB {
        Some(format!("copy_file_range may have shared {} instead of copying", bytes(shared.into())))
    } else {
        None
    }
}

/// By calls, and by io_uring, whose operations have the names of the calls.
fn passed(run: &Run<'_>) -> u64 {
    run.total(&CALLS).bytes.saturating_add(run.requested(&CALLS).bytes)
}

fn names(run: &Run<'_>) -> String {
    let by_call = CALLS.into_iter().filter(|name| run.total(&[name]).bytes > 0);
    let by_ring = CALLS.into_iter().filter(|name| run.requested(&[name]).bytes > 0);
    let used: Vec<String> = by_call
        .map(str::to_owned)
        .chain(by_ring.map(|name| format!("{name} (io_uring)")))
        .collect();
    used.join(" and ")
}
