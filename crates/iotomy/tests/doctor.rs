//! `iotomy doctor` as a user runs it.

use iotomy_test_requirements::{Need, skip};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const IOTOMY: &str = env!("CARGO_BIN_EXE_iotomy");

fn doctor(arguments: &[&str]) -> Output {
    Command::new(IOTOMY).arg("doctor").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

#[test]
fn the_list_answers_in_its_first_line_and_fits_the_page() {
    let output = doctor(&[]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let list = text(&output.stdout);
    assert!(
        list.lines().next().unwrap().contains(" capabilities supported on this machine; trace ")
    );
    assert!(list.lines().all(|line| line.chars().count() <= 100), "{list}");
    assert!(!list.contains('\x1b'), "no colour into a pipe");
    assert!(list.contains("  bpf-maps ") && list.contains("  kernel "), "{list}");
}

#[test]
fn the_record_has_every_check_with_a_detail_or_a_reason_and_a_remedy() {
    let output = doctor(&["--json", "-"]);
    assert!(output.status.success());
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["schema"], "iotomy.doctor/1");
    assert!(record["started"].as_str().unwrap().ends_with('Z'));
    assert!(record["machine"]["kernel"].as_str().unwrap().starts_with("Linux"));
    let checks = record["abilities"].as_array().unwrap();
    assert!(checks.len() >= 30);
    for check in checks {
        let ready = check["ready"].as_bool().unwrap();
        assert_eq!(check["detail"].is_string(), ready, "{check}");
        assert_eq!(check["reason"].is_string(), !ready, "{check}");
        assert_eq!(check["remedy"].is_string(), !ready, "{check}");
    }
}

#[test]
fn a_record_replaces_a_file_whole_and_leaves_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("doctor.json");
    fs::write(&file, "old").unwrap();
    let output = doctor(&["--json", file.to_str().unwrap()]);
    assert!(output.status.success() && !output.stdout.is_empty());
    assert!(fs::read_to_string(&file).unwrap().contains("iotomy.doctor/1"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_record_that_finds_no_room_fails_after_the_list() {
    let output = doctor(&["--json", "/dev/full"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("capabilities supported"));
    let error = text(&output.stderr);
    assert!(error.starts_with("iotomy: cannot write to /dev/full: No space"), "{error}");
    assert!(fs::metadata("/dev/full").unwrap().permissions().mode() & 0o170_000 == 0o020_000);
}

#[test]
fn a_path_that_is_no_folder_is_an_error_with_what_to_try() {
    for (path, said) in [("/nowhere", "o such file"), ("/etc/passwd", "not a directory")] {
        let output = doctor(&["--path", path]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        let error = text(&output.stderr);
        assert!(error.starts_with("iotomy: cannot try the file system of /"), "{error}");
        assert!(error.contains(said) && error.contains("--path"), "{error}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_failure_and_a_full_disk_is_one() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = Command::new(IOTOMY).arg("doctor").stdout(writer).status().unwrap();
    assert!(status.success());
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(IOTOMY);
    let output = command.arg("doctor").stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("standard output"));
}

#[test]
fn a_parent_that_ignores_its_children_or_spares_descriptors_does_not_upset_the_trials() {
    for start in ["trap '' CHLD", "ulimit -n 8"] {
        let script = format!("{start}; exec {IOTOMY} doctor");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{start}: {output:?}");
        let list = text(&output.stdout);
        assert!(
            list.contains(" capabilities supported") && !list.contains("child that tried"),
            "{list}"
        );
    }
}

#[test]
fn a_trial_under_a_tracer_says_that_there_is_one() {
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "/dev/null", IOTOMY, "doctor"]);
    match command.output() {
        Ok(output) if text(&output.stdout).contains("PTRACE_SEIZE: EPERM") => {
            assert!(text(&output.stdout).contains("without a tracer"), "{output:?}");
        }
        Ok(output) => assert!(!output.stderr.is_empty(), "strace did not work: {output:?}"),
        Err(error) => skip(Need::Programs, &format!("strace cannot be run: {error}")),
    }
}

#[test]
fn a_user_without_privilege_gets_the_same_list_with_reasons() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let program = folder.path().join("iotomy");
    // Not copied here: a command started by another test would hold the file open for writing for
    // a moment, and then it cannot be executed.
    assert!(Command::new("cp").arg(IOTOMY).arg(&program).status().unwrap().success());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let output = as_nobody(&program).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let list = text(&output.stdout);
    assert!(list.contains("try: "), "{list}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// The program run by a user who owns nothing, when this one may change users.
fn as_nobody(program: &Path) -> Command {
    let root = fs::read_to_string("/proc/self/status").unwrap().contains("Uid:\t0\t");
    let mut command = Command::new(if root { Path::new("setpriv") } else { program });
    if root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
        command.arg(program);
    }
    command.arg("doctor").current_dir("/");
    command
}

#[test]
fn root_of_a_user_namespace_is_told_to_leave_it() {
    let mut inside = Command::new("unshare");
    let output = inside.args(["-r", IOTOMY, "doctor", "--json", "-"]).output();
    let output = match output {
        Ok(output) if output.status.success() => output,
        refused => return skip(Need::Namespaces, &format!("unshare -r: {refused:?}")),
    };
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = record["abilities"].as_array().unwrap();
    let remedy = |check: &serde_json::Value| check["remedy"].as_str().map(str::to_owned);
    let maps = checks.iter().find(|check| check["name"] == "bpf-maps").unwrap();
    let expected = "run outside of this user namespace, as root or with CAP_BPF and CAP_PERFMON";
    assert_eq!(remedy(maps).as_deref(), Some(expected));
    for remedy in checks.iter().filter_map(remedy) {
        assert!(!remedy.contains("this container"), "{remedy}");
    }
}
