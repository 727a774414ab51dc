//! The rows for what servers pay.

use crate::stats::{Estimate, estimate};
use crate::summary::raw::Raw;
use crate::summary::{Row, of_target, on, samples, shown, targets};
use crate::tables::table;

const EMPTY: &str = "two empty BPF programs";
const BARE: &str = "bare";

/// Returns the targets, and the CPU time a request under every observer compared with the bare one.
pub(crate) fn rows(raw: &Raw) -> Vec<Row> {
    let mut rows: Vec<Row> = targets(&raw.sweep).map(|claim| of_target(claim, 2, raw)).collect();
    for row in &mut rows {
        row.what = row.what.trim_end_matches(", the aim").to_owned();
        let peer = row.peer.trim_end_matches(", the aim").trim_end_matches("'s");
        row.peer = peer.replace("two empty programs'", EMPTY);
    }
    for (service, observer) in observed(raw).into_iter().filter(|(_, one)| *one != BARE) {
        let what = format!("{service}: CPU time a request under {observer}");
        if rows.iter().any(|row| row.what == what) {
            continue;
        }
        let found = figure(raw, service, observer, "server_to_bare");
        rows.push(Row::beside(what, BARE, found, 3, raw));
    }
    rows
}

/// Returns every service with every observer of it.
fn observed(raw: &Raw) -> Vec<(&str, &str)> {
    let cases = raw.sweep.cases.iter();
    let measured = cases.filter(|case| case.metric == "server" && case.skipped.is_none());
    measured.map(|case| (on(case, "service"), on(case, "observer"))).collect()
}

fn figure(raw: &Raw, service: &str, observer: &str, metric: &str) -> Option<Estimate> {
    let params = [("service", service), ("observer", observer)];
    samples(&raw.sweep, &params, metric).and_then(estimate)
}

/// Formats a table of what every server pays under every observer.
pub(crate) fn block(raws: &[Raw], link: &str) -> String {
    let Some(raw) = raws.last() else { return String::new() };
    let all = [
        ("CPU time ÷ bare", "server_to_bare"),
        ("cost ÷ empty programs", "cost_to_floor"),
        ("cost ÷ bpftrace", "cost_to_bpftrace"),
        ("throughput ÷ bare", "rate_to_bare"),
    ];
    // Older records have fewer figures.
    let is_there = |metric| raw.sweep.cases.iter().any(|case| case.metric == metric);
    let columns: Vec<(&str, &str)> =
        all.into_iter().filter(|(_, metric)| is_there(*metric)).collect();
    let titles = ["server", "watched by"].into_iter().chain(columns.iter().map(|one| one.0));
    let mut rows = vec![titles.map(str::to_owned).collect::<Vec<String>>()];
    for (service, observer) in observed(raw).into_iter().filter(|(_, one)| *one != BARE) {
        let cells = columns.iter().map(|(_, metric)| {
            let found = figure(raw, service, observer, metric);
            found.map_or_else(String::new, |found| shown(found, 2))
        });
        rows.push([service, observer].map(str::to_owned).into_iter().chain(cells).collect());
    }
    format!(
        "CPU time per request and throughput of a running server under each observer, as ratios to runs without \
         one; median and 95 % CI ({link}; `make bench-services` repeats it).\n\n{}",
        table(&rows, 2)
    )
}
