//! Targets that are whole or as they were, and what is said of those that are neither.

use crate::support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};

use support::copying::{Folder, content};
use support::{Need, skip};

const LARGE: usize = 3_000_001;

#[test]
fn a_target_is_put_in_place_whole_with_the_mode_it_had() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    folder.copy(&["--atomic", "a", "new"]);
    assert!(folder.read("new") == content(LARGE));
    let old = folder.write("old", "old");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&old).unwrap();
    fs::hard_link(&old, folder.path("other-name")).unwrap();
    folder.copy(&["--atomic", "--concat", "--fsync", "--verify", "a", "a", "old"]);
    assert!(folder.read("old") == [content(LARGE), content(LARGE)].concat());
    let after = fs::metadata(&old).unwrap();
    assert_eq!(after.mode(), before.mode());
    assert_ne!(after.ino(), before.ino(), "it is another file");
    assert_eq!(folder.read("other-name"), b"old");
    assert_eq!(folder.names(), ["a", "new", "old", "other-name"]);
}

#[test]
fn a_link_stays_a_link_and_what_it_leads_to_is_replaced() {
    let folder = Folder::new();
    folder.write("a", "new");
    fs::create_dir(folder.path("d")).unwrap();
    folder.write("d/old", "old");
    symlink("d/old", folder.path("link")).unwrap();
    folder.copy(&["--atomic", "a", "link"]);
    assert!(fs::symlink_metadata(folder.path("link")).unwrap().is_symlink());
    assert_eq!(folder.read("d/old"), b"new");
    folder.copy(&["--atomic", "a", "d"]);
    assert_eq!(folder.read("d/a"), b"new");
}

#[test]
fn a_program_that_runs_is_replaced_only_in_one_step() {
    let folder = Folder::new();
    folder.write("a", "#!/bin/sh\n");
    let sleep = fs::read("/bin/sleep").unwrap();
    let program = support::program(&folder.path(""), "program", &sleep);
    let mut running = Command::new(&program).arg("600").spawn().unwrap();
    let said = folder.refuse(2, &["a", "program"]);
    let replaced = folder.run(&["--atomic", "a", "program"]);
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(said.contains("Text file busy; it is a running program: use --atomic"), "{said}");
    assert!(replaced.status.success() && folder.read("program") == b"#!/bin/sh\n");
}

#[test]
fn a_kill_in_the_middle_leaves_the_old_whole_and_nothing_behind() {
    for old in [Some("old"), None] {
        let folder = Folder::new();
        if let Some(old) = old {
            folder.write("b", old);
        }
        let mut command = folder.command(&["--atomic", "-", "b"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // More than a pipe holds, so that some of it has been written.
        child.stdin.as_mut().unwrap().write_all(&content(LARGE)).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let expected: &[&str] = if old.is_some() { &["b"] } else { &[] };
        assert_eq!(folder.names(), expected);
        if let Some(old) = old {
            assert_eq!(folder.read("b"), old.as_bytes());
        }
    }
}

/// What a script says that runs in a folder of its own with a small file system mounted at `mnt`,
/// which no other process sees; `None` where such cannot be had.
fn on_a_small_disk(folder: &Folder, script: &str) -> Option<String> {
    fs::create_dir(folder.path("mnt")).unwrap();
    let mount = "mount -t tmpfs -o size=1M tmpfs mnt";
    let unshare = |script: &str| {
        let words = ["--mount", "--propagation", "private", "sh", "-c", script];
        let mut command = support::bare("unshare", &words);
        command.current_dir(folder.path("")).env("IOTOMY", support::IOTOMY);
        command.output()
    };
    if !unshare(mount).is_ok_and(|output| output.status.success()) {
        skip(Need::Namespaces, "no file system can be mounted here");
        return None;
    }
    let output = unshare(&format!("exec 2>&1; {mount} && {script}")).unwrap();
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_full_disk_is_an_error_that_tells_what_is_left() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    let script = "$IOTOMY copy a mnt/x; echo status $?; stat -c %s mnt/x; cmp -n 1048576 a mnt/x";
    let Some(said) = on_a_small_disk(&folder, script) else { return };
    let expected = "iotomy: cannot write mnt/x: No space left on device after 1,048,576 bytes; mnt/x is partial; free some space, or use --atomic to keep the old file whole\nstatus 2\n1048576\n";
    assert_eq!(said, expected);
}

#[test]
fn a_full_disk_leaves_the_old_whole_when_it_is_replaced_in_one_step() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    let script = "echo old > mnt/x; $IOTOMY copy --atomic a mnt/x; echo status $?; cat mnt/x; \
                  $IOTOMY copy --atomic a mnt/new; ls -A mnt; stat -f -c %f mnt";
    let Some(said) = on_a_small_disk(&folder, script) else { return };
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("No space left on device after "), "{said}");
    assert!(lines[0].ends_with("; mnt/x is unchanged; free some space, or write somewhere else"));
    assert_eq!(&lines[1..3], ["status 2", "old"], "{said}");
    assert!(lines[3].contains("; mnt/new was not created; "), "{said}");
    assert_eq!(&lines[4..], ["x", "255"], "all the room is free again: {said}");
}

#[test]
fn a_full_disk_counts_all_sources() {
    let folder = Folder::new();
    folder.write("a", content(700 * 1024));
    let script = "$IOTOMY copy --concat a a mnt/x; $IOTOMY copy --append a mnt/x; echo status $?";
    let Some(said) = on_a_small_disk(&folder, script) else { return };
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("No space left on device after 1,048,576 bytes; "), "{said}");
    assert!(lines[1].contains("No space left on device after 0 bytes; "), "{said}");
    assert_eq!(lines[2], "status 2");
}
