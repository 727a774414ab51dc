//! A traced run that is not like the timed ones.

use iotomy_record::{Metric, Race, Trace, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "traced-otherwise",
    verdict: Verdict::Suspect,
    summary: "the traced run took a different time than the timed runs",
    description: "The traced run of a command, minus the overhead of the observer, took less \
        than 0.8 or more than 1.25 times the median of the timed runs, differs from it by at \
        least 2 ms and lies outside the range of the timed runs, for any overhead within its \
        range. The rule excludes observers that inflate all times.",
    facts: &[Fact::Calls(&[])],
    rules: &[Rule::Race(judge)],
};

/// Of short runs, the start of a program under watch makes the difference.
const LEAST_NS: f64 = 2e6;

fn judge(race: &Race) -> Vec<UnnamedFinding> {
    let of_command = race.commands.iter().filter_map(|one| {
        let trace = one.trace.as_ref().filter(|trace| !trace.observer.times_inflated)?;
        let traced = race.attributions.iter().find_map(|found| match found.metric {
            // Of one command alone, base and other are the same, and the base is nothing.
            Metric::Wall if found.other == one.label => Some(found.traced_other_ns),
            Metric::Wall if found.base == one.label => Some(found.traced_base_ns),
            _ => None,
        })?;
        let timed = one.wall.median_ns;
        // The time closest to the timed runs among the possible ones of the traced run.
        let doubt = doubt(trace);
        let nearest = timed.clamp(traced as f64 - doubt, traced as f64 + doubt);
        let ratio = nearest / timed.max(1.0);
        let spread = one.wall.min_ns..=one.wall.max_ns;
        let is_far = (nearest - timed).abs() > LEAST_NS && !spread.contains(&nearest);
        (is_far && !(0.8..=1.25).contains(&ratio)).then(|| {
            let text = format!(
                "the traced run of {} took {ratio:.2} × the median of the timed runs after \
                 subtracting the overhead of {}: its terms are those of that run",
                one.label, trace.observer.name
            );
            let evidence = [
                ("contender", json!(one.label)),
                ("traced_ns", json!(traced)),
                ("timed_ns", json!(timed as u64)),
            ];
            UnnamedFinding::new(text, evidence)
        })
    });
    of_command.collect()
}

/// The distance of the overhead from the middle of its range, which was subtracted.
fn doubt(trace: &Trace) -> f64 {
    let [low, high] = trace.observer.cost_range_ns();
    let calls: f64 =
        trace.calls.iter().map(|call| (call.calls as f64) + (call.in_flight as f64)).sum();
    (high - low) / 2.0 * calls
}
