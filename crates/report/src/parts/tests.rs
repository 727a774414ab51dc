use iotomy_record::{Limit, Limits, Machine};

use super::*;

fn limits() -> Record {
    let limit = |name: &str, unit: &str, value| Limit {
        name: name.into(),
        unit: unit.into(),
        value: Some(value),
        spread: Some(1.0),
        method: "=HYPERLINK(\"x\")".into(),
        skipped: None,
        measured: None,
        volume: None,
    };
    Record::Limits(Box::new(Limits {
        schema: Limits::SCHEMA.into(),
        started: "2025-03-01T10:20:30Z".into(),
        machine: Machine::default(),
        limits: vec![limit("syscall", "ns", 81.25), limit("pipe", "bytes/s", 2e9)],
    }))
}

fn source(record: &Record) -> Source<'_> {
    Source { name: "limits.json", record, bytes: b"" }
}

#[test]
fn a_part_is_called_by_its_name_and_that_of_its_record() {
    let record = limits();
    let one = [source(&record)];
    let names: Vec<String> = parts(&one).into_iter().map(|part| part.name).collect();
    assert_eq!(
        names,
        ["machine-floors-chart", "machine-floors", "machine-ceilings-chart", "machine-ceilings"]
    );
    assert!(svg(&one, Some("machine-ceilings-chart")).unwrap().contains("2 GB/s"));
    let two = [source(&record), source(&record)];
    assert_eq!(parts(&two)[5].name, "2/machine-floors");
    assert_eq!(csv(&two, Some("2/machine-floors")), csv(&one, None));
}

#[test]
fn csv_has_the_records_units_and_no_formula() {
    let record = limits();
    assert_eq!(
        csv(&[source(&record)], Some("machine-ceilings")).unwrap(),
        "limit,value_bytes_per_s,spread,method\npipe,2000000000,1,\"'=HYPERLINK(\"\"x\"\")\"\n"
    );
}

#[test]
fn a_part_that_is_not_there_is_answered_with_those_that_are() {
    let record = limits();
    let error = csv(&[source(&record)], Some("no\nsuch")).unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no part \"no\\nsuch\" of that kind; there are machine-floors, machine-ceilings"
    );
    let empty = Record::Limits(Box::new(Limits {
        limits: Vec::new(),
        ..match limits() {
            Record::Limits(limits) => *limits,
            _ => unreachable!("they are limits"),
        }
    }));
    assert_eq!(svg(&[source(&empty)], None), Err(PartError::None(PartKind::Chart)));
}
