//! Tests of `bench all` with a program that replaces the benches.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use iotomy_benches::registry::BENCHES;
use tempfile::TempDir;

/// A directory with a script that replaces every bench: it records its arguments and exits with the status that is
/// stored for the bench, or 0.
struct FakeBenches(TempDir);

const SCRIPT: &str =
    "#!/bin/sh\necho \"$*\" >> ran\nif [ -e \"$1\" ]; then exit \"$(cat \"$1\")\"; fi\n";

impl FakeBenches {
    fn new() -> Self {
        let stage = Self(tempfile::tempdir().unwrap());
        // A shell writes the script: if this process had it open for writing while another test
        // forks, it could not be executed.
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf %s \"$0\" > script && chmod 755 script", SCRIPT]);
        assert!(shell.current_dir(stage.0.path()).status().unwrap().success());
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn ends(&self, bench: &str, status: i32) {
        fs::write(self.path(bench), status.to_string()).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
        command.args(["all", "--by", "./script"]).args(arguments);
        command.current_dir(self.0.path()).output().unwrap()
    }

    /// Returns the recorded calls, bench by bench.
    fn ran(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("ran")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn how_long_all_takes_is_said_before_any_of_it() {
    let ended = FakeBenches::new().run(&[]);
    let text = text(&ended.stdout);
    let minutes: u32 = BENCHES.iter().map(|bench| bench.minutes).sum();
    let first = text.lines().next().unwrap();
    assert!(first.contains(&format!("some {minutes} minutes in all (trace ")), "{text}");
}

#[test]
fn every_bench_runs_once_as_part_of_one_run() {
    let stage = FakeBenches::new();
    stage.run(&["--quick", "--seed", "7", "--results", "there"]);
    let ran = stage.ran();
    assert_eq!(ran.len(), BENCHES.len(), "{ran:?}");
    let day =
        |line: &str| line.split_once("--day ").unwrap().1.split(' ').next().unwrap().to_owned();
    for (line, bench) in ran.iter().zip(BENCHES) {
        assert!(line.starts_with(&format!("{} --iotomy ", bench.name)), "{line}");
        assert!(line.ends_with("--quick --seed 7 --results there"), "{line}");
        assert_eq!(day(line), day(&ran[0]));
    }
}

#[test]
fn those_that_fail_are_named_and_the_others_run() {
    let stage = FakeBenches::new();
    stage.ends("copy", 2);
    stage.ends("wait", 3);
    let ended = stage.run(&["--quick"]);
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(stage.ran().len(), BENCHES.len());
    let errors = text(&ended.stderr);
    assert!(errors.contains("failed: copy (exit status: 2), wait (exit status: 3)"), "{errors}");
}

#[test]
fn one_that_cannot_be_started_is_told() {
    let stage = FakeBenches::new();
    fs::remove_file(stage.path("script")).unwrap();
    let ended = stage.run(&["--quick", "--only", "wait"]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(text(&ended.stderr).contains("failed: wait (cannot start: "), "{ended:?}");
}

#[test]
fn a_missed_target_is_told_from_a_failure() {
    let stage = FakeBenches::new();
    stage.ends("files", 1);
    let ended = stage.run(&["--quick", "--check"]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(text(&ended.stderr).contains("a target was missed in files"), "{ended:?}");
    assert_eq!(stage.run(&["--quick"]).status.code(), Some(2), "unasked, no bench leaves with 1");
}

#[test]
fn a_signal_ends_all_of_it() {
    let stage = FakeBenches::new();
    stage.ends("race", 130);
    let ended = stage.run(&["--quick"]);
    assert_eq!(ended.status.code(), Some(130));
    assert!(stage.ran().last().unwrap().starts_with("race "), "{:?}", stage.ran());
}

#[test]
fn only_those_that_are_named_run() {
    let stage = FakeBenches::new();
    stage.run(&["--quick", "--only", "wait", "--only", "trace"]);
    let ran = stage.ran();
    assert_eq!(ran.len(), 2);
    assert!(ran[0].starts_with("trace ") && ran[1].starts_with("wait "), "{ran:?}");
}
