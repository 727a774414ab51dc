//! Checks that the published figures of the benches match their raw records, and that
//! `bench summary` ensures this.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use iotomy_benches::registry::BENCHES;
use iotomy_benches::stats::ratio;
use iotomy_benches::summary::documents::{guide, pages};
use iotomy_benches::summary::kept::{newest, runs};
use iotomy_record::{AxisValue, Sweep};
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A copy of the benches' results and the documents, in a directory that the tests can change.
struct Project(TempDir);

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for part in ["docs", "results"] {
            copy(&root().join(part), &folder.path().join(part));
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn summary(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
        command.args(["summary", "--root", "."]).args(arguments).current_dir(self.0.path());
        command.output().unwrap()
    }

    /// Returns the directory of the newest run of a bench.
    fn run(&self, bench: &str) -> PathBuf {
        let runs = runs(&self.path("results")).unwrap();
        let mut newest = newest(&runs).unwrap().into_iter();
        newest.find(|(_, kept)| kept.bench.name == bench).unwrap().0.path.clone()
    }
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        copy(&from.join(&name), &to.join(&name));
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn every_published_figure_is_that_of_the_raw_records() {
    let mut documents = pages(&root().join("results")).unwrap();
    documents.extend(guide(&root()).unwrap());
    assert!(documents.iter().any(|document| document.path.ends_with("README.md")));
    for document in documents {
        assert!(
            document.is_current(),
            "{}, {}\ntry: make bench-summary",
            document.path.display(),
            document.difference()
        );
    }
}

#[test]
fn a_figure_changed_by_hand_is_found_and_written_anew() {
    let project = Project::new();
    assert!(project.summary(&["--check"]).status.success());
    for name in ["docs/benchmarks.md", "docs/waiters.md"] {
        let path = project.path(name);
        let right = fs::read_to_string(&path).unwrap();
        let (before, table) = right.split_once("<!-- bench: ").unwrap();
        let at = table.find("0.").unwrap();
        let wrong = format!("{before}<!-- bench: {}7{}", &table[..at], &table[at + 1..]);
        fs::write(&path, &wrong).unwrap();
        let checked = project.summary(&["--check"]);
        assert_eq!(checked.status.code(), Some(1));
        assert!(text(&checked).contains(name), "{checked:?}");
        assert!(text(&checked).contains("by the records"), "{checked:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), wrong, "--check writes nothing");
        assert!(project.summary(&[]).status.success());
        assert_eq!(fs::read_to_string(&path).unwrap(), right);
    }
}

#[test]
fn of_several_records_the_benchs_own_counts() {
    let project = Project::new();
    let folder = project.run("wait").join("wait");
    let before = project.rows("wait");
    // Other records beside it, from parts or in further directories, change nothing.
    fs::create_dir(folder.join("loaded")).unwrap();
    let other = project.run("files").join("files/raw.json");
    fs::copy(&other, folder.join("loaded/raw.json")).unwrap();
    fs::copy(&other, folder.join("raw-part.json")).unwrap();
    fs::copy(&other, folder.join("notes.json")).unwrap();
    assert_eq!(project.rows("wait"), before);
    // Without the whole record, the parts count.
    fs::remove_file(folder.join("raw.json")).unwrap();
    let parts = project.rows("wait");
    assert!(parts.iter().all(|row| row.record == "wait/raw-part.json"), "{parts:?}");
}

#[test]
fn what_was_measured_in_two_parts_counts_as_in_the_later() {
    let project = Project::new();
    let folder = project.run("wait").join("wait");
    let whole = fs::read_to_string(folder.join("raw.json")).unwrap();
    let started = serde_json::from_str::<Sweep>(&whole).unwrap().started;
    fs::rename(folder.join("raw.json"), folder.join("raw-a.json")).unwrap();
    let later = whole.replace(&started, "2999-01-01T00:00:00.000Z");
    fs::write(folder.join("raw-b.json"), &later).unwrap();
    let rows = project.rows("wait");
    assert!(!rows.is_empty() && rows.iter().all(|row| row.record == "wait/raw-b.json"), "{rows:?}");
}

#[test]
fn the_newest_run_of_each_bench_is_published() {
    let project = Project::new();
    let (from, later) = (project.run("wait"), project.path("results/2999-01-01-later"));
    fs::create_dir(&later).unwrap();
    copy(&from.join("wait"), &later.join("wait"));
    let raw = fs::read_to_string(later.join("wait/raw.json")).unwrap();
    let started = serde_json::from_str::<Sweep>(&raw).unwrap().started;
    let moved = raw.replace(&started, "2999-01-01T00:00:00.000Z");
    fs::write(later.join("wait/raw.json"), moved).unwrap();
    assert!(project.summary(&[]).status.success());
    let guide = fs::read_to_string(project.path("docs/benchmarks.md")).unwrap();
    assert!(guide.contains("(../results/2999-01-01-later/wait/README.md)"), "{guide}");
    assert!(!guide.contains("2999-01-01-later/files"), "{guide}");
}

#[test]
fn a_bench_without_a_run_is_not_published() {
    let project = Project::new();
    for run in runs(&project.path("results")).unwrap() {
        if run.path.join("wait").is_dir() {
            fs::remove_dir_all(run.path.join("wait")).unwrap();
        }
    }
    let checked = project.summary(&[]);
    assert_eq!(checked.status.code(), Some(2));
    assert!(
        text(&checked).contains("raw record of the bench wait; run `make bench-wait`"),
        "{checked:?}"
    );
}

#[test]
fn verdicts_rest_on_the_samples_that_are_kept() {
    let mut held = 0;
    for run in runs(&root().join("results")).unwrap() {
        for kept in run.benches.iter().filter(|kept| kept.bench.name == "copy") {
            for raw in &kept.raws {
                held += copy_verdicts(&raw.sweep);
            }
        }
    }
    assert!(held > 5, "{held}");
}

/// Checks the medians of the targets in a record of copying against its samples; returns how many were compared.
fn copy_verdicts(sweep: &Sweep) -> usize {
    let samples = |route: &str, contender: &str| {
        let is = |case: &&iotomy_record::Case, axis: &str, name: &str| {
            case.params.get(axis) == Some(&AxisValue::Name(name.to_owned()))
        };
        let mut cases = sweep.cases.iter().filter(|case| case.metric == "wall");
        let case = cases.find(|case| is(case, "route", route) && is(case, "contender", contender));
        case.map_or_else(Vec::new, |case| case.samples.clone())
    };
    let mut held = 0;
    for claim in &sweep.claims {
        let Some(median) = claim.evidence.get("median").and_then(|median| median.as_f64()) else {
            continue;
        };
        let (_, peer) = claim.text.rsplit_once(" ÷ ").unwrap();
        let peer = peer.rsplit_once(": ").unwrap().0;
        // A failed run is in one list only; then the runs are unpaired.
        let (ours, theirs) = (samples(&claim.id, "iotomy copy"), samples(&claim.id, peer));
        if let Some(found) = ratio(&ours, &theirs) {
            assert!((found.median - median).abs() < 1e-9, "{}: {found:?} {median}", claim.text);
            held += 1;
        }
    }
    held
}

impl Project {
    fn rows(&self, bench: &str) -> Vec<iotomy_benches::summary::Row> {
        let runs = runs(&self.path("results")).unwrap();
        let newest = newest(&runs).unwrap().into_iter();
        newest
            .filter(|(_, kept)| kept.bench.name == bench)
            .flat_map(|(_, kept)| kept.rows())
            .collect()
    }
}

#[test]
fn every_bench_can_be_called_by_its_name() {
    for bench in BENCHES {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
        let ended = command.args([bench.name, "--help"]).output().unwrap();
        assert!(text(&ended).contains("--quick"), "{}: {ended:?}", bench.name);
    }
}

#[test]
fn what_builds_a_benchs_peers_is_there() {
    for script in BENCHES.iter().flat_map(|bench| bench.peers) {
        assert!(root().join("scripts").join(script).is_file(), "{script}");
    }
}
