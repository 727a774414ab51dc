//! The corpus: each program of `programs/` over its scripted firings prints what stands beside it, or
//! has the errors that stand beside it.
//!
//! `NAME.d` is the program, `NAME.firings` the script, if it needs one ([`iotomy_dtrace::script`]), and
//! `NAME.out` what is printed; `NAME.err` instead has the errors of a program that is none. A script's
//! lines `args WORD…` and `target PID` are the command's. `D_WRITE=1` writes what is not there.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use iotomy_dtrace::script::{Run, run};
use iotomy_dtrace::{Kind, Macros, Scope, Variable, compile_program};

const WORDS: [Variable; 4] = [
    Variable { name: "bytes", kind: Kind::Integer, fact: 0, summary: "" },
    Variable { name: "duration", kind: Kind::Integer, fact: 1, summary: "" },
    Variable { name: "call", kind: Kind::String, fact: 2, summary: "" },
    Variable { name: "path", kind: Kind::String, fact: 3, summary: "" },
];

const CONSTANTS: [(&str, i64); 4] =
    [("ENOENT", 2), ("EAGAIN", 11), ("SIGKILL", 9), ("O_CREAT", 0o100)];

fn programs(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            programs(&path, all);
        } else if path.extension().is_some_and(|one| one == "d") {
            all.push(path);
        }
    }
}

fn corpus() -> Vec<PathBuf> {
    let mut all = Vec::new();
    programs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs"), &mut all);
    all.sort();
    all
}

/// The command's part of a script, and the rest.
fn macros(script: &str, name: &str) -> (Macros, String) {
    let mut macros = Macros {
        arguments: vec![name.to_owned()],
        defaults: false,
        target: None,
        own: vec![("pid", 4242), ("ppid", 4241), ("uid", 1000), ("gid", 1000)],
    };
    let mut rest = String::new();
    for line in script.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("args") => macros.arguments.extend(words.map(str::to_owned)),
            Some("target") => macros.target = words.next().map(|word| word.parse().unwrap()),
            _ => {
                rest.push_str(line);
                rest.push('\n');
            }
        }
    }
    (macros, rest)
}

/// The output, and behind it whatever else a run left.
fn shown(run: &Run) -> String {
    let mut text = String::from_utf8_lossy(&run.text).into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str("(no newline)\n");
    }
    for error in &run.errors {
        text.push_str(&format!("--- error {error}\n"));
    }
    for command in &run.commands {
        text.push_str(&format!("--- command {command}\n"));
    }
    for (cause, count) in &run.drops {
        text.push_str(&format!("--- dropped {count}: {cause:?}\n"));
    }
    for (kind, count) in &run.faults {
        text.push_str(&format!("--- faults {count}: {kind}\n"));
    }
    if let Some(status) = run.status {
        text.push_str(&format!("--- exit {status}\n"));
    }
    text
}

/// What a program does: its output, or its errors.
fn outcome(path: &Path) -> Result<String, String> {
    let source = fs::read_to_string(path).unwrap();
    let script = fs::read_to_string(path.with_extension("firings")).unwrap_or_default();
    let name = path.file_name().unwrap().to_str().unwrap();
    let (macros, script) = macros(&script, name);
    let scope = Scope { variables: &WORDS, constants: &CONSTANTS, aggregations: &[] };
    match compile_program(&source, scope, &macros) {
        Ok(form) => {
            let run = run(&form, &source, &script);
            Ok(shown(&run.unwrap_or_else(|error| panic!("{}: {error}", path.display()))))
        }
        Err(problems) => {
            let all: Vec<String> =
                problems.iter().map(|problem| problem.shown_at(name, &source)).collect();
            Err(all.join("\n") + "\n")
        }
    }
}

#[test]
fn programs_print_what_stands_beside_them() {
    let mut wrong = Vec::new();
    let all = corpus();
    for path in &all {
        let (is_error, text) = match outcome(path) {
            Ok(text) => (false, text),
            Err(text) => (true, text),
        };
        let kept = path.with_extension(if is_error { "err" } else { "out" });
        let expected = fs::read_to_string(&kept);
        if expected.is_err() && std::env::var_os("D_WRITE").is_some() {
            fs::write(&kept, &text).unwrap();
        } else if expected.as_deref().ok() != Some(&text) {
            let expected = expected.unwrap_or_else(|_| "nothing\n".to_owned());
            wrong.push(format!("{}\n{text}instead of\n{expected}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

#[test]
fn a_program_has_either_an_output_or_errors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    for path in corpus() {
        let both = [path.with_extension("out"), path.with_extension("err")].map(|one| one.exists());
        assert!(both[0] != both[1], "{}", path.display());
    }
    let names: BTreeSet<PathBuf> = corpus().iter().map(|path| path.with_extension("")).collect();
    for folder in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            assert!(names.contains(&file.with_extension("")), "{} has no program", file.display());
        }
    }
}
