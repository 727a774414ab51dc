//! Runs of many machines in one history: none is taken for another's.

use std::path::{Path, PathBuf};

use iotomy_history::{
    Asked, Candidate, Earlier, Filter, HistoryError, KeptMachine, PackedRun, Pick, Store,
};
use iotomy_record::store::{Record, RecordRef};
use iotomy_record::{Limit, Limits, Machine};
use tempfile::TempDir;

fn machine(name: &str, cpus: u32) -> Machine {
    let (cpu, kernel) = ("EPYC".to_owned(), "Linux 6.1".to_owned());
    Machine { name: name.to_owned(), cpus, cpu, kernel, ..Machine::default() }
}

/// Limits of a machine on a day.
fn limits(name: &str, day: u32, value: f64) -> Limits {
    Limits {
        schema: Limits::SCHEMA.into(),
        started: format!("2026-01-{day:02}T00:00:00Z"),
        machine: machine(name, 4),
        limits: vec![Limit {
            name: "syscall".into(),
            unit: "ns".into(),
            value: Some(value),
            spread: Some(0.5),
            method: "getppid".into(),
            skipped: None,
            measured: None,
            volume: None,
        }],
    }
}

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/iotomy/history.db");
    (folder, path)
}

/// Three days of each of these machines, each at its own level, all of one name.
fn filled(path: &Path, machines: &[&str]) -> Store {
    let mut store = Store::make(path).unwrap();
    for day in 1..=3 {
        for (at, name) in machines.iter().enumerate() {
            let record = limits(name, day, 80.0 * (at + 1) as f64);
            store.keep(RecordRef::Limits(&record), Some("main"), "0.1").unwrap();
        }
    }
    store
}

/// The runs that a run on this machine is judged by.
fn baseline(store: &Store, machine: Machine) -> Result<Vec<u64>, HistoryError> {
    let candidate = Candidate {
        kind: "limits",
        subjects: vec!["limits".into()],
        machine,
        id: None,
        is_unjudged: false,
    };
    let earlier = Earlier::load(store, &Pick::from_text("main"), &candidate)?;
    let now = limits("", 9, 80.0);
    Ok(iotomy_history::against(&earlier, RecordRef::Limits(&now), "0.1")?.runs)
}

fn titles(store: &Store) -> Vec<String> {
    store.machines().unwrap().iter().map(KeptMachine::title).collect()
}

#[test]
fn a_run_is_judged_by_those_of_its_machine_alone() {
    let (_folder, path) = place();
    let store = filled(&path, &["node1", "node2"]);
    assert_eq!(baseline(&store, machine("node1", 4)).unwrap(), [1, 3, 5]);
    assert_eq!(baseline(&store, machine("node2", 4)).unwrap(), [2, 4, 6]);
    let refused = baseline(&store, machine("node3", 4)).unwrap_err().to_string();
    let said = "from another machine (node2, 4 x EPYC · ; this is node3, 4 x EPYC · )";
    assert!(refused.contains(said), "{refused}");
    assert!(refused.ends_with("another name, set IOTOMY_MACHINE=node2"), "{refused}");
    assert!(baseline(&store, machine("node1", 8)).is_err(), "the same name and other hardware");
    // Another kernel is a condition of a run, and no other machine.
    let other = Machine { kernel: "Linux 6.18".into(), ..machine("node1", 4) };
    assert_eq!(baseline(&store, other).unwrap(), [1, 3, 5]);
}

#[test]
fn runs_without_a_name_are_of_the_only_machine_of_their_hardware() {
    let (_folder, path) = place();
    let mut store = filled(&path, &[""]);
    // The records of an earlier iotomy, and a machine that has a name now.
    assert_eq!(baseline(&store, machine("node1", 4)).unwrap(), [1, 2, 3]);
    store.keep(RecordRef::Limits(&limits("node1", 4, 80.0)), Some("main"), "0.1").unwrap();
    assert_eq!(baseline(&store, machine("node1", 4)).unwrap(), [1, 2, 3, 4]);
    assert_eq!(baseline(&store, machine("", 4)).unwrap(), [1, 2, 3, 4]);
    assert_eq!(titles(&store), ["node1"]);
    // Where there are two of that hardware, nobody knows which they are of.
    store.keep(RecordRef::Limits(&limits("node2", 4, 80.0)), Some("main"), "0.1").unwrap();
    assert_eq!(baseline(&store, machine("node1", 4)).unwrap(), [4]);
    assert_eq!(baseline(&store, machine("", 4)).unwrap(), [1, 2, 3]);
    assert_eq!(titles(&store), ["4 x EPYC · ", "node1", "node2"]);
}

#[test]
fn a_trend_keeps_machines_apart_in_the_order_of_their_names() {
    let (_folder, path) = place();
    let store = filled(&path, &["node10", "node9"]);
    let asked = Asked { subject: "limits", ..Asked::default() };
    let trends = store.trends(&asked).unwrap();
    let values = |at: usize| trends[at].points.iter().map(|one| one.value).collect::<Vec<f64>>();
    assert_eq!([&trends[0].machine, &trends[1].machine], ["node9", "node10"]);
    assert_eq!((values(0), values(1)), (vec![160.0; 3], vec![80.0; 3]));
    assert_eq!((trends[0].elsewhere, trends[1].elsewhere), (0, 0));
    let machine = store.machine("node9").unwrap();
    let one = store.trends(&Asked { machine: Some(&machine), ..asked }).unwrap();
    assert_eq!((one.len(), one[0].points.len(), one[0].elsewhere), (1, 3, 3));
}

