//! The rows for the overhead of the live view.

use crate::stats::{estimate, ratio};
use crate::summary::raw::Raw;
use crate::summary::{Row, of_target, samples, shown, targets};

const LIVE: &str = "iotomy trace --live";

/// Returns the targets, and the times compared with those of the bare runs.
pub(crate) fn rows(raw: &Raw) -> Vec<Row> {
    let mut rows: Vec<Row> = targets(&raw.sweep).map(|claim| of_target(claim, 3, raw)).collect();
    for (metric, how) in [("cpu", "on a CPU"), ("wall", "by the clock")] {
        let found = samples_of(raw, LIVE, metric).zip(samples_of(raw, "bare", metric));
        let found = found.and_then(|(live, bare)| ratio(live, bare));
        let what = format!("pread64: time {how} under {LIVE}");
        rows.push(Row::beside(what, "bare", found, 3, raw));
    }
    rows
}

fn samples_of<'a>(raw: &'a Raw, way: &str, metric: &str) -> Option<&'a [f64]> {
    samples(&raw.sweep, &[("watched by", way)], metric)
}

/// Formats a sentence with all results.
pub(crate) fn block(raws: &[Raw], link: &str) -> String {
    let Some(raw) = raws.last() else { return String::new() };
    let over = samples_of(raw, LIVE, "cpu").zip(samples_of(raw, "iotomy trace", "cpu"));
    let over = over.and_then(|(live, trace)| ratio(live, trace));
    let own = samples_of(raw, LIVE, "own").and_then(estimate);
    let text = |found: Option<_>, decimals| {
        found.map_or_else(|| "an unknown number of".to_owned(), |found| shown(found, decimals))
    };
    format!(
        "With the view on a terminal of 120 by 40, a `pread64` of a cached page takes {} times as long as traced \
         without it, and iotomy itself {} % of a CPU, median and 95 % interval ({link}; `make bench-live` repeats \
         it).\n",
        text(over, 3),
        text(own, 2)
    )
}
