//! A seccomp filter interfered.

use iotomy_record::{Race, Verdict};

use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "filtered",
    verdict: Verdict::Note,
    summary: "every command ran with a seccomp filter",
    description: "With --deny, commands without a denied call run with an empty filter, so that \
        all have the overhead of a filter.",
    facts: &[],
    rules: &[Rule::Race(judge)],
};

fn judge(race: &Race) -> Vec<UnnamedFinding> {
    if race.commands.iter().all(|command| command.denied.is_empty()) {
        return Vec::new();
    }
    let text = "every command ran with a seccomp filter, an empty one if no call was denied: \
        all have the overhead of a filter, and a longer filter has more";
    vec![UnnamedFinding::new(text.to_owned(), [])]
}
