//! The rows for the overhead of D programs.

use crate::stats::{estimate, median, ratio};
use crate::summary::raw::Raw;
use crate::summary::{Row, of_target, samples, shown, targets};
use crate::tables::table;

use super::questions::ALL;

const OURS: &str = "iotomy d";
const PEER: &str = "bpftrace";
const EMPTY: &str = "empty BPF programs";

/// Returns the targets.
pub(crate) fn rows(raw: &Raw) -> Vec<Row> {
    let mut rows: Vec<Row> = targets(&raw.sweep).map(|claim| of_target(claim, 2, raw)).collect();
    for row in &mut rows {
        PEER.clone_into(&mut row.peer);
    }
    rows
}

/// Formats a table of the overhead of each question.
pub(crate) fn block(raws: &[Raw], link: &str) -> String {
    let Some(raw) = raws.last() else { return String::new() };
    let params = [("question", "startup"), ("observer", OURS)];
    let startup = samples(&raw.sweep, &params, "startup").and_then(median);
    let startup = startup.map_or_else(|| "?".to_owned(), |ns| format!("{:.0}", ns / 1e6));
    let text = format!(
        "Overhead per firing of a probe in ns, median and 95 % CI ({link}; `make bench-d` repeats it), beside programs of \
         bpftrace that answer the same. Start-up and output of a script take {startup} ms.\n\n"
    );
    let titles = ["question", EMPTY, "**`iotomy d`**", PEER, "`iotomy d` ÷ bpftrace"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for question in &ALL {
        let costs = |observer| {
            let params = [("question", question.name), ("observer", observer)];
            samples(&raw.sweep, &params, "cost_per_firing")
        };
        let each =
            |observer| costs(observer).and_then(estimate).map_or_else(String::new, |f| shown(f, 0));
        let over = costs(OURS).zip(costs(PEER)).and_then(|(one, other)| ratio(one, other));
        let over = over.map_or_else(String::new, |found| shown(found, 2));
        rows.push(vec![question.text.to_owned(), each(EMPTY), each(OURS), each(PEER), over]);
    }
    text + &table(&rows, 1)
}
