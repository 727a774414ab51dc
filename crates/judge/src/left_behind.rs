//! Processes a contender left running.

use iotomy_record::{Race, Verdict};
use serde_json::json;

use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "left-behind",
    verdict: Verdict::Suspect,
    summary: "a contender left processes running when it ended",
    description: "Processes of a contender were alive when its command had ended. They were killed before the next \
                  run; what they did is in no figure.",
    rules: &[Rule::Race(judge)],
};

fn judge(race: &Race) -> Vec<Found> {
    let left = race.contenders.iter().filter(|one| one.left_behind > 0);
    left.map(|one| {
        let (label, strays) = (&one.label, one.left_behind);
        let text = format!(
            "{label} left processes running when it ended, {strays} in all; they were killed before \
             the next run, and their time is in no figure"
        );
        Found::new(text, [("contender", json!(label)), ("left", json!(strays))])
    })
    .collect()
}
