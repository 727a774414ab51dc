//! `bench-all` beside programs that stand for the benches.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use iotomy_benches::registry::BENCHES;
use tempfile::TempDir;

/// A folder with `bench-all` and a script for every bench, which notes its name and arguments and leaves
/// with status 0.
struct Stage(TempDir);

impl Stage {
    fn new() -> Self {
        let stage = Self(tempfile::tempdir().unwrap());
        fs::copy(env!("CARGO_BIN_EXE_bench-all"), stage.path("bench-all")).unwrap();
        for bench in &BENCHES {
            stage.script(&bench.program(), 0);
        }
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn script(&self, name: &str, status: i32) {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\necho \"{name} $*\" >> ran\nexit {status}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.path("bench-all"));
        command.args(arguments).current_dir(self.0.path()).output().unwrap()
    }

    /// What each program was called with.
    fn ran(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("ran")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn how_long_all_takes_is_said_before_any_of_it() {
    let ended = Stage::new().run(&[]);
    let text = said(&ended.stdout);
    let minutes: u32 = BENCHES.iter().map(|bench| bench.minutes).sum();
    let first = text.lines().next().unwrap();
    assert!(first.contains(&format!("some {minutes} minutes in all (trace ")), "{text}");
}

#[test]
fn every_bench_runs_once_as_part_of_one_run() {
    let stage = Stage::new();
    stage.run(&["--quick", "--seed", "7", "--results", "there"]);
    let ran = stage.ran();
    assert_eq!(ran.len(), BENCHES.len(), "{ran:?}");
    let day =
        |line: &str| line.split_once("--day ").unwrap().1.split(' ').next().unwrap().to_owned();
    for (line, bench) in ran.iter().zip(&BENCHES) {
        assert!(line.starts_with(&format!("{} ", bench.program())), "{line}");
        assert!(line.ends_with("--quick --seed 7 --results there"), "{line}");
        assert_eq!(day(line), day(&ran[0]));
    }
}

#[test]
fn one_that_fails_is_named_and_the_others_run() {
    let stage = Stage::new();
    stage.script("bench-copy", 2);
    fs::remove_file(stage.path("bench-wait")).unwrap();
    let ended = stage.run(&["--quick"]);
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(stage.ran().len(), BENCHES.len() - 1);
    let errors = said(&ended.stderr);
    assert!(errors.contains("failed: copy (exit status: 2), wait (cannot start: "), "{errors}");
}

#[test]
fn a_missed_target_is_told_from_a_failure() {
    let stage = Stage::new();
    stage.script("bench-files", 1);
    let ended = stage.run(&["--quick", "--check"]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(said(&ended.stderr).contains("a target was missed in files"), "{ended:?}");
    assert_eq!(stage.run(&["--quick"]).status.code(), Some(2), "unasked, no bench leaves with 1");
}

#[test]
fn a_signal_ends_all_of_it() {
    let stage = Stage::new();
    stage.script("bench-race", 130);
    let ended = stage.run(&["--quick"]);
    assert_eq!(ended.status.code(), Some(130));
    assert_eq!(stage.ran().len(), 2);
}

#[test]
fn only_those_that_are_named_run() {
    let stage = Stage::new();
    stage.run(&["--quick", "--only", "wait", "--only", "trace"]);
    let ran = stage.ran();
    assert_eq!(ran.len(), 2);
    assert!(ran[0].starts_with("bench-trace ") && ran[1].starts_with("bench-wait "), "{ran:?}");
}
