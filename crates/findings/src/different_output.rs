//! Commands that write different amounts may do different work.

use iotomy_record::numbers::thousands;
use iotomy_record::{Metric, Race, RaceCommand, Verdict};
use serde_json::json;

use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "different-output",
    verdict: Verdict::Suspect,
    summary: "two commands wrote different numbers of bytes to standard output",
    description: "Each of two commands wrote the same number of bytes in all its runs, one of \
        them at least 4 KiB, and the numbers differ by at least 1 %. The rule ignores smaller \
        differences, such as a line with the time.",
    facts: &[],
    rules: &[Rule::Race(judge)],
};

/// Outputs that only report an amount may word it differently.
const SMALL: u64 = 4096;

fn judge(race: &Race) -> Vec<UnnamedFinding> {
    let pairs = race.comparisons.iter().filter(|pair| pair.metric == Metric::Wall);
    pairs
        .filter_map(|pair| {
            let (a, b) = (race.command(&pair.base)?, race.command(&pair.other)?);
            let (x, y) = (written(a)?, written(b)?);
            (x.max(y) >= SMALL && x.abs_diff(y) >= x.max(y).div_ceil(100)).then(|| {
                let text = format!(
                    "{} wrote {} bytes to standard output and {} {}: did they do the same work?",
                    a.label,
                    thousands(x.into()),
                    b.label,
                    thousands(y.into()),
                );
                UnnamedFinding::new(text, [("base_bytes", json!(x)), ("other_bytes", json!(y))])
            })
        })
        .collect()
}

/// The number of bytes that every run of a command wrote, if it was the same.
fn written(command: &RaceCommand) -> Option<u64> {
    let mut seen = command.runs.iter().map(|run| run.output_bytes);
    let first = seen.next()??;
    seen.all(|bytes| bytes == Some(first)).then_some(first)
}
