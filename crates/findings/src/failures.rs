//! Timed runs that failed.

use iotomy_record::{Race, Verdict};
use serde_json::json;

use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "failures",
    verdict: Verdict::Suspect,
    summary: "timed runs failed",
    description: "With --ignore-failure, timed runs of a command ended with a status other than \
        0.",
    facts: &[],
    rules: &[Rule::Race(judge)],
};

fn judge(race: &Race) -> Vec<UnnamedFinding> {
    let failed = race.commands.iter().filter(|one| one.failures > 0);
    failed
        .map(|one| {
            let (label, failed, all) = (&one.label, one.failures, one.runs.len());
            let text = format!("{failed} of {all} timed runs of {label} failed");
            let evidence =
                [("contender", json!(label)), ("failed", json!(failed)), ("runs", json!(all))];
            UnnamedFinding::new(text, evidence)
        })
        .collect()
}
