//! Every table of random records, written and read back, against the JSON of the record.

use std::collections::BTreeMap;
use std::fs;

use iotomy_export::{DataSet, Exported, TABLES, Type};
use iotomy_record::arbitrary;
use iotomy_record::store::{Record, parse_record};
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::expected::{self, Row};
use crate::read_back::rows;

/// Keys of rows that no column has, by table. A new key of a record gets a column, or a place here.
const LEFT_OUT: &[(&str, &[&str])] = &[
    ("files", &["socket"]),
    ("layers", &["functions"]),
    ("processes", &["argv_words"]),
    ("cases", &["extra_samples", "visits"]),
];

/// The record's bytes, its export, and the rows of each table as read back.
fn exported(record: Record) -> (Vec<u8>, BTreeMap<&'static str, Vec<Row>>) {
    let bytes = record.as_ref().line().unwrap();
    let record = parse_record(&bytes).unwrap();
    let one = Exported::new(record, &bytes, Some("web 1")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let data_set = DataSet::new(folder.path());
    let count = data_set.add(&one).unwrap();
    let of_table = |name: &'static str| {
        let file = data_set.file(name, &one);
        let rows = if file.exists() { rows(&file) } else { Vec::new() };
        (name, rows)
    };
    let tables: BTreeMap<_, _> = TABLES.iter().map(|table| of_table(table.name)).collect();
    assert_eq!(tables.values().map(|rows| rows.len() as u64).sum::<u64>(), count);
    (bytes, tables)
}

/// Checks every cell of a record's tables.
fn check(record: Record) {
    let (bytes, tables) = exported(record);
    let json: Value = serde_json::from_slice(&bytes).unwrap();
    let machine = expected::machine(&json);
    for table in TABLES {
        let found = &tables[table.name];
        if table.name == "measures" {
            continue;
        }
        let expected = expected::rows(table.name, &json);
        assert_eq!(found.len(), expected.len(), "{}", table.name);
        for (found, mut expected) in found.iter().zip(expected) {
            for key in ["kernel", "cpu"] {
                expected.insert(key.to_owned(), machine[key].clone());
            }
            expected.insert("started".to_owned(), json["started"].clone());
            check_row(table, found, &expected);
        }
    }
}

fn check_row(table: &iotomy_export::Table, found: &Row, expected: &Row) {
    let columns = (table.columns)();
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    assert!(found.keys().all(|key| names.contains(&key.as_str())), "{}: {found:?}", table.name);
    for column in &columns {
        if ["run", "subject"].contains(&&*column.name) {
            assert!(found[&*column.name].is_string(), "{}", column.name);
            continue;
        }
        let content = expected.get(&*column.name).unwrap_or(&Value::Null);
        let content = content_of(column.of, content, &column.name);
        // As JSON, whose keys have an order of their own.
        let callers = found.get("callers").and_then(Value::as_str);
        let callers = callers.map(|text| serde_json::from_str::<Value>(text).unwrap());
        let cell = match &callers {
            Some(callers) if column.name == "callers" => callers,
            _ => &found[&*column.name],
        };
        let is_absent = content.is_null() && is_nothing(cell)
            // There is no median of nothing.
            || column.of == Type::Quantiles && cell.is_null() && is_nothing(&content);
        assert!(*cell == content || is_absent, "{}.{}: {cell}, {content}", table.name, column.name);
    }
    if table.name == "runs" {
        return;
    }
    let left_out = LEFT_OUT.iter().find(|(name, _)| *name == table.name);
    let left_out = left_out.map_or(&[][..], |(_, keys)| *keys);
    let known =
        |key: &str| names.contains(&key) || left_out.contains(&key) || key.starts_with("exit_");
    for key in expected.keys() {
        assert!(known(key), "{} has no column {key}", table.name);
    }
}

