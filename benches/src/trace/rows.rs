//! The rows for the overhead of being observed.

use std::fmt::Write as _;

use crate::stats::{Estimate, estimate, median, ratio};
use crate::summary::raw::Raw;
use crate::summary::{Row, of_target, on, samples, shown, targets};
use crate::tables::table;
use crate::trace::cold;

const OURS: &str = "iotomy trace";
const EMPTY: &str = "two empty BPF programs";
/// Contenders without overhead, or for an option that has become the default.
const NO_PEERS: [&str; 2] = ["bare", "iotomy trace --files"];

/// Returns the overheads compared with every observer's, and the targets.
pub(crate) fn rows(raw: &Raw) -> Vec<Row> {
    let mut rows: Vec<Row> = targets(&raw.sweep).map(|claim| of_target(claim, 2, raw)).collect();
    for row in &mut rows {
        let peer =
            row.peer.trim_end_matches(", the aim").trim_end_matches("'s").trim_end_matches('\'');
        row.peer = peer.replace("two empty programs", EMPTY);
    }
    for subject in ["getppid", "dd"] {
        let what = format!("{subject}: cost of {OURS}");
        for peer in observers(raw) {
            if peer == OURS || rows.iter().any(|row| row.what == what && row.peer == peer) {
                continue;
            }
            let found = over(raw, subject, OURS, &peer);
            rows.push(Row::beside(what.clone(), &peer, found, 2, raw));
        }
    }
    rows.extend(cold::rows(raw));
    rows
}

fn observers(raw: &Raw) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for case in raw.sweep.cases.iter().filter(|case| case.metric == "cost_per_call") {
        let name = on(case, "observer");
        if case.skipped.is_none() && !NO_PEERS.contains(&name) && all.iter().all(|one| one != name)
        {
            all.push(name.to_owned());
        }
    }
    all
}

fn costs<'a>(raw: &'a Raw, subject: &str, observer: &str) -> Option<&'a [f64]> {
    samples(&raw.sweep, &[("subject", subject), ("observer", observer)], "cost_per_call")
}

/// Returns the ratio of one overhead to another, block by block.
fn over(raw: &Raw, subject: &str, one: &str, other: &str) -> Option<Estimate> {
    ratio(costs(raw, subject, one)?, costs(raw, subject, other)?)
}

/// Formats a table of every observer's overhead per call.
pub(crate) fn block(raws: &[Raw], link: &str) -> String {
    let Some(raw) = raws.last() else { return String::new() };
    let bare = |subject| {
        let params = [("subject", subject), ("observer", "bare")];
        let found = samples(&raw.sweep, &params, "time_per_call").and_then(median);
        found.map_or_else(|| "?".to_owned(), |ns| format!("{ns:.0}"))
    };
    let mut text = format!(
        "Overhead of tracing per call in ns, median and 95 % CI ({link}; `make bench-trace` repeats it), of `getppid`, \
         which takes {} ns untraced, and of `dd bs=8k` from memory to the null device, whose calls take {} ns. Ratios \
         are of overheads in the same block of runs.\n\n",
        bare("getppid"),
        bare("dd")
    );
    let titles = ["observer", "`getppid`", "÷ empty programs", "`dd`", "÷ empty programs"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for observer in observers(raw) {
        let mut row =
            vec![if observer == OURS { format!("**`{OURS}`**") } else { observer.clone() }];
        for subject in ["getppid", "dd"] {
            let cost = costs(raw, subject, &observer).and_then(estimate);
            let over = over(raw, subject, &observer, EMPTY).filter(|_| observer != EMPTY);
            row.push(cost.map_or_else(String::new, |found| shown(found, 0)));
            row.push(over.map_or_else(String::new, |found| shown(found, 2)));
        }
        rows.push(row);
    }
    let _ = write!(text, "{}", table(&rows, 1));
    text + &cold::block(raw)
}
