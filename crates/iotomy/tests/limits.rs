//! `iotomy limits` as a user runs it.

use crate::support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use iotomy_test_requirements::guide;
use support::{Need, skip, state, until};
use tempfile::TempDir;

const IOTOMY: &str = env!("CARGO_BIN_EXE_iotomy");

/// Two that take a moment.
const QUICK: &str = "syscall,vdso-clock";

/// iotomy with a cache of its own.
struct User {
    caches: TempDir,
}

impl User {
    fn new() -> Self {
        Self { caches: tempfile::tempdir().unwrap() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(IOTOMY);
        command.arg("limits").args(arguments).env("XDG_CACHE_HOME", self.caches.path());
        command
    }

    fn limits(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn record(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.limits(&[arguments, &["--json", "-"]].concat());
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The one file that is kept.
    fn kept(&self) -> std::path::PathBuf {
        let files: Vec<_> = fs::read_dir(self.caches.path().join("iotomy")).unwrap().collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].as_ref().unwrap().path()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

/// What iotomy says besides that the machine is busy, which it may be.
fn complaints(output: &Output) -> String {
    text(&output.stderr).lines().filter(|line| !line.contains("busy")).collect()
}

#[test]
fn a_whole_run_has_a_figure_or_a_reason_for_everything_and_comes_to_its_end() {
    let user = User::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limits.json");
    let output = user.limits(&["--json", file.to_str().unwrap()]);
    assert!(output.status.success() && complaints(&output).is_empty(), "{output:?}");
    let table = text(&output.stdout);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert!(!table.contains('\x1b'), "no colour into a pipe");
    let record: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(record["schema"], "iotomy.limits/1");
    assert!(record["started"].as_str().unwrap().ends_with('Z'));
    assert!(record["machine"]["kernel"].as_str().unwrap().starts_with("Linux"));
    let limits = record["limits"].as_array().unwrap();
    assert!(limits.len() >= 27, "{}", limits.len());
    for limit in limits {
        assert!(table.contains(&format!("  {}", limit["name"].as_str().unwrap())), "{limit}");
        assert!(!limit["method"].as_str().unwrap().is_empty());
        let is_skipped = limit["skipped"].is_string();
        assert_eq!(limit["value"].is_number(), !is_skipped, "{limit}");
        assert_eq!(limit["spread"].is_number(), !is_skipped, "{limit}");
        assert!(is_skipped || limit["value"].as_f64().unwrap() > 0.0, "{limit}");
    }
    // Shown from its file as it was printed.
    let shown = Command::new(IOTOMY).args(["show", file.to_str().unwrap()]).output().unwrap();
    assert_eq!(text(&shown.stdout), table);
    // Kept: the next run has the same figures.
    assert_eq!(user.record(&["--only", "fork"])["limits"][0]["value"], value(&record, "fork"));
}

fn value(record: &serde_json::Value, name: &str) -> serde_json::Value {
    let limits = record["limits"].as_array().unwrap();
    limits.iter().find(|limit| limit["name"] == name).unwrap()["value"].clone()
}

#[test]
fn what_was_measured_is_kept_until_it_is_to_be_measured_anew() {
    let user = User::new();
    let first = user.record(&["--only", QUICK]);
    let again = user.record(&["--only", QUICK]);
    for at in 0..2 {
        assert_eq!(first["limits"][at], again["limits"][at]);
        assert_eq!(again["limits"][at]["measured"], first["started"]);
    }
    let table = text(&user.limits(&["--only", QUICK]).stdout);
    assert!(
        table.contains("  2 kept from 20") && table.contains("; --refresh measures again"),
        "{table}"
    );
    let anew = user.record(&["--only", "syscall", "--refresh"]);
    assert_eq!(anew["limits"].as_array().unwrap().len(), 1);
    assert_eq!(anew["limits"][0]["measured"], anew["started"]);
    // The other one is kept still.
    let both = user.record(&["--only", QUICK]);
    assert_eq!(both["limits"][0]["measured"], anew["started"]);
    assert_eq!(both["limits"][1]["measured"], first["started"]);
}

#[test]
fn a_broken_or_foreign_cache_is_measured_anew_in_silence() {
    let user = User::new();
    let first = user.record(&["--only", "syscall"]);
    let file = user.kept();
    let whole = fs::read_to_string(&file).unwrap();
    let cut = &whole[..whole.len() / 2];
    let foreign = whole.replacen("\"cpus\": ", "\"cpus\": 1", 1);
    let newer = whole.replacen("limits/1", "limits/9", 1);
    let absurd = whole.replacen("\"value\": ", "\"value\": -", 1);
    let otherwise = whole.replacen("\"method\": \"", "\"method\": \"not ", 1);
    for broken in ["", cut, &foreign, &newer, &absurd, &otherwise, "\u{0}\u{1}", "[[[["] {
        fs::write(&file, broken).unwrap();
        let output = user.limits(&["--only", "syscall", "--json", "-"]);
        assert!(output.status.success() && complaints(&output).is_empty(), "{broken}: {output:?}");
        let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(record["limits"][0]["measured"], record["started"], "{broken}");
        assert_ne!(record["started"], first["started"]);
        assert_eq!(user.kept(), file);
    }
}

#[test]
fn a_cache_that_cannot_be_written_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let mut none = Command::new(IOTOMY);
    none.env_remove("XDG_CACHE_HOME").env_remove("HOME");
    let mut in_a_file = Command::new(IOTOMY);
    in_a_file.env("XDG_CACHE_HOME", &file);
    let mut in_proc = Command::new(IOTOMY);
    in_proc.env("XDG_CACHE_HOME", "/proc/nowhere");
    for mut command in [none, in_a_file, in_proc] {
        let output = command.args(["limits", "--only", "syscall"]).output().unwrap();
        assert!(output.status.success() && text(&output.stdout).contains("syscall"), "{output:?}");
        let warning = complaints(&output);
        assert!(warning.starts_with("iotomy: the limits were not kept"), "{warning}");
        assert!(!warning.contains("panicked"), "{warning}");
    }
}

#[test]
fn a_file_system_is_measured_by_a_folder_and_nothing_stays_in_it() {
    let user = User::new();
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().to_str().unwrap();
    let words = ["--path", path, "--only", "buffered-write,fsync,direct-read"];
    let record = user.record(&words);
    let limits = record["limits"].as_array().unwrap();
    assert_eq!(limits.len(), 3);
    for limit in limits {
        assert_eq!(limit["volume"]["path"], path, "{limit}");
        assert!(limit["value"].is_number() || limit["skipped"].is_string(), "{limit}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    // Kept by its file system, whatever folder of it is named; and not taken for another's.
    let other = tempfile::tempdir_in(folder.path()).unwrap();
    let only = ["--only", "buffered-write", "--path"];
    let again = user.record(&[&only[..], &[other.path().to_str().unwrap()]].concat());
    assert_eq!(again["limits"][0]["value"], value(&record, "buffered-write"));
    assert_eq!(again["limits"][0]["volume"]["path"], other.path().to_str().unwrap());
    match tempfile::tempdir_in("/dev/shm") {
        Ok(memory) => {
            let elsewhere = user.record(&[&only[..], &[memory.path().to_str().unwrap()]].concat());
            assert_eq!(elsewhere["limits"][0]["measured"], elsewhere["started"]);
        }
        Err(e) => skip(Need::Machine, &format!("no directory in /dev/shm: {e}")),
    }
    // Two folders of one file system are said to be one.
    let twice = user.limits(&["--path", path, "--path", path, "--only", "buffered-write"]);
    assert!(twice.status.success() && complaints(&twice).contains("measured once"), "{twice:?}");
}

#[test]
fn a_run_that_is_killed_leaves_nothing_in_the_folder() {
    let user = User::new();
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().to_str().unwrap();
    let only = "direct-read,fsync,sequential-read,sequential-write";
    let mut child = user.command(&["--path", path, "--only", only]).spawn().unwrap();
    // Until it has a file there: open descriptors show it, as the folder does not.
    let is_at_work = || {
        let open = fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten();
        let links = open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        links.into_iter().any(|link| link.starts_with(folder.path()))
    };
    // Where the file system takes no files without a name, it has none and ends.
    until("it is at work or has ended", || {
        (is_at_work() || matches!(state(child.id()), None | Some('Z'))).then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_name_that_is_none_is_refused_with_those_that_are_like_it() {
    let user = User::new();
    for (name, said) in [
        ("memory", "memory-read"),
        ("sys-call", "syscall"),
        ("xyzzy", "--list"),
        ("", "--list"),
        ("syscall,nope", "\"nope\""),
        ("fsync", "--path DIR"),
    ] {
        let output = user.limits(&["--only", name]);
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{name}: {error}");
        assert!(error.starts_with("iotomy: ") && error.contains(said), "{name}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_folder_of_no_use_is_refused_before_anything_is_measured() {
    let user = User::new();
    let mut cases =
        vec![("/nowhere", "No such file"), ("/etc/passwd", "not a directory"), ("/proc", "")];
    let closed = tempfile::tempdir().unwrap();
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let is_root = fs::read_to_string("/proc/self/status").unwrap().contains("Uid:\t0\t");
    if !is_root {
        cases.push((closed.path().to_str().unwrap(), "ermission denied"));
    }
    for (path, said) in cases {
        let output = user.limits(&["--path", path]);
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{path}: {error}");
        assert!(error.starts_with("iotomy: cannot measure the file system of /"), "{error}");
        assert!(error.contains(said) && error.contains("--path"), "{path}: {error}");
        assert!(!user.caches.path().join("iotomy").exists());
    }
}

#[test]
fn a_record_that_finds_no_room_fails_after_the_table() {
    let user = User::new();
    let output = user.limits(&["--only", "syscall", "--json", "/dev/full"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("syscall"));
    let error = complaints(&output);
    assert!(error.starts_with("iotomy: cannot write to /dev/full"), "{error}");
}

#[test]
fn the_table_goes_where_it_is_sent_and_nowhere_when_quiet() {
    let user = User::new();
    let folder = tempfile::tempdir().unwrap();
    let (table, json) = (folder.path().join("table"), folder.path().join("json"));
    let (table, json) = (table.to_str().unwrap(), json.to_str().unwrap());
    let output =
        user.limits(&["--only", "syscall", "-o", table, "--json", json, "--color", "always"]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(fs::read_to_string(table).unwrap().contains("\x1b["));
    let shown = Command::new(IOTOMY).args(["show", "--color", "always", json]).output().unwrap();
    assert_eq!(text(&shown.stdout), fs::read_to_string(table).unwrap());
    let quiet = user.limits(&["--only", "syscall", "-q"]);
    assert!(quiet.status.success() && quiet.stdout.is_empty(), "{quiet:?}");
    let both = user.limits(&["--only", "syscall", "-o", table, "--json", table]);
    assert_eq!(both.status.code(), Some(2));
    assert!(text(&both.stderr).contains("name two files"));
    let plain = user.command(&["--only", "syscall", "--ascii"]).output().unwrap();
    assert!(text(&plain.stdout).is_ascii());
}

#[test]
fn the_list_has_what_the_help_has_and_measures_nothing() {
    let user = User::new();
    let list = text(&user.limits(&["--list"]).stdout);
    let help = text(&user.limits(&["--help"]).stdout);
    for limit in iotomy_limits::declarations() {
        for page in [&list, &help] {
            assert!(page.contains(&format!(" {} ", limit.name)), "{}: {page}", limit.name);
        }
    }
    assert!(list.lines().all(|line| line.chars().count() <= 100), "{list}");
    assert!(!user.caches.path().join("iotomy").exists());
}

#[test]
fn a_limit_on_the_size_of_files_is_a_reason_and_not_the_end() {
    let user = User::new();
    // 1 MiB: what is kept fits.
    let script = format!("ulimit -f 1024; exec {IOTOMY} limits --only page-cache-copy,mmap-munmap");
    let mut command = Command::new("bash");
    let output = command.args(["-c", &script]).env("XDG_CACHE_HOME", user.caches.path()).output();
    let Ok(output) = output else { return skip(Need::Programs, "no bash") };
    let table = text(&output.stdout);
    assert!(output.status.success() && table.contains("ulimit -f"), "{output:?}");
    assert!(table.contains("2 skipped"), "{table}");
}

#[test]
fn the_guide_has_every_limit_with_its_unit_and_pages() {
    let rows = iotomy_limits::declarations().map(|limit| {
        vec![
            format!("`{}`", limit.name),
            limit.unit.name().to_owned(),
            limit.summary.to_owned(),
            limit.method.to_owned(),
            limit.man.join(", "),
        ]
    });
    let header = ["name", "unit", "what", "method", "man pages"];
    guide::check("docs/limits.md", "limits", &guide::table(&header, rows));
}
