//! Runs that are little more than the start of a program.

use iotomy_record::numbers::{duration, share};
use iotomy_record::{Race, Verdict};
use serde_json::json;

use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "too-short",
    verdict: Verdict::Suspect,
    summary: "a large part of a run is the start of its program",
    description: "Of a contender's median run, a fifth or more had passed when its program was executed; \
                  loading and starting it comes on top. Much of what is compared is how programs start.",
    rules: &[Rule::Race(judge)],
};

const SHARE: f64 = 0.2;

fn judge(race: &Race) -> Vec<Found> {
    let of_contender = race.contenders.iter().filter_map(|contender| {
        let mut starts: Vec<u64> = contender.runs.iter().map(|run| run.startup_ns).collect();
        starts.sort_unstable();
        let start = *starts.get(starts.len() / 2)?;
        let wall = contender.wall.median_ns;
        (start > 0 && start as f64 >= wall * SHARE).then(|| {
            let text = format!(
                "{}: a run takes {}, and in {} ({}) of it the program has yet to be executed: much of what is \
                 timed is the start of a program",
                contender.label,
                duration(wall),
                duration(start as f64),
                share(start.into(), wall as u128)
            );
            let evidence = [
                ("contender", json!(contender.label)),
                ("startup_ns", json!(start)),
                ("wall_ns", json!(wall as u64)),
            ];
            Found::new(text, evidence).advise("give it more to do in one run")
        })
    });
    of_contender.collect()
}
