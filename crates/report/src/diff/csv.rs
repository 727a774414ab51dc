//! A comparison as CSV: a line per row and measure, everything included, in the record's units.

use iotomy_record::{Delta, Diff, DiffRow, DiffSideName};

use crate::escape::csv_field;

const HEADS: &str = "table,program,name,of,verdict,only_in,measure,a,b,delta,ci_low,ci_high,\
     sampling_error,overhead,beyond_noise\n";

/// Every measure of every row.
pub fn diff_csv(record: &Diff) -> String {
    let mut text = HEADS.to_owned();
    let totals = DiffRow { measures: record.totals.clone(), ..DiffRow::default() };
    let whole = [("totals", std::slice::from_ref(&totals))];
    for (table, rows) in whole.into_iter().chain(record.tables()) {
        for row in rows {
            for delta in &row.measures {
                text += &line(table, row, delta).join(",");
                text.push('\n');
            }
        }
    }
    text
}

fn line(table: &str, row: &DiffRow, delta: &Delta) -> [String; 15] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let known = delta.a.is_some() && delta.b.is_some();
    let verdict = match table {
        "totals" => String::new(),
        _ => serde_json::to_value(row.verdict)
            .ok()
            .and_then(|word| word.as_str().map(str::to_owned))
            .unwrap_or_default(),
    };
    let only_in = row.only_in.map_or("", |side| match side {
        DiffSideName::A => "a",
        DiffSideName::B => "b",
    });
    [
        table.to_owned(),
        csv_field(&row.program),
        csv_field(&row.name),
        csv_field(&row.of),
        verdict,
        only_in.to_owned(),
        delta.measure.to_owned(),
        number(delta.a),
        number(delta.b),
        number(known.then(|| delta.delta())),
        number(delta.ci95.map(|[low, _]| low)),
        number(delta.ci95.map(|[_, high]| high)),
        number(delta.sampling_error),
        number(delta.overhead),
        delta.beyond_noise.map_or_else(String::new, |is| is.to_string()),
    ]
}
