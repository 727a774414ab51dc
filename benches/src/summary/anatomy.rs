//! What sampling costs.

use iotomy_record::Claim;

use crate::stats::estimate;
use crate::summary::kept::Raw;
use crate::summary::{Row, of_target, shown, targets};

/// What is added to a run that is traced.
pub fn rows(raw: &Raw) -> Vec<Row> {
    targets(&raw.sweep).map(|claim| row(claim, raw)).collect()
}

fn row(claim: &Claim, raw: &Raw) -> Row {
    let Some(added) = claim.evidence.get("added_percent").and_then(|added| added.as_array()) else {
        return of_target(claim, 2, raw);
    };
    let added: Vec<f64> = added.iter().filter_map(serde_json::Value::as_f64).collect();
    let figure = estimate(&added);
    Row {
        what: claim.text.clone(),
        peer: "`iotomy trace` of the same".to_owned(),
        figure,
        found: figure.map_or_else(String::new, |found| format!("{} % more", shown(found, 2))),
        bound: "less than 3 %".to_owned(),
        verdict: Some(claim.verdict),
        is_aim: false,
        record: raw.path.clone(),
    }
}
