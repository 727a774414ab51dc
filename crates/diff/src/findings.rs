//! Findings, with the runs that have them.

use std::collections::BTreeMap;

use iotomy_record::{FindingRuns, Trace};

/// Every finding of either side, with the runs that have it.
pub(crate) fn findings(a: &[&Trace], b: &[&Trace]) -> Vec<FindingRuns> {
    let mut found: BTreeMap<&str, FindingRuns> = BTreeMap::new();
    let sides = a.iter().map(|trace| (trace, false)).chain(b.iter().map(|trace| (trace, true)));
    for (trace, is_later) in sides {
        let mut seen: Vec<&str> = Vec::new();
        for finding in &trace.findings {
            let entry = found.entry(&finding.id).or_insert_with(|| FindingRuns {
                id: finding.id.clone(),
                text: String::new(),
                a: 0,
                b: 0,
            });
            if seen.contains(&finding.id.as_str()) {
                continue;
            }
            seen.push(&finding.id);
            entry.text.clone_from(&finding.text);
            *(if is_later { &mut entry.b } else { &mut entry.a }) += 1;
        }
    }
    found.into_values().collect()
}
