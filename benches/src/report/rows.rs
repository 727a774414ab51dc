//! The rows for the time of a page.

use crate::stats::estimate;
use crate::summary::raw::Raw;
use crate::summary::{Row, of_target, samples, shown, targets};

/// Returns the targets; there is no peer.
pub(crate) fn rows(raw: &Raw) -> Vec<Row> {
    targets(&raw.sweep).map(|claim| of_target(claim, 2, raw)).collect()
}

/// Formats a sentence with both times.
pub(crate) fn block(raws: &[Raw], link: &str) -> String {
    let Some(raw) = raws.last() else { return String::new() };
    let seconds = |what: &str| {
        let found = samples(&raw.sweep, &[("what", what)], "time").and_then(estimate);
        found.map_or_else(|| "an unknown number of".to_owned(), |found| shown(found, 2))
    };
    format!(
        "A page of a trace of 50 MiB takes {} s to make, and could be used {} s after Chromium began to open it, \
         median and 95 % interval ({link}).\n",
        seconds("make"),
        seconds("open")
    )
}
