//! What is left out, and what the comparison rests on.

use iotomy_record::{Diff, DiffVerdict};

use super::DiffView;
use crate::numbers::{counted, thousands};

/// How many rows have no difference to show.
pub(super) fn equal(record: &Diff, view: DiffView) -> Vec<String> {
    if view.all {
        return Vec::new();
    }
    let count = |verdict: DiffVerdict| {
        let parts = record.tables().into_iter().filter_map(|(name, rows)| {
            let count = rows.iter().filter(|row| row.verdict == verdict).count();
            let name = match (name, count) {
                ("requests", 1) => "peer of requests",
                ("requests", _) => "peers of requests",
                (name, 1) => name.trim_end_matches('s'),
                _ => name,
            };
            (count > 0).then(|| format!("{} {name}", thousands(count as u128)))
        });
        parts.collect::<Vec<_>>().join(", ")
    };
    let says = [
        (DiffVerdict::Equal, "equal"),
        (
            DiffVerdict::BelowOverhead,
            "equal but for times that differ by less than the overhead of tracing",
        ),
        (DiffVerdict::TimesDiffer, "equal but for times, which differ in any two runs"),
        (DiffVerdict::WithinSampling, "within the error of sampling"),
        (DiffVerdict::WithinNoise, "not different beyond noise"),
    ];
    let mut lines: Vec<String> = says
        .into_iter()
        .filter_map(|(verdict, says)| {
            let rows = count(verdict);
            (!rows.is_empty()).then(|| format!("{says}: {rows}"))
        })
        .collect();
    if let Some(last) = lines.last_mut() {
        last.push_str(" (--all)");
    }
    lines
}

/// The reach of the comparison.
pub(super) fn grounds(record: &Diff) -> Vec<String> {
    let (a, b) = (record.a.sources.len(), record.b.sources.len());
    let mut lines: Vec<String> = record
        .left_out
        .iter()
        .map(|one| format!("{} are not compared: {}", one.table, one.why))
        .collect();
    if record.rows_of_several() {
        lines.push(
            "… in a name is a number or random letters that each run draws anew; names that differ in \
             nothing else are one row"
                .to_owned(),
        );
    }
    if record.per_second {
        lines.push(
            "sums are per second of the watch: running processes were watched, or a command was not \
             watched to its end"
                .to_owned(),
        );
    }
    lines.push(match (record.judged, a, b) {
        (true, ..) => format!(
            "{} of A and {b} of B: beyond noise is what differs by more than runs of one side do. All \
             measures are judged together: where nothing differs, 5 in 100 comparisons at most say that \
             something does. The sides were not run in turn: a difference includes any change of the \
             machine in between",
            counted(a as u128, "run", "runs")
        ),
        (false, 1, 1) => "one run of each: these are differences of two runs; how much runs differ by \
                          themselves is not known (iotomy diff A… -- B…, with 4 runs of each or more)"
            .to_owned(),
        _ => format!(
            "{} of A and {b} of B are too few to tell a difference from noise; give 4 of each or more",
            counted(a as u128, "run", "runs")
        ),
    });
    if record.kind == "anatomy" {
        lines.push(
            "±: the error of sampling in the difference of these runs, 95 % for all rows of the table \
             together"
                .to_owned(),
        );
    }
    if record.a.times_inflated || record.b.times_inflated {
        lines.push(
            "times: watching slowed the calls so much that they cannot be taken at face value; counts \
             and bytes are exact"
                .to_owned(),
        );
    }
    let lost = record.a.lost.saturating_add(record.b.lost);
    if lost > 0 {
        lines.push(format!(
            "the observer's tables had no room for {}: a row that one side lacks may be among these",
            counted(lost.into(), "entry or call", "entries or calls")
        ));
    }
    lines
}
