//! Requests to io_uring that were not carried out, because one before them in a chain failed.

use std::collections::BTreeMap;

use iotomy_record::Verdict;
use iotomy_record::numbers::{share, thousands};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "ring-links",
    verdict: Verdict::Suspect,
    summary: "linked requests were not carried out: one before them failed",
    description: "At least 10 of a program's requests to io_uring, and at least 1 % of all, \
        were not carried out because a request that they were linked to (IOSQE_IO_LINK) \
        failed. A read or write of fewer bytes than requested fails its link, too. Fewer are \
        the ends of files: the last read of a copy is short.",
    facts: &[Fact::Rings(&[])],
    rules: &[Rule::Run(judge)],
};

const MANY: u64 = 10;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let images = run.trace.processes.iter().map(|image| {
        let rows = run.of_image(image.pid, &image.exec, image.image);
        (image, rows, rows.requests(|row| row.unlinked), rows.requests(|row| row.submitted))
    });
    let (image, rows, unlinked, submitted) = images
        .filter(|(_, _, unlinked, all)| *unlinked >= MANY && *unlinked >= all.div_ceil(100))
        .max_by_key(|(_, _, unlinked, _)| *unlinked)?;
    let mut errors: BTreeMap<&str, u64> = BTreeMap::new();
    for (kind, count) in rows.ring.iter().flat_map(|row| &row.error_kinds) {
        let sum = errors.entry(kind).or_default();
        *sum = sum.saturating_add(*count);
    }
    let others = errors.iter().filter(|(kind, _)| **kind != "ECANCELED");
    let others: Vec<String> =
        others.map(|(kind, count)| format!("{kind} ({})", thousands((*count).into()))).collect();
    let others = match others.is_empty() {
        true => "its requests returned no error beside ECANCELED: a short read or write fails its link, too".to_owned(),
        false => format!("the errors of its requests, beside ECANCELED: {}", others.join(", ")),
    };
    let text = format!(
        "{} of {} requests of {} to io_uring ({}) were not carried out, because one that they were \
         linked to failed; {others}",
        thousands(unlinked.into()),
        thousands(submitted.into()),
        image.name(),
        share(unlinked.into(), submitted.into()),
    );
    let evidence = [
        ("exec", json!(image.exec)),
        ("unlinked", json!(unlinked)),
        ("submitted", json!(submitted)),
        ("error_kinds", json!(errors)),
    ];
    Some(UnnamedFinding::new(text, evidence))
}
