//! Bytes written to the null device.

use iotomy_record::Verdict;
use iotomy_record::numbers::bytes;
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{Copied, FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{MIB, NULL, Run};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "null-sink",
    verdict: Verdict::Note,
    summary: "the bytes went to the null device, which does not read them",
    description: "At least 1 MiB was written to /dev/null. A write there returns at once: the run \
        times how the bytes are produced, not how they are moved.",
    facts: &[Fact::Files],
    rules: &[Rule::Run(judge), Rule::Copy(judge_copy)],
};

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    finding(run.discarded_bytes())
}

fn judge_copy(copied: &Copied<'_>) -> Option<UnnamedFinding> {
    let to_null = copied.record.copies.iter().filter(|part| part.target == NULL);
    finding(to_null.map(|part| part.bytes).fold(0, u64::saturating_add))
}

fn finding(discarded: u64) -> Option<UnnamedFinding> {
    (discarded >= MIB).then(|| {
        let text = format!(
            "{} were written to {NULL}, which discards them unread: the time is not that of a copy",
            bytes(discarded.into())
        );
        UnnamedFinding::new(text, [("bytes", json!(discarded))])
    })
}
