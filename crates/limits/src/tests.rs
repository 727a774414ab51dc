//! The contract of every limit, and comparisons of the limits of the machine that runs the tests.

use std::collections::BTreeMap;
use std::collections::HashSet;

use iotomy_host::folder::Folder;
use iotomy_record::{Limit, Limits, Volume};
use iotomy_test_requirements::{Need, skip};

use super::*;

const STARTED: &str = "2025-03-01T10:20:30Z";

#[test]
fn every_limit_is_declared_whole_and_once() {
    let mut names = HashSet::new();
    let mut methods = HashSet::new();
    for limit in declarations() {
        assert!(names.insert(limit.name), "{} stands twice", limit.name);
        assert!(methods.insert(limit.method), "{}: the method of another", limit.name);
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        assert!(limit.name.chars().all(is_name) && limit.name.len() <= 24, "{}", limit.name);
        for text in [limit.summary, limit.method] {
            assert!(!text.is_empty() && !text.ends_with('.') && text.len() <= 120, "{text}");
        }
        let page = |page: &&str| page.ends_with(')') && page.contains('(');
        assert!(!limit.man.is_empty() && limit.man.iter().all(page), "{}", limit.name);
        assert!(["ns", "bytes/s"].contains(&limit.unit.name()));
        assert!(std::ptr::eq(declaration(limit.name).unwrap(), limit));
    }
    assert!(GROUPS.iter().all(|group| !group.name.is_empty() && !group.limits.is_empty()));
    assert!(declaration("no-such-limit").is_none());
}

fn run(plan: &LimitsPlan, kept: Option<&Limits>) -> Vec<Limit> {
    plan.run(kept, STARTED, &mut |_| {})
}

fn record_of(limits: Vec<Limit>) -> Limits {
    let (schema, started) = (Limits::SCHEMA.to_owned(), STARTED.to_owned());
    Limits { schema, started, machine: iotomy_record::Machine::default(), limits }
}

#[test]
fn every_limit_of_the_machine_is_a_figure_or_a_reason_and_the_figures_agree() {
    let mut seen = Vec::new();
    let found = LimitsPlan::default().run(None, STARTED, &mut |progress| seen.push(progress));
    assert_eq!(seen.len(), found.len());
    assert!(seen.iter().enumerate().all(|(at, one)| (one.done, one.all) == (at, found.len())));
    let mut values = BTreeMap::new();
    for limit in &found {
        println!("{:<24} {:?} {:?} {:?}", limit.name, limit.value, limit.spread, limit.skipped);
        match limit.value {
            Some(value) => _ = values.insert(limit.name.clone(), value),
            None => skip(Need::Machine, &format!("{}: {:?}", limit.name, limit.skipped)),
        }
    }
    // A record of them is accepted by every reader.
    let record = record_of(found);
    let bytes = iotomy_record::store::RecordRef::Limits(&record).json().unwrap();
    assert_eq!(iotomy_record::store::parse_limits(&bytes).unwrap(), record);
    let below = |low: &str, high: &str| {
        if let (Some(low_value), Some(high_value)) = (values.get(low), values.get(high)) {
            assert!(low_value < high_value, "{low} {low_value}, {high} {high_value}");
        }
    };
    // Limits a hundred times apart must be in order; limits near each other vary from moment to
    // moment.
    below("syscall", "fork");
    below("syscall", "exec");
    below("syscall", "wake-pipe");
}

#[test]
fn what_is_kept_is_not_measured_again_and_what_was_skipped_is() {
    let plan = LimitsPlan {
        only: ["syscall", "vdso-clock"].map(|name| declaration(name).unwrap()).into(),
        folders: Vec::new(),
    };
    let mut first = run(&plan, None);
    assert_eq!(first.len(), 2);
    let skipped = Some("no".to_owned());
    first[1] = Limit { value: None, spread: None, skipped, ..first[1].clone() };
    let kept = record_of(first.clone());
    let mut measured = Vec::new();
    let again = plan.run(Some(&kept), "2026-01-01T00:00:00Z", &mut |p| measured.push(p.name));
    assert_eq!((&again[0], measured), (&first[0], vec!["vdso-clock"]));
}

/// Creates a directory on a tmpfs, if the machine has one in the usual place.
fn in_memory() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir_in("/dev/shm");
    folder.map_err(|e| skip(Need::Machine, &format!("no directory in /dev/shm: {e}"))).ok()
}

#[test]
fn limits_of_one_file_system_are_not_taken_for_anothers() {
    let Some(here) = in_memory() else { return };
    let folder = Folder::open(here.path()).unwrap();
    let only = vec![declaration("buffered-write").unwrap()];
    let plan = LimitsPlan { only, folders: vec![folder] };
    let first = run(&plan, None);
    let volume = first[0].volume.clone().unwrap();
    assert_eq!(volume.path, here.path().to_str().unwrap());
    let mut measured = 0;
    let mut again = |kept: &Limits| {
        measured = 0;
        plan.run(Some(kept), STARTED, &mut |_| measured += 1);
        measured
    };
    assert_eq!(again(&record_of(first.clone())), 0);
    for other in [None, Some(Volume { id: "ext4 1 2 3".into(), ..volume })] {
        assert_eq!(again(&record_of(vec![Limit { volume: other, ..first[0].clone() }])), 1);
    }
}

#[test]
fn a_file_system_that_caches_all_is_skipped_for_what_goes_past_the_cache() {
    let Some(here) = in_memory() else { return };
    let only = storage::LIMITS.iter().collect();
    let plan = LimitsPlan { only, folders: vec![Folder::open(here.path()).unwrap()] };
    let found = run(&plan, None);
    assert_eq!(found.len(), storage::LIMITS.len());
    for limit in found {
        let direct = ["direct-read", "sequential-read", "sequential-write"];
        let reason = limit.skipped.as_deref().unwrap_or("measured");
        println!("{}: {reason}", limit.name);
        assert_eq!(limit.value.is_none(), direct.contains(&limit.name.as_str()), "{reason}");
    }
}

#[test]
fn a_folder_of_no_use_is_an_error_with_what_to_try() {
    let said = |path: &str| Folder::open(path.as_ref()).unwrap_err().to_string();
    assert!(said("/etc/passwd").contains("not a directory"));
    assert!(said("/nowhere").contains("No such file") && said("/nowhere").contains("--path"));
    assert!(said("/proc").contains("open O_") && said("/proc").contains("you can write to"));
}
