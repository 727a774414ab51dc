//! The cost of sampling.

use iotomy_record::Claim;

use crate::stats::{estimate, ratio};
use crate::summary::raw::Raw;
use crate::summary::{Row, names, of_target, samples, shown, targets};

/// Returns the overhead added to a run watched without the addition: the targets, and one row for
/// every component in the record.
pub(crate) fn rows(raw: &Raw) -> Vec<Row> {
    let mut rows: Vec<Row> = targets(&raw.sweep).map(|claim| row(claim, raw)).collect();
    for part in names(&raw.sweep, "part") {
        let on_cpu = |side: &str| samples(&raw.sweep, &[("part", &part), ("side", side)], "on-cpu");
        let found =
            on_cpu("with").zip(on_cpu("without")).and_then(|(with, without)| ratio(with, without));
        let what = format!("time on a CPU a call, with {part}");
        rows.push(Row::beside(what, "without", found, 3, raw));
    }
    rows
}

fn row(claim: &Claim, raw: &Raw) -> Row {
    let Some(added) = claim.evidence.get("added_percent").and_then(|added| added.as_array()) else {
        return of_target(claim, 2, raw);
    };
    let added: Vec<f64> = added.iter().filter_map(serde_json::Value::as_f64).collect();
    let figure = estimate(&added);
    Row {
        what: claim.text.clone(),
        peer: "the same without".to_owned(),
        figure,
        found: figure.map_or_else(String::new, |found| format!("{} % more", shown(found, 2))),
        bound: "less than 3 %".to_owned(),
        verdict: Some(claim.verdict),
        is_aim: false,
        record: raw.path.clone(),
    }
}
