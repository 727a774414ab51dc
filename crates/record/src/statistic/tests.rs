use iotomy_test_requirements::guide;
use proptest::prelude::*;

use super::*;
use crate::{
    Call, Connection, Exchange, FileUse, Group, LedgerRow, PathUse, Process, RingOperation,
    TcpFigures, Thread, arbitrary,
};

/// Rows of the guide.
fn rows<R: Statistics>(table: &str) -> Vec<Vec<String>> {
    let row = |one: &Statistic<R>| {
        let column = one.shape.column.map_or_else(String::new, |column| {
            [column.head, column.under.unwrap_or("")].join(" ").trim().to_owned()
        });
        [&format!("`{table}`"), &format!("`{}`", one.name), &column, one.meaning.trim()]
            .map(|cell| cell.to_owned())
            .to_vec()
    };
    R::statistics().map(row).collect()
}

#[test]
fn the_guide_to_records_has_every_statistic() {
    let rows = [
        rows::<Process>("processes"),
        rows::<Call>("calls"),
        rows::<FileUse>("files"),
        rows::<RingOperation>("ring_operations"),
        rows::<Connection>("connections"),
        rows::<TcpFigures>("connections.tcp"),
        rows::<Exchange>("requests"),
        rows::<PathUse>("paths"),
        rows::<Group>("by"),
        rows::<LedgerRow>("ledger"),
        rows::<Thread>("threads"),
    ];
    let table = guide::table(&["table", "statistic", "column", "meaning"], rows.concat());
    guide::check("docs/record.md", "statistics", &table);
}

/// Fails unless every field but these is a statistic, and columns have heads and keys of their own.
fn is_declared<R: Statistics + Default + serde::Serialize>(others: &[&str]) {
    let fields = serde_json::to_value(R::default()).unwrap();
    let names = fields.as_object().unwrap().keys();
    for name in names.filter(|name| !others.contains(&name.as_str())) {
        assert!(R::statistic(name).is_some(), "{name}");
    }
    for part in [|column: Column| column.key, |column: Column| column.head] {
        let mut parts: Vec<_> = R::shown().map(|(_, column)| part(column)).collect();
        parts.sort_unstable();
        assert!(parts.windows(2).all(|two| two[0] != two[1]), "{parts:?}");
    }
}

#[test]
fn every_field_that_is_no_key_is_a_statistic() {
    is_declared::<Call>(&["pid", "exec", "syscall"]);
    is_declared::<FileUse>(&["pid", "exec", "kind", "path"]);
    is_declared::<PathUse>(&["pid", "exec", "syscall"]);
    is_declared::<Connection>(&["pid", "exec", "protocol"]);
    is_declared::<TcpFigures>(&[]);
    is_declared::<Exchange>(&["pid", "exec", "protocol"]);
    is_declared::<RingOperation>(&["pid", "exec", "op"]);
    is_declared::<Thread>(&["pid", "exec", "tid", "name", "longest_ns"]);
    is_declared::<LedgerRow>(&["pid", "exec"]);
    is_declared::<Process>(&["pid", "ppid", "exec", "argv"]);
    is_declared::<Group>(&["key"]);
}

/// Fails unless what came since a row is what was added to it.
fn adds_up<R: Statistics + Default + Clone>(a: &R, b: &R) {
    let mut sum = a.clone();
    add(&mut sum, b);
    let row = since(&sum, &mut a.clone());
    for one in R::statistics() {
        let of = |row: &R| (one.field.number)(row);
        let expected = match one.shape.joins {
            // Of each kind, the sum of which may be beyond the largest number.
            Joins::Sum if one.name.starts_with("error") => continue,
            Joins::Sum => of(&sum).map(|sum| sum - of(a).unwrap_or(0)),
            Joins::Gauge => of(&sum),
            Joins::Most | Joins::Least => continue,
        };
        assert_eq!(of(&row), expected, "{}", one.name);
    }
}

proptest! {
    // Each case has dozens of rows.
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn what_came_since_is_what_was_added(a in arbitrary::trace(), b in arbitrary::trace()) {
        a.calls.iter().zip(&b.calls).for_each(|(a, b)| adds_up(a, b));
        a.files.iter().zip(&b.files).for_each(|(a, b)| adds_up(a, b));
        a.paths.iter().zip(&b.paths).for_each(|(a, b)| adds_up(a, b));
        a.connections.iter().zip(&b.connections).for_each(|(a, b)| adds_up(a, b));
        for (a, b) in a.connections.iter().zip(&b.connections) {
            a.tcp.iter().zip(&b.tcp).for_each(|(a, b)| adds_up(a, b));
        }
        a.requests.iter().zip(&b.requests).for_each(|(a, b)| adds_up(a, b));
        a.ring_operations.iter().zip(&b.ring_operations).for_each(|(a, b)| adds_up(a, b));
        a.threads.iter().zip(&b.threads).for_each(|(a, b)| adds_up(a, b));
        a.ledger.iter().zip(&b.ledger).for_each(|(a, b)| adds_up(a, b));
    }
}
