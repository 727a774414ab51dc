//! Others at work while the race was on.

use std::collections::BTreeMap;

use iotomy_record::numbers::{counted, thousands};
use iotomy_record::{Race, Verdict};
use serde_json::json;

use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "disturbed",
    verdict: Verdict::Note,
    summary: "rounds of runs were disturbed",
    description: "During these rounds other programs used CPUs, the hypervisor ran other guests, or \
                  memory was short. The record marks the rounds, and --redo repeats them up to its \
                  limit.",
    facts: &[],
    rules: &[Rule::Race(judge)],
};

fn judge(race: &Race) -> Vec<UnnamedFinding> {
    disturbances(race).into_iter().collect()
}

fn disturbances(race: &Race) -> Option<UnnamedFinding> {
    let marked: Vec<_> = race.rounds.iter().filter(|round| !round.disturbed.is_empty()).collect();
    if marked.is_empty() {
        return None;
    }
    // The largest of each kind represents it: without its figures, a reason is the same in all.
    let mut reasons: BTreeMap<String, (u64, u64, &str)> = BTreeMap::new();
    for reason in marked.iter().flat_map(|round| &round.disturbed) {
        let words: String = reason.chars().filter(|c| !c.is_ascii_digit()).collect();
        let figures: String = reason.chars().filter(char::is_ascii_digit).collect();
        let figure = figures.parse().unwrap_or(0);
        let (rounds, largest, text) = reasons.entry(words).or_insert((0, figure, reason));
        *rounds += 1;
        if figure > *largest {
            (*largest, *text) = (figure, reason);
        }
    }
    let reasons: Vec<String> = reasons
        .values()
        .map(|(rounds, _, text)| match rounds {
            1 => format!("{text} in one"),
            _ => format!("{text} at worst, in {rounds}"),
        })
        .collect();
    let redone = marked.iter().filter(|round| round.redone).count();
    let text = format!(
        "{} of {} {} disturbed, {redone} of them redone: {}",
        thousands(marked.len() as u128),
        counted(race.rounds.len() as u128, "round", "rounds"),
        if marked.len() == 1 { "was" } else { "were" },
        reasons.join("; ")
    );
    let evidence = [("disturbed", json!(marked.len())), ("redone", json!(redone))];
    let found = UnnamedFinding::new(text, evidence);
    Some(match marked.len() > redone {
        true => found.advise("use an idle machine, or --redo N"),
        false => found,
    })
}
