//! The scripts of docs/d: each runs, prints something over a command that does a little of everything, and is
//! listed with its output.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{bpf, iotomy};

/// Tests that share the scripts: one alone would take too long.
const PARTS: usize = 6;

/// Scripts that print nothing where nobody waits for a CPU or a device, or the time is too short.
const MAY_BE_SILENT: [&str; 5] =
    ["preemptions", "samples", "hot-functions", "io-rates", "io-waits"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/d")
}

fn scripts() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|one| one == "d")).collect();
    all.sort();
    all
}

/// The arguments in its head: `iotomy d -s NAME.d ARG… -c CMD`.
fn arguments(source: &str) -> Vec<String> {
    let usage = source.lines().find(|line| line.starts_with(" * iotomy d -s ")).unwrap();
    let words = usage.split_whitespace().skip_while(|word| !word.ends_with(".d")).skip(1);
    words.take_while(|word| *word != "-c").map(str::to_owned).collect()
}

fn run_part(part: usize) {
    if !bpf() {
        return;
    }
    let work = format!("sh {}", folder().join("work.sh").display());
    for path in scripts().into_iter().skip(part).step_by(PARTS) {
        let (name, source) =
            (path.file_stem().unwrap().to_str().unwrap(), fs::read_to_string(&path).unwrap());
        let mut command = iotomy(&["d", "-s", path.to_str().unwrap()]);
        let run = command.args(arguments(&source)).args(["-c", &work]).output().unwrap();
        let errors = String::from_utf8_lossy(&run.stderr);
        let mut errors = errors.lines().filter(|line| !line.contains(" firings of timers lost"));
        assert!(run.status.success() && errors.next().is_none(), "{name}: {run:?}");
        let is_silent = run.stdout.trim_ascii().is_empty();
        assert!(!is_silent || MAY_BE_SILENT.contains(&name), "{name} prints nothing");
    }
}

#[test]
fn scripts_run_1_of_6() {
    run_part(0);
}

#[test]
fn scripts_run_2_of_6() {
    run_part(1);
}

#[test]
fn scripts_run_3_of_6() {
    run_part(2);
}

#[test]
fn scripts_run_4_of_6() {
    run_part(3);
}

#[test]
fn scripts_run_5_of_6() {
    run_part(4);
}

#[test]
fn scripts_run_6_of_6() {
    run_part(5);
}

#[test]
fn each_script_is_listed_with_its_output() {
    let index = fs::read_to_string(folder().join("README.md")).unwrap();
    let all = scripts();
    assert!(all.len() >= 40, "{}", all.len());
    for path in all {
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(index.contains(&format!("[{name}]({name}.d)")), "{name} is not listed");
        assert!(index.contains(&format!("({name}.txt)")), "{name} has no output listed");
        let output = fs::read_to_string(path.with_extension("txt")).unwrap();
        assert!(output.starts_with("$ iotomy d -s "), "{name}: {output}");
        assert!(output.lines().count() > 1, "{name}: no output");
        // It can be run as a command.
        let source = fs::read_to_string(&path).unwrap();
        assert!(source.starts_with("#!/usr/bin/env -S iotomy d -s\n"), "{name}");
    }
}