/// A value of a record as a column of this type has it.
fn content_of(of: Type, value: &Value, name: &str) -> Value {
    let signed = |value: &Value| match value.as_u64() {
        Some(number) => number.min(i64::MAX as u64).into(),
        None => value.clone(),
    };
    let each = |of: &Map<String, Value>, change: &dyn Fn(&Value) -> Value| -> Value {
        of.iter().map(|(key, value)| (key.replace('.', "_"), change(value))).collect()
    };
    match (of, value) {
        (_, Value::Null) => Value::Null,
        (Type::Text, value) if name == "evidence" => serde_json::to_string(value).unwrap().into(),
        (Type::Integer, value) => signed(value),
        (Type::Float, value) => value.as_f64().into(),
        // An argument below 0 is a large number in the record.
        (Type::Integers, Value::Array(all)) => {
            all.iter().map(|one| one.as_u64().unwrap().cast_signed()).collect()
        }
        (Type::Floats, Value::Array(all)) => all.iter().map(|one| one.as_f64()).collect(),
        (Type::IntegerByName, Value::Object(of)) => {
            of.iter().map(|(key, value)| (key.clone(), signed(value))).collect()
        }
        (Type::FloatByName, Value::Object(of)) => {
            of.iter().map(|(key, value)| (key.clone(), Value::from(value.as_f64()))).collect()
        }
        (Type::TextByName, Value::Object(of)) => {
            let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
            of.iter().map(|(key, value)| (key.clone(), Value::from(text(value)))).collect()
        }
        (Type::Quantiles, Value::Object(of)) => {
            let mut of = of.clone();
            of.remove("buckets");
            each(&of, &signed)
        }
        (Type::Histogram, Value::Object(of)) => {
            let list = |value: &Value| match value {
                Value::Array(counts) => {
                    let used = counts.iter().rposition(|one| one != 0).map_or(0, |last| last + 1);
                    counts[..used].iter().map(signed).collect()
                }
                number => signed(number),
            };
            each(of, &list)
        }
        (_, value) => value.clone(),
    }
}

/// Whether it is what a record leaves out.
fn is_nothing(cell: &Value) -> bool {
    match cell {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(parts) => parts.values().all(is_nothing),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_tables_of_a_trace_have_what_is_in_its_json(trace in arbitrary::trace()) {
        // One of a part of the time is refused.
        let is_part = trace.sample.is_some();
        let record = Record::Trace(Box::new(trace));
        match is_part {
            true => drop(Exported::new(record, b"", None).unwrap_err()),
            false => check(record),
        }
    }

    #[test]
    fn the_tables_of_an_anatomy_have_what_is_in_its_json(anatomy in arbitrary::anatomy()) {
        check(Record::Anatomy(Box::new(anatomy)));
    }

    #[test]
    fn the_tables_of_a_race_have_what_is_in_its_json(race in arbitrary::race()) {
        check(Record::Race(Box::new(race)));
    }

    #[test]
    fn the_tables_of_a_sweep_have_what_is_in_its_json(sweep in arbitrary::sweep()) {
        check(Record::Sweep(Box::new(sweep)));
    }

    #[test]
    fn every_other_record_is_a_run(
        limits in arbitrary::limits(),
        copy in arbitrary::copy(),
        run in arbitrary::d(),
    ) {
        for record in [Record::Limits(Box::new(limits)), Record::Copy(Box::new(copy)), Record::D(Box::new(run))] {
            check(record);
        }
    }
}

/// Property tests may go without rows: here is one of each table, and the measures, which the history derives.
#[test]
fn the_examples_have_rows_in_every_table() {
    let mut filled: BTreeMap<&str, usize> = BTreeMap::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for example in [
        "docs/examples/dd-and-cat.json",
        "docs/examples/dd-to-disk.json",
        "docs/examples/fio-workers.json",
        "crates/export/tests/records/redis.json",
        "results/2026-11-22-epyc-2cpu-linux-6.18/lab/null-sink.json",
    ] {
        let bytes = fs::read(format!("{folder}/{example}")).unwrap();
        let record = parse_record(&bytes).unwrap();
        let measures = iotomy_history::measures(record.as_ref());
        check(record.clone());
        let (_, tables) = exported(record);
        for (name, rows) in &tables {
            *filled.entry(name).or_default() += rows.len();
        }
        let rows = &tables["measures"];
        assert_eq!(rows.len(), measures.len());
        for (row, one) in rows.iter().zip(&measures) {
            assert_eq!(row["subject"], one.subject.as_str());
            assert_eq!(row["name"], one.name.as_str());
            assert_eq!(row["unit"], one.unit.as_str());
            assert_eq!(row["value"], one.value);
            assert_eq!(row["runs"], one.runs);
        }
    }
    let empty: Vec<&&str> = filled.iter().filter(|(_, rows)| **rows == 0).map(|(n, _)| n).collect();
    assert_eq!(empty, Vec::<&&str>::new());
}
