//! Titles of processes: what of them is shown.

use iotomy_record::Trace;
use iotomy_record::store::Record;

use super::{records, rendered};
use crate::looks;

const LONG: &str = "postgres: 15/main: logical replication launcher";

/// Two processes, of which the first has set this title and the second one that is alike.
fn titled(title: &str) -> Trace {
    let mut record = records::attached();
    let mut other = record.processes[0].clone();
    record.processes[0].title = title.into();
    record.processes[0].argv = vec![title.into(), String::new(), String::new()];
    (other.pid, other.title) = (813, title.to_owned() + " 2");
    record.processes.push(other);
    record.calls.push(iotomy_record::Call { pid: 813, ..record.calls[0].clone() });
    record
}

#[test]
fn a_long_title_keeps_its_front() {
    let record = titled(LONG);
    let page = looks::page_alone(&Record::Trace(Box::new(record.clone())));
    for text in [rendered(&record), page] {
        assert!(text.contains("postgres: 15/main: logi… (812)"), "{text}");
        assert!(!text.contains("launcher (812)"), "{text}");
    }
    // It fits.
    let text = rendered(&titled("postgres: wal writer 123"));
    assert!(text.contains("postgres: wal writer 123 (812)"), "{text}");
}

#[test]
fn a_long_name_of_a_program_keeps_both_ends() {
    let mut record = titled("");
    record.processes[0].called = "a-program-with-a-name-of-many-words".into();
    let text = rendered(&record);
    assert!(text.contains("a-progra…e-of-many-words (812)"), "{text}");
}

#[test]
fn empty_arguments_behind_a_title_are_left_away() {
    let mut record = titled("postgres: walwriter");
    let text = rendered(&record);
    assert!(!text.contains("''"), "{text}");
    // Without a title they are arguments.
    record.processes[0].title.clear();
    let text = rendered(&record);
    assert!(text.contains("'' ''"), "{text}");
}
