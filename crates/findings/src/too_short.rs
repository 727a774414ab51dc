//! Runs that are little more than the start of a program.

use iotomy_record::numbers::duration;
use iotomy_record::{Race, Verdict};
use serde_json::json;

use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::known_limits::KnownLimits;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "too-short",
    verdict: Verdict::Suspect,
    summary: "a run takes little longer than the start of a program",
    description: "Executing a program that does nothing takes at least a fifth of a command's \
        median run on this machine (the limit `exec`, minus its interquartile range). Much of the \
        comparison is then about how programs start.",
    facts: &[],
    rules: &[Rule::RaceByLimits(judge)],
};

const SHARE: f64 = 0.2;
/// Of a longer run, no start is a fifth.
const LONG_NS: f64 = 100e6;

fn judge(race: &Race, limits: &KnownLimits<'_>) -> Vec<UnnamedFinding> {
    let short = race.commands.iter().filter(|one| one.wall.median_ns < LONG_NS);
    let of_command = short.filter_map(|command| {
        let wall = command.wall.median_ns;
        // Less its measured variation: a busy machine makes it longer.
        let (start, spread) = limits.spread("exec")?;
        let start = start - spread;
        (start >= wall * SHARE).then(|| {
            let text = format!(
                "{}: a run takes {} (median), and executing a program that does nothing takes at \
                 least {} on this machine: much of the time is the start of a program",
                command.label,
                duration(wall),
                duration(start)
            );
            let evidence = [
                ("contender", json!(command.label)),
                ("exec_ns", json!(start as u64)),
                ("wall_ns", json!(wall as u64)),
            ];
            UnnamedFinding::new(text, evidence).advise("give it more work per run")
        })
    });
    of_command.collect()
}
