//! `iotomy export`: what it writes, and how it refuses.

use crate::support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use support::histories::History;
use support::{IOTOMY, Need, iotomy, root, skip};

/// Records of four kinds.
const RECORDS: [&str; 4] = [
    "docs/examples/dd-and-cat.json",
    "docs/examples/dd-to-disk.json",
    "docs/examples/dd-and-sync.json",
    "results/2026-11-22-epyc-2cpu-linux-6.18/lab/null-sink.json",
];

fn record(name: &str) -> String {
    format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Whether the program that exports is beside the command, as cargo builds it for its own tests.
fn exports() -> bool {
    let is_there = Path::new(IOTOMY).with_file_name("iotomy-export").exists();
    if !is_there {
        skip(Need::Programs, "no iotomy-export: cargo build -p iotomy-export");
    }
    is_there
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs it in a folder of its own.
fn export(folder: &Path, words: &[&str]) -> Output {
    iotomy(&["export", "--parquet", "set"]).args(words).current_dir(folder).output().unwrap()
}

/// The files of a data set, by their paths in it, each with its bytes.
fn files(set: &Path) -> Vec<(String, Vec<u8>)> {
    let (mut files, mut folders) = (Vec::new(), vec![set.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(set).unwrap().to_str().unwrap().to_owned();
            files.push((name, fs::read(path).unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn records_become_files_by_table_date_and_machine() {
    if !exports() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let records = RECORDS.map(record);
    let words: Vec<&str> = records.iter().map(String::as_str).collect();
    let output = export(folder.path(), &words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    let said = stderr(&output);
    assert!(said.starts_with("iotomy: exported 4 records, "), "{said}");
    assert!(said.ends_with(" rows in 18 tables, to set\n"), "{said}");
    let set = folder.path().join("set");
    let written = files(&set);
    for (table, date) in
        [("runs", "2026-11-21"), ("comparisons", "2026-11-21"), ("claims", "2026-11-22")]
    {
        let at = format!("{table}/date={date}/machine=unknown/");
        assert!(written.iter().any(|(name, _)| name.starts_with(&at)), "{at}");
    }
    let runs = written.iter().filter(|(name, _)| name.starts_with("runs/"));
    for (name, bytes) in runs {
        let stem = name.rsplit('/').next().unwrap().strip_suffix(".parquet").unwrap();
        assert!(stem.len() == 64 && stem.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{name}");
    }
    // Once more changes nothing, and leaves nothing else behind.
    assert_eq!(export(folder.path(), &words).status.code(), Some(0));
    assert!(files(&set) == written);
    // The machine that is given, and the record from standard input.
    let mut command = iotomy(&["export", "--parquet", "set", "--machine", "web 1/a", "-"]);
    command.stdin(fs::File::open(&records[0]).unwrap()).current_dir(folder.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let new = files(&set).len() - written.len();
    let of_race: Vec<_> =
        written.iter().filter(|(name, _)| name.starts_with("race_runs")).collect();
    assert!(new > 4 && !of_race.is_empty());
    assert!(files(&set).iter().any(|(name, _)| name.contains("/machine=web%201%2Fa/")));
}

#[test]
fn a_run_of_the_history_is_the_same_record_as_its_file() {
    if !exports() {
        return;
    }
    let history = History::new();
    for example in &RECORDS[..2] {
        let output = history.run(&["history", "import", "--name", "nightly", &record(example)]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let set = history.path("set");
    let export = |words: &[&str]| {
        let output = history.run(&[&["export", "--parquet", "set"], words].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        files(&set)
    };
    let by_number = export(&["1"]);
    assert!(export(&[&record(RECORDS[0])]) == by_number);
    let by_name = export(&["nightly"]);
    let runs = by_name.iter().filter(|(name, _)| name.starts_with("runs/")).count();
    assert_eq!(runs, 2);
    assert!(export(&["last", "2"]) == by_name);
}

#[test]
fn what_cannot_be_exported_is_named_and_the_rest_is() {
    if !exports() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("not.json"), "{\"schema\": \"other/1\"}").unwrap();
    fs::write(folder.path().join("cut.json"), &fs::read(record(RECORDS[0])).unwrap()[..999])
        .unwrap();
    fs::write(folder.path().join("newer.json"), "{\"schema\": \"iotomy.trace/99\"}").unwrap();
    let good = record(RECORDS[3]);
    for (word, reason) in [
        ("none.json", "No such file or directory"),
        ("no\x1bsuch", "there is no such file"),
        ("99", "there is no such file, and no such run"),
        ("not.json", "not.json"),
        ("cut.json", "cut.json"),
        ("newer.json", "newer.json"),
        (".", "directory"),
        ("", "without a name"),
    ] {
        let mut command = iotomy(&["export", "--parquet", "set", word, &good]);
        command.env("XDG_DATA_HOME", folder.path()).current_dir(folder.path());
        let output = command.output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{word}: {said}");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 2, "{word}: {said}");
        assert!(lines[0].starts_with("iotomy: ") && lines[0].contains(reason), "{said}");
        assert!(lines[1].starts_with("iotomy: exported 1 of 2 records, "), "{said}");
        assert!(!said.contains('\x1b'), "{said}");
        let runs = files(&folder.path().join("set/runs")).len();
        assert_eq!(runs, 1, "{word}");
    }
}

#[test]
fn a_directory_that_cannot_be_written_ends_the_export() {
    if !exports() || !root() {
        return;
    }
    let folder = support::for_everyone();
    let program = fs::read(Path::new(IOTOMY).with_file_name("iotomy-export")).unwrap();
    support::program(folder.path(), "iotomy-export", &program);
    fs::write(folder.path().join("file"), "old").unwrap();
    fs::create_dir(folder.path().join("roots")).unwrap();
    fs::set_permissions(folder.path().join("roots"), PermissionsExt::from_mode(0o755)).unwrap();
    // Nobody may not be allowed into the tree.
    let good = folder.path().join("record.json");
    fs::copy(record(RECORDS[3]), &good).unwrap();
    fs::set_permissions(&good, PermissionsExt::from_mode(0o644)).unwrap();
    for (set, reason) in
        [("roots", "Permission denied"), ("file", "Not a directory"), ("/proc/set", "No such file")]
    {
        let mut command = support::as_nobody(folder.path());
        command.args(["export", "--parquet", set, "record.json"]).current_dir(folder.path());
        let output = command.output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{set}: {said}");
        assert!(said.starts_with("iotomy: cannot export record.json: "), "{said}");
        assert!(said.contains(set) && said.contains(reason) && said.lines().count() == 1, "{said}");
    }
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path().join("roots")).unwrap().count(), 0);
}

#[test]
fn a_command_line_that_is_wrong_is_refused() {
    for words in [
        &["export"][..],
        &["export", "--parquet", "set"],
        &["export", "run.json"],
        &["export", "--parquet", "set", "--machine", "", "run.json"],
        &["export", "--parquet", "set", "-", "-"],
    ] {
        if words.ends_with(&["-", "-"]) && !exports() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut command = iotomy(words);
        let output = command.stdin(Stdio::null()).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).starts_with("iotomy: "), "{}", stderr(&output));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// A word that looks like an option of the program that exports is a record to it, too.
#[test]
fn words_are_handed_on_as_they_are() {
    if !exports() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::copy(record(RECORDS[3]), folder.path().join("--machine")).unwrap();
    let output = export(folder.path(), &["--", "--machine"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn without_the_program_that_exports_it_is_said_how_to_get_it() {
    if Path::new("/usr/local/bin/iotomy-export").exists()
        || Path::new("/usr/bin/iotomy-export").exists()
    {
        return skip(Need::Machine, "iotomy-export is installed here");
    }
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("iotomy");
    fs::copy(IOTOMY, &alone).unwrap();
    let mut command = Command::new(&alone);
    let output = command.args(["export", "--parquet", "set", "run.json"]).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let expected = format!(
        "iotomy: cannot find iotomy-export in {}, /usr/local/bin, /usr/bin; install it with `make install`",
        folder.path().display()
    );
    assert!(said.starts_with(&expected) && said.lines().count() == 1, "{said}");
    // One that cannot be run.
    let broken = folder.path().join("iotomy-export");
    fs::write(&broken, "").unwrap();
    let mut command = Command::new(&alone);
    let output = command.args(["export", "--parquet", "set", "run.json"]).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let expected = format!("iotomy: cannot run {}: ", broken.display());
    assert!(said.starts_with(&expected) && said.contains("Permission denied"), "{said}");
}
