//! Contenders without a traced run.

use iotomy_record::{Race, Verdict};
use serde_json::json;

use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "untraced",
    verdict: Verdict::Note,
    summary: "a contender was not traced, so nothing of it is accounted for",
    description: "A traced run of a contender was wanted and is not there; why is said.",
    rules: &[Rule::Race(judge)],
};

fn judge(race: &Race) -> Vec<Found> {
    let untraced = race.contenders.iter().filter_map(|one| Some((one, one.untraced.as_ref()?)));
    untraced
        .map(|(one, why)| {
            let label = &one.label;
            let text =
                format!("{label} was not traced, so no difference to it is accounted for: {why}");
            Found::new(text, [("contender", json!(label))])
        })
        .collect()
}
