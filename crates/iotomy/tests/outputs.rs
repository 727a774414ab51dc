//! Outputs that cannot be written are refused before anything is run, by every verb alike.

use crate::support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use support::{iotomy, root};

/// Verbs, each with the options that name an output and with what it is to do: something that would
/// leave a trace of itself in the current folder or on standard output.
const VERBS: &[(&str, &[&str], &[&str])] = &[
    ("trace", &["--json", "--output"], &["touch", "made"]),
    ("anatomy", &["--json", "--output", "--folded", "--svg"], &["touch", "made"]),
    ("race", &["--json", "--export-csv", "--export-markdown", "--flame"], &["touch made"]),
    ("limits", &["--json", "--output"], &["--only", "syscall"]),
    ("lab run", &["--json"], &["null-sink", "--quick"]),
    ("lab merge", &["--output"], &["a.json"]),
    ("copy", &["--json"], &["/etc/hostname", "made"]),
    ("diff", &["--json", "--output"], &["a.json", "b.json"]),
    ("doctor", &["--json"], &[]),
    ("d", &["--json", "--csv"], &["-n", "BEGIN { exit(0); }", "-c", "touch made"]),
];

/// Runs a verb with an output, in a folder of its own; nothing may come of it.
fn refused(mut command: Command, folder: &Path, verb: &str, option: &str, to: &str) -> String {
    let (_, _, subject) = VERBS.iter().find(|(name, ..)| *name == verb).unwrap();
    let before = names(folder);
    let words = verb.split(' ').chain([option, to]).chain(subject.iter().copied());
    let output = command.args(words).current_dir(folder).output().unwrap();
    let error = text(&output);
    assert_eq!(output.status.code(), Some(2), "{verb} {option} {to}: {error}");
    assert!(output.stdout.is_empty() && error.lines().count() == 1, "{verb} {option}: {output:?}");
    assert!(error.starts_with("iotomy: cannot "), "{verb} {option}: {error}");
    assert_eq!(names(folder), before, "{verb} {option} {to}: {error}");
    error
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_cannot_be_written_is_told_before_anything_is_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "x").unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    for (verb, options, _) in VERBS {
        for option in *options {
            for (to, said) in [
                (
                    "nowhere/out",
                    "No such file or directory (os error 2); create its directory \
                    first",
                ),
                ("file/out", "a component of its path is a file"),
                ("sub", "is a directory; name a file in it"),
                ("/proc/out", "cannot write /proc/out: No such file"),
            ] {
                // A folder takes the records of experiments.
                if (*verb, to) == ("lab run", "sub") {
                    continue;
                }
                let error = refused(iotomy(&[]), folder.path(), verb, option, to);
                assert!(error.contains(to) && error.contains(said), "{verb} {option}: {error}");
            }
        }
    }
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"x");
}

#[test]
fn what_is_not_the_users_to_write_is_refused_before_anything_is_run() {
    if !root() {
        return;
    }
    let folder = support::for_everyone();
    fs::write(folder.path().join("roots"), "old").unwrap();
    fs::write(folder.path().join("fixed"), "old").unwrap();
    std::os::unix::fs::chown(folder.path().join("fixed"), Some(65534), None).unwrap();
    fs::set_permissions(folder.path().join("fixed"), fs::Permissions::from_mode(0o444)).unwrap();
    nix::unistd::mkfifo(&folder.path().join("fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    for (verb, options, _) in VERBS {
        for option in *options {
            for to in ["roots", "fixed", "fifo", "/etc/out"] {
                let error =
                    refused(support::as_nobody(folder.path()), folder.path(), verb, option, to);
                assert!(error.contains("Permission denied"), "{verb} {option} {to}: {error}");
                assert!(error.contains("; write somewhere else"), "{error}");
            }
        }
    }
    assert_eq!(fs::read(folder.path().join("roots")).unwrap(), b"old");
}

#[test]
fn an_output_that_is_old_is_as_it_was_until_there_is_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("record"), "old").unwrap();
    let look = "cat record; ls -A";
    let mut command = iotomy(&["trace", "-q", "--json", "record", "sh", "-c", look]);
    let output = command.current_dir(folder.path()).output().unwrap();
    assert_eq!(output.stdout, b"oldrecord\n");
    assert!(fs::read_to_string(folder.path().join("record")).unwrap().starts_with('{'));
    assert_eq!(names(folder.path()), ["record"]);
}

