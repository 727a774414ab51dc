//! Asking after many descriptors to find few ready.

use iotomy_record::Verdict;
use iotomy_record::numbers::{thousands, three_digits};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "few-ready",
    verdict: Verdict::Advice,
    summary: "poll scans many descriptors and finds few of them ready",
    description: "At least 100 calls of poll or ppoll name 64 or more descriptors on average, of \
        which less than a tenth is ready. The kernel scans all of them on every call; epoll keeps \
        the list. The rule excludes select: the record has the highest descriptor it names, not \
        their number.",
    facts: &[Fact::Calls(&CALLS)],
    rules: &[Rule::Run(judge)],
};

const CALLS: [&str; 2] = ["poll", "ppoll"];
const MANY: u64 = 100;
const LONG: u64 = 64;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let totals = CALLS.into_iter().map(|name| (name, run.total(&[name])));
    let (name, total) = totals
        .filter(|(_, total)| {
            total.calls >= MANY
                && total.asked / total.calls >= LONG
                && total.ready < total.asked / 10
        })
        .max_by_key(|(_, total)| total.asked)?;
    let mean = |sum: u64| three_digits(sum as f64 / total.calls as f64);
    let text = format!(
        "{} calls of {name} scanned {} descriptors each and found {} ready",
        thousands(total.calls.into()),
        mean(total.asked),
        mean(total.ready),
    );
    let evidence = [
        ("call", json!(name)),
        ("calls", json!(total.calls)),
        ("asked", json!(total.asked)),
        ("ready", json!(total.ready)),
    ];
    Some(
        UnnamedFinding::new(text, evidence).advise("use epoll, which keeps the list in the kernel"),
    )
}
