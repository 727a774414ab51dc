//! The rows for the error rates of races.

use iotomy_record::{AxisValue, Case, Claim, ClaimVerdict};

use crate::race::expected::ExpectedResult;
use crate::stats::wilson;
use crate::summary::raw::Raw;
use crate::summary::{Row, names, on, targets};
use crate::tables::{digits, table};

const OURS: &str = "iotomy race";

/// Returns the number of races in which a racer saw a difference, and the number of its races.
fn seen(raw: &Raw, field: &str, racer: &str) -> [usize; 2] {
    let is_it = |case: &&Case| {
        on(case, "field") == field && on(case, "racer") == racer && on(case, "command") == "first"
    };
    let is_seen = |case: &&Case| ["faster", "slower"].contains(&on(case, "verdict"));
    let races = || raw.sweep.cases.iter().filter(is_it);
    [races().filter(is_seen).count(), races().count()]
}

/// Returns the median number of pairs in a racer's races.
fn pairs(raw: &Raw, field: &str, racer: &str) -> usize {
    let mut pairs: Vec<usize> = raw
        .sweep
        .cases
        .iter()
        .filter(|case| on(case, "field") == field && on(case, "racer") == racer)
        .filter(|case| matches!(case.params.get("race"), Some(AxisValue::Number(_))))
        .map(|case| case.samples.len())
        .collect();
    pairs.sort_unstable();
    pairs.get(pairs.len() / 2).copied().unwrap_or(0)
}

fn share([hits, all]: [usize; 2]) -> String {
    let percent = |share: f64| digits(share * 100.0, 0);
    let [low, high] = wilson(hits, all).map(percent);
    format!("{hits} of {all}: {} % [{low}, {high}]", percent(hits as f64 / all.max(1) as f64))
}

fn target(claim: &Claim, raw: &Raw) -> Row {
    let number =
        |name: &str| claim.evidence.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
    let hits = [number("found"), number("races")].map(|count| count as usize);
    let wanted = ExpectedResult::of_claim(&claim.id);
    // Judged by the whole interval, even if the record of an earlier bench was judged by the rate
    // alone.
    let verdict = match claim.verdict {
        ClaimVerdict::Holds => wanted.judge(hits[0], hits[1]),
        verdict => verdict,
    };
    Row {
        what: claim.text.clone(),
        peer: String::new(),
        figure: None,
        found: share(hits),
        bound: wanted.bound(),
        verdict: Some(verdict),
        is_aim: false,
        record: raw.path.clone(),
    }
}

/// Returns the targets, and how often every tool reported a difference.
pub(crate) fn rows(raw: &Raw) -> Vec<Row> {
    let mut rows: Vec<Row> = targets(&raw.sweep).map(|claim| target(claim, raw)).collect();
    for field in names(&raw.sweep, "field") {
        let ours = seen(raw, &field, OURS);
        for peer in names(&raw.sweep, "racer").iter().filter(|racer| *racer != OURS) {
            let theirs = seen(raw, &field, peer);
            if theirs[1] == 0 {
                continue;
            }
            let what = format!("{field}: {OURS} reported a difference");
            let mut row = Row::beside(what, peer, None, 0, raw);
            row.found = format!("{}; it: {}", share(ours), share(theirs));
            rows.push(row);
        }
    }
    rows
}

/// Formats a table of how often each tool reported a difference.
pub(crate) fn block(raws: &[Raw], link: &str) -> String {
    let Some(raw) = raws.last() else { return String::new() };
    let fields = names(&raw.sweep, "field");
    let mut lines = vec![["tool".to_owned()].into_iter().chain(fields.clone()).collect::<Vec<_>>()];
    for racer in names(&raw.sweep, "racer") {
        let mut line = vec![if racer == OURS { format!("**`{racer}`**") } else { racer.clone() }];
        for field in &fields {
            let [hits, all] = seen(raw, field, &racer);
            line.push(format!("{hits} of {all}, {} pairs", pairs(raw, field, &racer)));
        }
        lines.push(line);
    }
    format!(
        "False-positive rate (a command against itself) and detection rate (against one with 3 % more work) of each tool: \
         the races in which it reported a difference, and the median number of pairs of runs per race ({link}; `make \
         bench-race` repeats it). A difference by hyperfine is one where the 95 % CI of the ratio of its means excludes \
         1.\n\n{}",
        table(&lines, 1)
    )
}
