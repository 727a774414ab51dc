//! What a run that mostly sleeps sleeps on.

use std::collections::BTreeMap;

use iotomy_record::Verdict;
use iotomy_record::numbers::{duration, share};
use serde_json::json;

use crate::run::Run;
use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "blocked-on",
    verdict: Verdict::Note,
    summary: "the run slept for most of its time, and on what",
    description: "Half of the time of all threads or more was spent asleep in system calls; the calls that slept \
                  longest are named. Waiting for a child of its own does not count: the child's time does.",
    rules: &[Rule::Run(judge)],
};

const FOR_CHILDREN: [&str; 2] = ["wait4", "waitid"];
/// Of a shorter one, what it waits for is its own start.
const SHORTEST_NS: u64 = 2_000_000;

fn judge(run: &Run<'_>) -> Option<Found> {
    let (mut slept, mut for_children) = (BTreeMap::<&str, u64>::new(), 0u64);
    for call in &run.trace.calls {
        let blocked = call.blocked_ns.unwrap_or(0);
        if FOR_CHILDREN.contains(&call.syscall.as_str()) {
            for_children = for_children.saturating_add(blocked);
        } else if blocked > 0 {
            let sum = slept.entry(&call.syscall).or_default();
            *sum = sum.saturating_add(blocked);
        }
    }
    let all = run.thread_ns().saturating_sub(for_children);
    let asleep = slept.values().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
    if all < SHORTEST_NS || asleep < all / 2 {
        return None;
    }
    let mut longest: Vec<(&str, u64)> = slept.into_iter().collect();
    longest.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let named = longest.iter().take(3).filter(|(_, ns)| *ns >= asleep / 20);
    let named: Vec<String> =
        named.map(|(name, ns)| format!("{name} {}", duration(*ns as f64))).collect();
    let text = format!(
        "{} of the time of all threads was spent asleep: {}. A faster CPU changes nothing of that",
        share(asleep.into(), all.into()),
        named.join(", ")
    );
    let evidence = [
        ("asleep_ns", json!(asleep)),
        ("thread_ns", json!(all)),
        ("calls", json!(longest.iter().take(3).collect::<Vec<_>>())),
    ];
    Some(Found::new(text, evidence))
}
