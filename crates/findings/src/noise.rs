//! A difference that drowns in the differences between runs of the same.

use iotomy_record::numbers::fixed;
use iotomy_record::{Metric, Race, RaceVerdict, Verdict};
use serde_json::json;

use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "noise",
    verdict: Verdict::Suspect,
    summary: "runs of one command differ by more than the commands do",
    description: "A comparison of wall times is undecided, and its confidence interval is wider \
        than the distance of the ratio from 1.",
    facts: &[],
    rules: &[Rule::Race(judge)],
};

fn judge(race: &Race) -> Vec<UnnamedFinding> {
    let undecided = race.comparisons.iter().filter(|pair| {
        let width = pair.ci95[1] - pair.ci95[0];
        pair.metric == Metric::Wall
            && pair.verdict == RaceVerdict::Undecided
            && pair.ci95 != [0.0, 0.0]
            && width / 2.0 > (pair.ratio - 1.0).abs()
    });
    undecided
        .map(|pair| {
            let percent = |ratio: f64| fixed((ratio - 1.0) * 100.0, 1);
            let text = format!(
                "{} and {} differ by {} %, and the runs vary by more: the 95 % confidence \
                 interval is {} to {} %",
                pair.base,
                pair.other,
                percent(pair.ratio),
                percent(pair.ci95[0]),
                percent(pair.ci95[1])
            );
            let evidence = [
                ("base", json!(pair.base)),
                ("other", json!(pair.other)),
                ("ratio", json!(pair.ratio)),
                ("ci95", json!(pair.ci95)),
            ];
            let more = pair.more_runs.map(|n| format!(", or about {n} more pairs (--runs)"));
            let advice = format!("use an idle machine{}", more.unwrap_or_default());
            UnnamedFinding::new(text, evidence).advise(advice)
        })
        .collect()
}
