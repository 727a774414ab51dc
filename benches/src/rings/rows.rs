//! The rows for the overhead of watching io_uring.

use crate::stats::{estimate, median, ratio};
use crate::summary::raw::Raw;
use crate::summary::{Row, of_target, samples, shown, targets};
use crate::tables::table;

const OURS: &str = "iotomy trace";
const EMPTY: &str = "two empty BPF programs";
const OBSERVERS: [&str; 3] = [EMPTY, "two that read the clock", OURS];

/// Returns the targets.
pub(crate) fn rows(raw: &Raw) -> Vec<Row> {
    let mut rows: Vec<Row> = targets(&raw.sweep).map(|claim| of_target(claim, 2, raw)).collect();
    for row in &mut rows {
        EMPTY.clone_into(&mut row.peer);
    }
    rows
}

fn figures<'a>(raw: &'a Raw, subject: &str, observer: &str, metric: &str) -> Option<&'a [f64]> {
    samples(&raw.sweep, &[("subject", subject), ("observer", observer)], metric)
}

/// Formats a table of every observer's overhead per request.
pub(crate) fn block(raws: &[Raw], link: &str) -> String {
    let Some(raw) = raws.last() else { return String::new() };
    let bare = |subject| {
        let found = figures(raw, subject, "bare", "time_per_request").and_then(median);
        found.map_or_else(|| "?".to_owned(), |ns| format!("{ns:.0}"))
    };
    let text = format!(
        "Overhead per request of io_uring in ns, median and 95 % CI ({link}; `make bench-rings` repeats it): requests \
         that do nothing, which take {} ns unwatched, and reads of 4 KiB from the page cache, which take {} ns; 32 a \
         call. Ratios are of overheads in the same block of runs.\n\n",
        bare("nop"),
        bare("read")
    );
    let titles = ["observer", "`nop`", "÷ empty programs", "`read`", "÷ empty programs"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for observer in OBSERVERS {
        let mut row =
            vec![if observer == OURS { format!("**`{OURS}`**") } else { observer.to_owned() }];
        for subject in ["nop", "read"] {
            let costs = |observer| figures(raw, subject, observer, "cost_per_request");
            let over = costs(observer).zip(costs(EMPTY)).filter(|_| observer != EMPTY);
            let over = over.and_then(|(one, other)| ratio(one, other));
            row.push(costs(observer).and_then(estimate).map_or_else(String::new, |f| shown(f, 0)));
            row.push(over.map_or_else(String::new, |found| shown(found, 2)));
        }
        rows.push(row);
    }
    text + &table(&rows, 1)
}
