//! Which of the runs that were kept are a baseline.

use iotomy_history::{Candidate, Earlier, HistoryError, Pick, Store, against};
use iotomy_record::store::RecordRef;
use iotomy_record::{Against, Machine, Race, RaceCommand, Run, Spread};
use tempfile::TempDir;

/// A race of these commands that was begun at the minute, each with four runs of about so many ms.
fn race(minute: u32, commands: &[&str], ms: u64) -> Race {
    let command = |command: &&str| RaceCommand {
        command: (*command).to_owned(),
        runs: (0..4).map(|at| Run { wall_ns: ms * 1_000_000 + at, ..Run::default() }).collect(),
        wall: Spread { runs: 4, median_ns: ms as f64 * 1e6, ..Spread::default() },
        ..RaceCommand::default()
    };
    Race {
        schema: Race::SCHEMA.into(),
        started: format!("2026-01-02T{:02}:{:02}:00Z", minute / 60, minute % 60),
        machine: Machine { kernel: "Linux 6.1".into(), cpus: 2, ..Machine::default() },
        commands: commands.iter().map(command).collect(),
        ..Race::default()
    }
}

fn history() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::make(&folder.path().join("history.db")).unwrap();
    (folder, store)
}

fn keep(store: &mut Store, name: &str, race: &Race) {
    store.keep(RecordRef::Race(race), Some(name), "1").unwrap();
}

/// The race, which is not kept, held against the baseline `main`.
fn compared(store: &Store, race: &Race) -> Result<Against, HistoryError> {
    let commands = race.commands.iter().map(|one| one.command.clone());
    let candidate = Candidate {
        kind: "race",
        subjects: commands.collect(),
        machine: race.machine.clone(),
        id: None,
        is_unjudged: false,
    };
    let earlier = Earlier::load(store, &Pick::from_text("main"), &candidate)?;
    against(&earlier, RecordRef::Race(race), "1")
}

#[test]
fn the_newest_fifty_runs_of_a_name_are_its_baseline() {
    let (_folder, mut store) = history();
    for minute in 0..60 {
        keep(&mut store, "main", &race(minute, &["work"], 10));
    }
    let found = compared(&store, &race(99, &["work"], 10)).unwrap();
    assert_eq!(found.runs, (11..=60).collect::<Vec<u64>>());
    assert_eq!(found.changes[0].sessions, 50);
}

#[test]
fn runs_of_the_same_command_are_the_baseline_before_a_newer_one_of_another() {
    let (_folder, mut store) = history();
    for (minute, commands) in
        [&["work"][..], &["other"], &["work", "more"], &["more", "yet more"], &["other"]]
            .into_iter()
            .enumerate()
    {
        keep(&mut store, "main", &race(u32::try_from(minute).unwrap(), commands, 10));
    }
    let found = compared(&store, &race(9, &["work"], 10)).unwrap();
    assert_eq!((found.runs, found.changes[0].subject.as_str()), (vec![1, 3], "work"));
    assert_eq!(found.changes[0].sessions, 2);
    // Where none is of the command, one command is held against the one that was named.
    let found = compared(&store, &race(9, &["work --new"], 10)).unwrap();
    assert_eq!((found.runs, found.changes[0].subject.as_str()), (vec![2, 5], "other"));
}

#[test]
fn a_run_that_was_interrupted_is_no_session() {
    let (_folder, mut store) = history();
    let cut = |minute| Race { interrupted: Some(2), ..race(minute, &["work"], 10) };
    let now = race(9, &["work"], 10);
    keep(&mut store, "main", &cut(0));
    let refused = compared(&store, &now).unwrap_err().to_string();
    assert!(refused.contains("every run of this name was interrupted"), "{refused}");
    for minute in 1..3 {
        keep(&mut store, "main", &race(minute, &["work"], 10));
    }
    keep(&mut store, "main", &cut(4));
    assert_eq!(compared(&store, &now).unwrap().runs, [2, 3]);
}

#[test]
fn without_a_run_the_one_made_or_kept_after_the_baseline_is_meant() {
    let (_folder, mut store) = history();
    for (minute, name) in [(1, "old"), (5, "now"), (6, "main")] {
        keep(&mut store, name, &race(minute, &["work"], 10));
    }
    let after = |store: &Store, name: &str| {
        store.newest_after(&Pick::from_text(name), None).map(|run| run.id)
    };
    assert_eq!(after(&store, "now").unwrap(), 3);
    assert!(matches!(after(&store, "main"), Err(HistoryError::NoRun { .. })));
    // Imported, and older than what was kept before it.
    keep(&mut store, "main", &race(2, &["work"], 10));
    assert_eq!(after(&store, "main").unwrap(), 2);
    assert!(matches!(after(&store, "nobody"), Err(HistoryError::NoBaseline { .. })));
    assert!(matches!(after(&store, "9"), Err(HistoryError::NoRun { .. })));
}
