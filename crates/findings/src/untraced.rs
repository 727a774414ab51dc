//! Commands without a traced run.

use iotomy_record::{Race, Verdict};
use serde_json::json;

use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "untraced",
    verdict: Verdict::Note,
    summary: "a command was not traced, so its time is not accounted for",
    description: "The race was to trace a command, and the traced run is missing; the finding \
        gives the reason.",
    facts: &[],
    rules: &[Rule::Race(judge)],
};

fn judge(race: &Race) -> Vec<UnnamedFinding> {
    let untraced = race.commands.iter().filter_map(|one| Some((one, one.untraced.as_ref()?)));
    untraced
        .map(|(one, why)| {
            let label = &one.label;
            let text = format!(
                "{label} was not traced, so the difference to it is not accounted for: \
                    {why}"
            );
            UnnamedFinding::new(text, [("contender", json!(label))])
        })
        .collect()
}
