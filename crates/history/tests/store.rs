//! What was kept is there, whole, whatever happens to the file; and what cannot be is said.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use iotomy_history::{Asked, Filter, HistoryError, Identity, Pick, Store, set_aside};
use iotomy_record::store::{Record, RecordRef, parse_record, parse_trace};
use iotomy_record::{LedgerRow, Limit, Limits, Machine, Trace, Trend, arbitrary};
use proptest::prelude::*;
use tempfile::TempDir;

/// A trace of an earlier version.
const PLAIN: &str = include_str!("../../record/src/store/plain.json");

fn limits(day: u32, value: f64) -> Limits {
    Limits {
        schema: Limits::SCHEMA.into(),
        started: format!("2026-01-{:02}T{:02}:00:00Z", day / 24 + 1, day % 24),
        machine: Machine { kernel: "Linux 6.1".into(), cpus: 2, ..Machine::default() },
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

/// A history of `count` runs.
fn filled(path: &Path, count: u32) -> Store {
    let mut store = Store::make(path).unwrap();
    for day in 0..count {
        let name = (day % 2 == 0).then_some("even");
        let record = limits(day, 80.0 + f64::from(day));
        store.keep(RecordRef::Limits(&record), name, "0.1").unwrap();
    }
    store
}

fn asked(subject: &str) -> Asked<'_> {
    Asked { subject, ..Asked::default() }
}

/// The trend of the only machine.
fn trend(store: &Store, subject: &str) -> Result<Trend, HistoryError> {
    let mut trends = store.trends(&asked(subject))?;
    assert_eq!(trends.len(), 1);
    Ok(trends.remove(0))
}

fn all(store: &Store) -> Vec<u64> {
    store.list(&Filter::default()).unwrap().iter().map(|run| run.id).collect()
}

#[test]
fn a_run_is_found_by_number_by_name_and_as_the_last() {
    let (_folder, path) = place();
    assert!(Store::open(&path).unwrap().is_none());
    let mut store = filled(&path, 4);
    assert_eq!(all(&store), [1, 2, 3, 4]);
    let found = |text: &str| store.find(&Pick::from_text(text)).map(|run| run.id);
    assert_eq!((found("2").unwrap(), found("even").unwrap(), found("last").unwrap()), (2, 3, 4));
    assert!(found("odd").unwrap_err().to_string().contains("no run \"odd\" in the history /"));
    assert!(found("9").unwrap_err().to_string().contains("no run 9"));
    let run = store.find(&Pick::Last).unwrap();
    assert_eq!((run.kind.as_str(), run.subject.as_str()), ("limits", "limits"));
    assert_eq!(run.measure.unwrap().value, 83.0);
    assert_eq!(store.record(4).unwrap(), Record::Limits(Box::new(limits(3, 83.0))));
    store.remove(4).unwrap();
    store.rename(2, Some("two")).unwrap();
    store.shrink().unwrap();
    assert_eq!(all(&store), [1, 2, 3]);
    assert_eq!(store.find(&Pick::from_text("two")).unwrap().id, 2);
    // A number is never given again.
    let next = store.keep(RecordRef::Limits(&limits(1, 1.0)), None, "0.1").unwrap();
    assert_eq!(next, 5);
}

#[test]
fn names_that_would_be_taken_for_something_else_are_refused() {
    for name in ["", "12", "last", "-x", &"x".repeat(201)] {
        assert!(Store::check_name(name).is_err(), "{name:?}");
    }
    for name in ["main", "v1.2", "12a", "a b", "\u{1b}[31m"] {
        Store::check_name(name).unwrap();
    }
}

#[test]
fn it_is_the_owners_alone_and_one_file_when_it_is_closed() {
    let (_folder, path) = place();
    drop(filled(&path, 2));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn one_of_a_later_version_is_refused_and_left_as_it_is() {
    let (_folder, path) = place();
    drop(filled(&path, 2));
    let other = rusqlite::Connection::open(&path).unwrap();
    other.pragma_update(None, "user_version", 7).unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    for error in
        [Store::open(&path).map(drop).unwrap_err(), Store::make(&path).map(drop).unwrap_err()]
    {
        let text = error.to_string();
        assert!(text.contains("has version 7, and this iotomy supports 3; use a newer"), "{text}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// A trace of a command of so many bytes, which has all measures.
fn traced(bytes: usize, day: u32) -> Trace {
    let json = include_bytes!("../../record/src/store/plain.json");
    let Record::Trace(mut trace) = parse_record(json).unwrap() else { panic!("no trace") };
    trace.command = vec!["prog".into(), "x".repeat(bytes)];
    trace.started = limits(day, 0.0).started;
    trace.ledger = vec![LedgerRow { thread_ns: 5, user_ns: 5, ..LedgerRow::default() }];
    *trace
}

fn kept(path: &Path, trace: &Trace) {
    let mut store = Store::make(path).unwrap();
    store.keep(RecordRef::Trace(trace), None, "0.1").unwrap();
    store.close().unwrap();
}

#[test]
fn a_long_command_line_is_kept_once_and_found_by_itself() {
    let (_folder, path) = place();
    let long = traced(2 << 20, 1);
    kept(&path, &long);
    kept(&path, &traced(2 << 20, 2));
    kept(&path, &traced((2 << 20) + 1, 3));
    // It packs well; in the index there were 22 of it a run.
    assert!(fs::metadata(&path).unwrap().len() < 2 << 20);
    let store = Store::open(&path).unwrap().unwrap();
    assert_eq!(store.record(1).unwrap(), Record::Trace(Box::new(long.clone())));
    let trend = trend(&store, &long.command.join(" ")).unwrap();
    assert_eq!(trend.points.iter().map(|point| point.id).collect::<Vec<_>>(), [1, 2]);
    assert!(store.list(&Filter::default()).unwrap().iter().all(|run| run.subject.len() <= 1024));
    assert_eq!(store.newest_after(&Pick::Number(1), None).unwrap().id, 2);
}

#[test]
fn the_long_texts_of_an_older_history_are_shortened_when_it_is_written_to() {
    let (_folder, path) = place();
    let (short, long) = (traced(10, 1), traced(100_000, 2));
    kept(&path, &short);
    kept(&path, &long);
    // As version 1 had it.
    let text = long.command.join(" ");
    let older = rusqlite::Connection::open(&path).unwrap();
    older.execute("UPDATE runs SET subject = ? WHERE id = 2", [&text]).unwrap();
    older.execute("UPDATE measures SET subject = ? WHERE run = 2", [&text]).unwrap();
    older.execute_batch("DROP INDEX runs_by_start; ALTER TABLE runs DROP COLUMN machine").unwrap();
    older.pragma_update(None, "user_version", 1).unwrap();
    drop(older);
    let before = fs::metadata(&path).unwrap().len();
    // It can be read as it is.
    assert_eq!(Store::open(&path).unwrap().unwrap().find(&Pick::Last).unwrap().subject, text);
    kept(&path, &traced(100_000, 3));
    let store = Store::open(&path).unwrap().unwrap();
    let found = trend(&store, &text).unwrap();
    assert_eq!(found.points.iter().map(|point| point.id).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(trend(&store, &short.command.join(" ")).unwrap().points.len(), 1);
    assert!(fs::metadata(&path).unwrap().len() < before / 4, "of {before}");
    assert_eq!(store.record(2).unwrap(), Record::Trace(Box::new(long)));
}

#[test]
fn a_database_of_something_else_is_left_alone() {
    let (_folder, path) = place();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE bookmarks (url TEXT)").unwrap();
    drop(other);
    let refused = Store::make(&path).map(drop).unwrap_err();
    assert!(matches!(refused, HistoryError::Foreign { .. }), "{refused}");
}

#[test]
fn a_damaged_record_is_named_and_the_others_are_read() {
    let (_folder, path) = place();
    drop(filled(&path, 3));
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute("UPDATE runs SET record = x'789c0102' WHERE id = 2", []).unwrap();
    drop(other);
    let store = Store::open(&path).unwrap().unwrap();
    let refused = store.record(2).unwrap_err().to_string();
    assert!(refused.starts_with("the record of run 2 in the history /"), "{refused}");
    assert!(store.record(3).is_ok());
}

#[test]
fn what_is_no_database_is_damaged_and_set_aside() {
    let (_folder, path) = place();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for number in 1..3 {
        fs::write(&path, vec![b'x'; 5_000]).unwrap();
        let refused = Store::open(&path).map(drop).unwrap_err().to_string();
        assert!(refused.contains("damaged: file is not a database; `sqlite3 /"), "{refused}");
        let aside = set_aside(&path, Identity::read(&path)).unwrap().unwrap();
        assert_eq!(aside, path.with_file_name(format!("history.db.damaged-{number}")));
        assert_eq!(fs::read(&aside).unwrap(), vec![b'x'; 5_000]);
        assert!(Store::open(&path).unwrap().is_none());
    }
}

/// A history of which two runs are only in what was written ahead, and a page of whose file is damaged: what is
/// in its two files.
fn written_ahead(path: &Path) -> [(PathBuf, Vec<u8>); 2] {
    drop(filled(path, 40));
    let mut store = Store::make(path).unwrap();
    for day in 40..42 {
        store.keep(RecordRef::Limits(&limits(day, 80.0)), None, "0.1").unwrap();
    }
    let ahead = path.with_file_name("history.db-wal");
    let (mut bytes, written) = (fs::read(path).unwrap(), fs::read(&ahead).unwrap());
    drop(store);
    // Pages of records: no page written ahead stands for them.
    bytes[8 * 4096..9 * 4096].fill(0xa5);
    let files = [(path.to_owned(), bytes), (ahead, written)];
    files.iter().for_each(|(file, bytes)| fs::write(file, bytes).unwrap());
    files
}

/// That the history set aside has these files, byte by byte.
fn has_as_they_were(aside: &Path, files: &[(PathBuf, Vec<u8>)]) {
    let ahead = aside.with_file_name("history.db.damaged-1-wal");
    assert_eq!(aside, aside.with_file_name("history.db.damaged-1"));
    for (file, (_, bytes)) in [aside, &ahead].iter().zip(files) {
        assert!(fs::read(file).unwrap() == *bytes, "{} was changed", file.display());
    }
    assert_eq!(fs::read_dir(aside.parent().unwrap()).unwrap().count(), 2);
}

#[test]
fn what_is_set_aside_is_not_changed_nor_what_was_written_ahead() {
    let (_folder, path) = place();
    let files = written_ahead(&path);
    let aside = set_aside(&path, Identity::read(&path)).unwrap().unwrap();
    has_as_they_were(&aside, &files);
}

#[test]
fn a_history_goes_with_what_another_that_was_killed_set_aside_of_it() {
    let (_folder, path) = place();
    let files = written_ahead(&path);
    fs::rename(&files[1].0, path.with_file_name("history.db.damaged-1-wal")).unwrap();
    let aside = set_aside(&path, Identity::read(&path)).unwrap().unwrap();
    has_as_they_were(&aside, &files);
}

#[test]
fn a_history_that_another_has_begun_meanwhile_is_not_set_aside() {
    let (_folder, path) = place();
    drop(filled(&path, 1));
    let damaged = Identity::read(&path);
    fs::rename(&path, path.with_file_name("history.db.damaged-1")).unwrap();
    assert_eq!(set_aside(&path, damaged).unwrap(), None);
    drop(filled(&path, 2));
    assert_eq!(set_aside(&path, damaged).unwrap(), None);
    assert_eq!(all(&Store::open(&path).unwrap().unwrap()), [1, 2]);
}

#[test]
fn a_trend_has_the_runs_in_order_and_the_change_among_them() {
    let (_folder, path) = place();
    let mut store = Store::make(&path).unwrap();
    for day in (0..24).rev() {
        let level = if day < 14 { 80.0 } else { 88.0 };
        let record = limits(day, level + f64::from(day * 7 % 5) * 0.3);
        store.keep(RecordRef::Limits(&record), None, "0.1").unwrap();
    }
    let mut elsewhere = limits(99, 300.0);
    elsewhere.machine.cpus = 64;
    elsewhere.started = "2025-01-01T00:00:00Z".into();
    store.keep(RecordRef::Limits(&elsewhere), None, "0.1").unwrap();
    let both = store.trends(&asked("limits")).unwrap();
    assert_eq!(both.iter().map(|one| one.points.len()).collect::<Vec<_>>(), [24, 1]);
    let machine = store.machine("2 x").unwrap();
    let here = Asked { machine: Some(&machine), ..asked("limits") };
    let trend = store.trends(&here).unwrap().remove(0);
    assert_eq!((trend.measure.as_str(), trend.unit.as_str()), ("syscall", "ns"));
    assert_eq!((trend.points.len(), trend.elsewhere), (24, 1));
    assert_eq!(trend.changes, [14]);
    assert!(trend.points.windows(2).all(|pair| pair[0].started < pair[1].started));
    let last = Asked { most: Some(5), ..here };
    assert_eq!(store.trends(&last).unwrap()[0].points.len(), 5);
    let unknown = store.trends(&asked("make")).unwrap_err().to_string();
    assert_eq!(unknown, "no run of \"make\" is kept; known: \"limits\"");
    let wall = Asked { measure: Some("wall"), ..asked("limits") };
    let unknown = store.trends(&wall).unwrap_err().to_string();
    assert!(unknown.contains("known: syscall"), "{unknown}");
}

#[test]
fn a_trend_of_the_run_queue_delay_has_the_runs_that_were_kept_as_waiting() {
    let (_folder, path) = place();
    let mut store = Store::make(&path).unwrap();
    for day in 1..=4_u64 {
        let row = format!(
            "[{{\"pid\": 1, \"exec\": \"dd\", \"thread_ns\": 9, \"user_ns\": 0, \"calls_on_cpu_ns\": 0, \
             \"blocked_ns\": 0, \"runnable_ns\": {}, \"residual_ns\": 0}}]",
            day * 1000
        );
        let text = PLAIN.replace("2025-03-01", &format!("2026-01-0{day}"));
        let text = text.replace("\"ledger\": []", &format!("\"ledger\": {row}"));
        let mut record = parse_trace(text.as_bytes()).unwrap();
        record.command = vec!["make".into()];
        store.keep(RecordRef::Trace(&record), None, "0.1").unwrap();
    }
    store.close().unwrap();
    let older = "UPDATE measures SET name = 'waiting' WHERE name = 'run queue delay' AND run < 3";
    let renamed = rusqlite::Connection::open(&path).unwrap().execute(older, []).unwrap();
    assert_eq!(renamed, 2);
    let store = Store::open(&path).unwrap().unwrap();
    for name in ["run queue delay", "runq", "waiting"] {
        let named = Asked { measure: Some(name), ..asked("make") };
        let trend = store.trends(&named).unwrap().remove(0);
        assert_eq!(trend.measure, "run queue delay");
        let values: Vec<f64> = trend.points.iter().map(|point| point.value).collect();
        assert_eq!(values, [1000.0, 2000.0, 3000.0, 4000.0]);
        assert_eq!(trend.others, ["wall", "user", "in calls", "blocked", "calls", "errors"]);
    }
}

#[test]
fn several_write_at_once_and_all_is_kept() {
    let (_folder, path) = place();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for day in 0..5 {
                    let mut store = Store::make(path).unwrap();
                    let record = limits(day, f64::from(thread + 1));
                    store.keep(RecordRef::Limits(&record), None, "0.1").unwrap();
                }
            });
        }
    });
    let store = Store::open(&path).unwrap().unwrap();
    assert_eq!(all(&store), (1..=20).collect::<Vec<u64>>());
    let other = rusqlite::Connection::open(&path).unwrap();
    let check = other.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    assert_eq!(check.unwrap(), "ok");
}

#[test]
fn one_that_another_is_making_is_not_taken_for_foreign() {
    for _ in 0..300 {
        let (_folder, path) = place();
        std::thread::scope(|scope| {
            let maker = scope.spawn(|| Store::make(&path).map(drop));
            while !maker.is_finished() {
                Store::open(&path).unwrap();
            }
            maker.join().unwrap().unwrap();
        });
    }
}

/// A record of any kind.
fn record() -> impl Strategy<Value = Record> {
    prop_oneof![
        arbitrary::trace().prop_map(|trace| Record::Trace(Box::new(trace))).boxed(),
        arbitrary::anatomy().prop_map(|anatomy| Record::Anatomy(Box::new(anatomy))).boxed(),
        arbitrary::race().prop_map(|race| Record::Race(Box::new(race))).boxed(),
        arbitrary::copy().prop_map(|copy| Record::Copy(Box::new(copy))).boxed(),
        arbitrary::sweep().prop_map(|sweep| Record::Sweep(Box::new(sweep))).boxed(),
        arbitrary::limits().prop_map(Box::new).prop_map(Record::Limits).boxed(),
        arbitrary::d().prop_map(|run| Record::D(Box::new(run))).boxed(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_record_comes_back_byte_by_byte(record in record()) {
        let (_folder, path) = place();
        let mut store = Store::make(&path).unwrap();
        let id = store.keep(record.as_ref(), None, "0.1").unwrap();
        let json = store.json(id).unwrap();
        prop_assert_eq!(&json, &record.as_ref().json().unwrap());
        prop_assert_eq!(parse_record(&json).unwrap(), record);
    }
}
