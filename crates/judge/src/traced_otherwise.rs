//! A traced run that is not like the timed ones.

use iotomy_record::{Metric, Race, Verdict};
use serde_json::json;

use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "traced-otherwise",
    verdict: Verdict::Suspect,
    summary: "the traced run took another time than the timed ones",
    description: "The traced run of a contender, the price of the observer taken off, took less than 0.8 or more than \
                  1.25 times the median of the timed runs, 2 ms or more from it and no time that a timed run took. Not said of an observer that inflates all times.",
    rules: &[Rule::Race(judge)],
};

/// Of short runs, the start of a program under watch makes the difference.
const LEAST_NS: f64 = 2e6;

fn judge(race: &Race) -> Vec<Found> {
    let of_contender = race.contenders.iter().filter_map(|one| {
        let trace = one.trace.as_ref().filter(|trace| !trace.observer.times_inflated)?;
        let traced = race.attributions.iter().find_map(|found| match found.metric {
            // Of one command alone, base and other are the same, and the base is nothing.
            Metric::Wall if found.other == one.label => Some(found.traced_other_ns),
            Metric::Wall if found.base == one.label => Some(found.traced_base_ns),
            _ => None,
        })?;
        let timed = one.wall.median_ns;
        let ratio = traced as f64 / timed.max(1.0);
        let spread = one.wall.min_ns..=one.wall.max_ns;
        let is_far = (traced as f64 - timed).abs() > LEAST_NS && !spread.contains(&(traced as f64));
        (is_far && !(0.8..=1.25).contains(&ratio)).then(|| {
            let text = format!(
                "the traced run of {} took {ratio:.2} × the median of the timed ones, the price of {} \
                 taken off: its terms are of that run",
                one.label, trace.observer.name
            );
            let evidence = [
                ("contender", json!(one.label)),
                ("traced_ns", json!(traced)),
                ("timed_ns", json!(timed as u64)),
            ];
            Found::new(text, evidence)
        })
    });
    of_contender.collect()
}
