//! Results of requests to io_uring for which its queue had no room.

use iotomy_record::Verdict;
use iotomy_record::numbers::thousands;
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "ring-overflow",
    verdict: Verdict::Advice,
    summary: "results of requests found io_uring's completion queue full",
    description: "At least one result of a program's requests to io_uring found the \
        completion queue full. The kernel keeps such a result in memory of its own, and the \
        program gets it by another call of io_uring_enter; without that memory, it is lost.",
    facts: &[Fact::Rings(&[])],
    rules: &[Rule::Run(judge)],
};

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let images = run.trace.processes.iter().map(|image| {
        let rows = run.of_image(image.pid, &image.exec, image.image);
        let results = rows.requests(|row| row.completed.saturating_add(row.multishot_completions));
        (image, rows.requests(|row| row.overflows), results)
    });
    let (image, overflows, results) = images.max_by_key(|(_, overflows, _)| *overflows)?;
    if overflows == 0 {
        return None;
    }
    let text = format!(
        "{} of {} results of requests by {} found the completion queue of io_uring full",
        thousands(overflows.into()),
        thousands(results.into()),
        image.name(),
    );
    let evidence =
        [("exec", json!(image.exec)), ("overflows", json!(overflows)), ("results", json!(results))];
    let advice = "take results before submitting more, or set up the ring with a larger \
        completion queue (IORING_SETUP_CQSIZE)";
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}
