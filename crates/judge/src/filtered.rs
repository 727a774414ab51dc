//! A seccomp filter was in the way.

use iotomy_record::{Race, Verdict};

use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "filtered",
    verdict: Verdict::Note,
    summary: "every contender ran with a seccomp filter",
    description: "With --deny, those that were denied nothing ran with an empty filter, so that all pay for being filtered.",
    rules: &[Rule::Race(judge)],
};

fn judge(race: &Race) -> Vec<Found> {
    if race.contenders.iter().all(|contender| contender.denied.is_empty()) {
        return Vec::new();
    }
    let text = "every contender ran with a seccomp filter, those that were denied nothing with an \
                empty one: all pay for being filtered, a longer filter costs more";
    vec![Found::new(text.to_owned(), [])]
}
