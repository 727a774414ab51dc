//! Processes a command left running.

use iotomy_record::{Race, Verdict};
use serde_json::json;

use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "left-behind",
    verdict: Verdict::Suspect,
    summary: "a command left processes running when it ended",
    description: "Processes of a command were alive after it had ended. iotomy killed \
        them before the next run; no figure includes their work.",
    facts: &[],
    rules: &[Rule::Race(judge)],
};

fn judge(race: &Race) -> Vec<UnnamedFinding> {
    let left = race.commands.iter().filter(|one| one.left_behind > 0);
    left.map(|one| {
        let (label, strays) = (&one.label, one.left_behind);
        let text = format!(
            "{label} left processes running when it ended, {strays} in total; iotomy killed them \
             before the next run, and no figure includes their time"
        );
        UnnamedFinding::new(text, [("contender", json!(label)), ("left", json!(strays))])
    })
    .collect()
}
