//! A shell that some commands run under.

use iotomy_record::numbers::duration;
use iotomy_record::{Race, RaceCommand, Verdict};
use serde_json::json;

use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "shell",
    verdict: Verdict::Note,
    summary: "a command's time includes the start of a shell",
    description: "A command ran under `sh -c`, whose start takes at least a fiftieth of its \
        time while others run without, or at least a fifth.",
    facts: &[],
    rules: &[Rule::Race(judge)],
};

fn judge(race: &Race) -> Vec<UnnamedFinding> {
    shells(race).into_iter().collect()
}

/// A shell on one side only is part of that side's time.
fn shells(race: &Race) -> Option<UnnamedFinding> {
    let startup = race.harness.shell_startup_ns?;
    let under: Vec<&RaceCommand> = race.commands.iter().filter(|one| one.shell).collect();
    let largest = under.iter().map(|one| startup as f64 / one.wall.median_ns.max(1.0));
    let share = largest.max_by(f64::total_cmp)?;
    if share < 0.02 || under.len() == race.commands.len() && share < 0.2 {
        return None;
    }
    let labels: Vec<&str> = under.iter().map(|one| one.label.as_str()).collect();
    let others = if under.len() < race.commands.len() { ", and the others do not" } else { "" };
    let shortest = under.iter().map(|one| one.wall.median_ns).fold(f64::INFINITY, f64::min);
    let text = format!(
        "{} run{} under sh{others}: a shell takes {} to start here, and {} {} (medians)",
        labels.join(", "),
        if labels.len() == 1 { "s" } else { "" },
        duration(startup as f64),
        if labels.len() == 1 { "the run" } else { "the shortest of the runs" },
        duration(shortest),
    );
    let evidence = [("startup_ns", json!(startup)), ("share", json!(share))];
    let advice = "write the command without redirections, pipes and variables: it then runs \
        without a shell";
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}