#[test]
fn a_machine_is_found_by_its_name_or_a_part_that_only_it_has() {
    let (_folder, path) = place();
    let mut store = filled(&path, &["node1", "node10", "web"]);
    let title = |store: &Store, asked: &str| store.machine(asked).map(|one| one.long_title());
    // A whole name goes before a part of others.
    assert_eq!(title(&store, "node1").unwrap(), "node1, 4 x EPYC · ");
    assert_eq!(title(&store, "we").unwrap(), "web, 4 x EPYC · ");
    let several = title(&store, "node").unwrap_err().to_string();
    let said = "several machines are called \"node\": \"node1\", \"node10\"; give more";
    assert!(several.starts_with(said), "{several}");
    let none = title(&store, "rack").unwrap_err().to_string();
    assert!(
        none.starts_with("no run of the machine \"rack\" is kept; known: \"node1\", "),
        "{none}"
    );
    // One name, two processors.
    let mut other = limits("web", 4, 1.0);
    other.machine.cpus = 8;
    store.keep(RecordRef::Limits(&other), None, "0.1").unwrap();
    assert!(title(&store, "web").unwrap_err().to_string().contains("\"web, 8 x EPYC · \""));
    assert_eq!(title(&store, "web, 8").unwrap(), "web, 8 x EPYC · ");
}

#[test]
fn lists_and_the_newest_run_can_be_those_of_a_machine() {
    let (_folder, path) = place();
    let mut store = filled(&path, &["node1", "node2"]);
    for name in ["node1", "node2"] {
        store.keep(RecordRef::Limits(&limits(name, 8, 99.0)), None, "0.1").unwrap();
    }
    let node1 = store.machine("node1").unwrap();
    let filter = Filter { machine: Some(node1.clone()), ..Filter::default() };
    let ids: Vec<u64> = store.list(&filter).unwrap().iter().map(|run| run.id).collect();
    assert_eq!(ids, [1, 3, 5, 7]);
    let main = Pick::from_text("main");
    assert_eq!(store.newest_after(&main, Some(&node1)).unwrap().id, 7);
    assert_eq!(store.newest_after(&main, None).unwrap().id, 8);
}

#[test]
fn a_name_with_a_quote_is_a_name() {
    let (_folder, path) = place();
    let store = filled(&path, &["o'neil", "' OR 1 = 1 --"]);
    let machine = store.machine("' OR 1 = 1 --").unwrap();
    let filter = Filter { machine: Some(machine), ..Filter::default() };
    let ids: Vec<u64> = store.list(&filter).unwrap().iter().map(|run| run.id).collect();
    assert_eq!(ids, [2, 4, 6]);
}

#[test]
fn a_record_that_is_imported_again_is_kept_once() {
    let (_folder, path) = place();
    let mut store = Store::make(&path).unwrap();
    let packed = |record: Limits| {
        let json = RecordRef::Limits(&record).json().unwrap();
        PackedRun::from_text(Record::Limits(Box::new(record)), json).unwrap()
    };
    let mut import = |record: Limits| {
        let kept = store.import(&packed(record), None, "0.1").unwrap();
        (kept.id, kept.is_again)
    };
    assert_eq!(import(limits("node1", 1, 80.0)), (1, false));
    assert_eq!(import(limits("node1", 1, 80.0)), (1, true));
    // Of the same moment and length, and not the same.
    assert_eq!(import(limits("node1", 1, 81.0)), (2, false));
    assert_eq!(import(limits("node2", 1, 80.0)), (3, false));
    assert_eq!(import(limits("node2", 1, 80.0)), (3, true));
    // What a run keeps is always kept.
    let again = store.keep(RecordRef::Limits(&limits("node1", 1, 80.0)), None, "0.1").unwrap();
    assert_eq!(again, 4);
}

#[test]
fn records_that_name_no_machine_are_imported_as_of_one() {
    let (_folder, path) = place();
    let mut store = filled(&path, &["node1", "node2"]);
    let record = limits("", 7, 80.0);
    let json = RecordRef::Limits(&record).json().unwrap();
    let packed = PackedRun::from_text(Record::Limits(Box::new(record)), json).unwrap();
    let id = store.import(&packed.on_machine("node1"), Some("main"), "0.1").unwrap().id;
    assert_eq!(baseline(&store, machine("node1", 4)).unwrap(), [1, 3, 5, id]);
    let kept = store.find(&Pick::Number(id)).unwrap();
    assert_eq!(kept.machine, "node1");
    let record = store.record(id).unwrap();
    assert_eq!(Candidate::kept(&kept, record.as_ref()).machine.name, "node1");
}

#[test]
fn a_history_of_before_machines_had_names_is_read_as_it_is_and_gets_them_when_it_is_written_to() {
    let (_folder, path) = place();
    drop(filled(&path, &["node1"]));
    let older = rusqlite::Connection::open(&path).unwrap();
    older.execute_batch("DROP INDEX runs_by_start; ALTER TABLE runs DROP COLUMN machine").unwrap();
    older.pragma_update(None, "user_version", 2).unwrap();
    drop(older);
    let store = Store::open(&path).unwrap().unwrap();
    assert_eq!(titles(&store), ["4 x EPYC · "]);
    assert_eq!(store.find(&Pick::Last).unwrap().machine, "");
    assert_eq!(baseline(&store, machine("node1", 4)).unwrap(), [1, 2, 3]);
    drop(store);
    let mut store = Store::make(&path).unwrap();
    store.keep(RecordRef::Limits(&limits("node1", 9, 80.0)), Some("main"), "0.1").unwrap();
    assert_eq!(baseline(&store, machine("node1", 4)).unwrap(), [1, 2, 3, 4]);
    assert_eq!(titles(&store), ["node1"]);
}