#[test]
fn standard_output_by_its_other_names_is_written_through() {
    for name in ["/dev/stdout", "/proc/self/fd/1"] {
        let output = iotomy(&["trace", "-q", "--json", name, "true"]).output().unwrap();
        assert!(output.status.success() && output.stdout.starts_with(b"{"), "{name}: {output:?}");
    }
}

#[test]
fn one_output_that_fails_costs_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["race", "--no-trace", "-r", "2", "--json", "/dev/full", "--export-csv", "r.csv"];
    let mut command = iotomy(&words);
    let output = command.args(["--export-markdown", "r.md", "true"]).current_dir(folder.path());
    let output = output.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output).contains("cannot write to /dev/full: No space"), "{output:?}");
    assert_eq!(names(folder.path()), ["r.csv", "r.md"]);
}

#[test]
fn a_report_that_standard_error_has_no_room_for_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "x").unwrap();
    let status = |words: &[&str]| {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = iotomy(words);
        command.stdout(std::process::Stdio::null()).stderr(full).current_dir(folder.path());
        command.status().unwrap().code()
    };
    for words in [
        &["trace", "--", "true"][..],
        &["trace", "--brief", "--", "true"],
        &["trace", "-i", "1", "--", "true"],
        &["trace", "--observer", "ptrace", "--", "true"],
        &["anatomy", "--", "true"],
        &["race", "--no-trace", "-r", "2", "--json", "-", "true"],
        &["copy", "--explain", "a", "b"],
    ] {
        assert_eq!(status(words), Some(2), "{words:?}");
    }
    assert_eq!(fs::read(folder.path().join("b")).unwrap(), b"x");
    // A command's own status stands, and what is not asked for is not missed.
    assert_eq!(status(&["trace", "--", "sh", "-c", "exit 3"]), Some(3));
    assert_eq!(status(&["trace", "-q", "--", "true"]), Some(0));
    assert_eq!(status(&["copy", "a", "c"]), Some(0));
    // A reader that has seen enough is none.
    let script =
        "\"$0\" trace -- true 2>&1 >/dev/null | head -c 1 >/dev/null; echo ${PIPESTATUS[0]}";
    let mut piped = support::bare("bash", &["-c", script, support::IOTOMY]);
    assert_eq!(piped.output().unwrap().stdout, b"0\n");
}

#[test]
fn in_a_folder_that_was_removed_a_command_runs_and_a_relative_output_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let removed = |words: &[&str]| {
        let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" \"$@\"";
        let mut command = support::bare("sh", &["-c", script, support::IOTOMY]);
        command.args(words).current_dir(folder.path()).output().unwrap()
    };
    let record = folder.path().join("record.json");
    let record = record.to_str().unwrap();
    for words in [
        &["trace", "-q", "--json", record, "echo", "ran"][..],
        &["race", "-q", "--no-trace", "-r", "2", "--output", "inherit", "echo ran"],
        &["copy", "--json", record, "/dev/null", "/dev/null"],
    ] {
        let output = removed(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        assert!(words[0] == "copy" || output.stdout.starts_with(b"ran\n"), "{words:?}: {output:?}");
    }
    let output = removed(&["trace", "--json", "record", "echo", "ran"]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b""[..]), "{output:?}");
    let error = text(&output);
    assert!(error.starts_with("iotomy: cannot write record: No such file"), "{error}");
    assert!(error.contains("the current directory has been removed"), "{error}");
}
