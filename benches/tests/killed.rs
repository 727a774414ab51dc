//! A killed bench leaves no process, and no directory that the next bench does not remove.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Checks repeatedly until the condition holds. There is no other way to wait for a state in
/// `/proc`.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    // Not a limit on speed: without a limit, a defect would hang the suite without naming a test.
    for _ in 0..45_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("waited in vain until {what}");
}

/// Returns the processes whose parent is `pid`.
fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// Returns whether a process has ended, reaped or not.
fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with(['Z', 'X']))
}

/// Returns the command `bench anatomy`, with a script in place of iotomy and a directory for
/// temporary files.
fn bench(folder: &Path, script: &str) -> Command {
    let iotomy = folder.join("iotomy");
    let _ = fs::remove_file(&iotomy);
    fs::write(&iotomy, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&iotomy, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(["anatomy", "--quick", "--iotomy"]).arg(iotomy).current_dir(folder);
    command.env("TMPDIR", folder.join("temporary")).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn a_killed_bench_leaves_no_process_and_no_folder_for_long() {
    let stage = tempfile::tempdir().unwrap();
    let temporary = stage.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut killed = bench(stage.path(), "> started; exec sleep 1000").spawn().unwrap();
    until("the watch is under way", || stage.path().join("started").exists());
    let children = children(killed.id());
    assert_eq!(children.len(), 2, "what is watched, and who watches");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    until("its children have ended", || children.iter().all(|child| has_ended(*child)));

    let next = bench(stage.path(), "exit 1").status().unwrap();
    assert_eq!(next.code(), Some(2));
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}
