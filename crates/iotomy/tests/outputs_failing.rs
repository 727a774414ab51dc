//! Outputs on a file system that fails: every output of every verb tells which operation failed and on
//! what, by its status, too, and leaves what was there before.

use crate::support;

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Output;

use iotomy_fault_fs::{Fault, FaultFs, Operation};
use rustix::io::Errno;
use support::histories::History;
use support::{Need, bpf, iotomy, skip};

/// Verbs, each with the options that name an output and with what it is to do.
const VERBS: &[(&[&str], &[&str], &[&str])] = &[
    (&["trace"], &["--json", "--output"], &["true"]),
    (&["anatomy"], &["--json", "--output", "--folded", "--svg"], &["true"]),
    (
        &["race", "-q", "-r", "2"],
        &["--json", "--export-csv", "--export-markdown", "--flame"],
        &["true", "true"],
    ),
    (&["limits"], &["--json", "--output"], &["--only", "syscall"]),
    (&["lab", "run", "--max-time", "0.2"], &["--json"], &["null-sink", "--quick"]),
    (&["copy"], &["--json"], &["/dev/null", "/dev/null"]),
    (&["doctor"], &["--json"], &[]),
];

/// Verbs that read a record, with the option that names their output.
const READERS: &[(&[&str], &str)] = &[
    (&["report", "record.json"], "--output"),
    (&["report", "--csv", "record.json"], "--output"),
    (&["report", "--markdown", "record.json"], "--output"),
];

const OLD: &[u8] = b"old";

/// What fails, and what a message calls it.
const FAULTS: [(Operation, &str); 3] =
    [(Operation::Write(0), "write"), (Operation::Fsync, "fsync"), (Operation::Close, "close")];

/// A file system on which an operation fails on every file, with one file for every option.
fn failing(operation: Operation, options: &[&str]) -> Option<FaultFs> {
    let files: Vec<(&str, &[u8])> = options.iter().map(|option| (*option, OLD)).collect();
    let mounted = FaultFs::mount(&files, &[Fault::everywhere(operation, Errno::DQUOT)]);
    mounted.map_err(|reason| skip(Need::Fuse, &reason)).ok()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// Runs a verb with all its outputs, `new` or in the place of old files. Each must be told of.
fn each_is_told(words: &[&str], options: &[&str], rest: &[&str], folder: &Path) {
    for &(operation, called) in &FAULTS {
        for is_new in [false, true] {
            let Some(mounted) = failing(operation, options) else { return };
            let mut command = iotomy(words);
            for option in options {
                let name = if is_new { format!("{option}-new") } else { (*option).to_owned() };
                command.arg(option).arg(mounted.path(&name));
            }
            let output = command.args(rest).current_dir(folder).output().unwrap();
            let (error, context) = (stderr(&output), format!("{words:?} {called} {is_new}"));
            assert_eq!(output.status.code(), Some(2), "{context}: {error}");
            for option in options {
                let path = mounted.path(&if is_new {
                    format!("{option}-new")
                } else {
                    (*option).to_owned()
                });
                let told = format!("cannot {called} {}: Disk quota exceeded", path.display());
                assert!(error.contains(&told), "{context}: no {told:?} in {error}");
                assert_eq!(path.exists(), !is_new, "{context}");
                assert!(is_new || fs::read(&path).unwrap() == OLD, "{context}");
            }
            assert_eq!(names(mounted.folder()), options.len(), "{context}: something is left");
            assert!(mounted.times(0) > 0, "{context}");
        }
    }
}

#[test]
fn every_output_of_every_verb_tells_what_failed() {
    let folder = tempfile::tempdir().unwrap();
    for (words, options, rest) in VERBS {
        let samples = words[0] == "anatomy" || words[0] == "race";
        if samples && !bpf() {
            continue;
        }
        each_is_told(words, options, rest, folder.path());
    }
}

#[test]
fn every_output_of_what_reads_a_record_tells_what_failed() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = iotomy(&["trace", "-q", "--json", "record.json", "true"]);
    let made = made.current_dir(folder.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    for (words, option) in READERS {
        each_is_told(words, &[option], &[], folder.path());
    }
    let history = History::new();
    history.limits("limits.json", 1, 80.0);
    history.says(&["history", "import", "limits.json"]);
    for &(operation, called) in &FAULTS {
        let Some(mounted) = failing(operation, &["old"]) else { return };
        let old = mounted.path("old");
        let mut command = history.command(&["history", "export", "last", "-o"]);
        let output = command.arg(&old).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(
            stderr(&output).contains(&format!("cannot {called} {}", old.display())),
            "{output:?}"
        );
        assert_eq!(fs::read(&old).unwrap(), OLD);
    }
}

#[test]
fn generated_files_tell_what_failed() {
    for what in ["man", "completions"] {
        for operation in [Operation::Write(0), Operation::Close] {
            let Some(mounted) = failing(operation, &[]) else { return };
            let output = iotomy(&["generate", what]).arg(mounted.folder()).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{what} {operation:?}: {output:?}");
            assert!(stderr(&output).contains("Disk quota exceeded"), "{output:?}");
            assert_eq!(names(mounted.folder()), 0, "{what} {operation:?}");
        }
    }
}

#[test]
fn standard_output_on_a_disk_that_is_full_at_its_close_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for words in [
        &["lab", "list"][..],
        &["limits", "--list"],
        &["copy", "--list"],
        &["trace", "-q", "--json", "-", "true"],
    ] {
        let Some(mounted) = failing(Operation::Close, &["old"]) else { return };
        let old = OpenOptions::new().write(true).open(mounted.path("old")).unwrap();
        let output = iotomy(words).current_dir(folder.path()).stdout(old).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        let error = stderr(&output);
        assert!(error.contains("cannot close standard output: Disk quota exceeded"), "{error}");
    }
}

#[test]
fn a_run_that_was_to_be_kept_and_is_not_has_a_status_of_its_own() {
    // Where nothing fails it is kept.
    let history = History::new();
    let run = |data: &Path, words: &[&str]| {
        let mut command = history.command(words);
        command.env("XDG_DATA_HOME", data).output().unwrap()
    };
    let words = ["trace", "-q", "--save", "true"];
    let whole = match FaultFs::mount(&[], &[]) {
        Ok(mounted) => run(mounted.folder(), &words),
        Err(reason) => return skip(Need::Fuse, &reason),
    };
    assert!(whole.status.success(), "{whole:?}");
    for (operation, _) in FAULTS {
        let Some(mounted) = failing(operation, &[]) else { return };
        let output = run(mounted.folder(), &words);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{operation:?}: {error}");
        assert!(error.contains("iotomy: the run was not kept: cannot "), "{operation:?}: {error}");
        assert!(mounted.times(0) > 0, "{operation:?}");
        // The command's own status comes first.
        let output = run(mounted.folder(), &["trace", "-q", "--save", "sh", "-c", "exit 3"]);
        assert_eq!(output.status.code(), Some(3), "{operation:?}: {output:?}");
    }
}
