//! Root writes into folders of another user, who changes them meanwhile: nothing elsewhere may change, and
//! no program of that user's be run.

#[path = "../../record/src/store/attack_scene.rs"]
mod scene;
use crate::support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use scene::{AttackScene, SWAPS};
use support::{has, iotomy, program, root};

/// Runs of iotomy meanwhile at least.
const RUNS: u64 = 60;

/// A link `theirs/l` of the other user leads from the folder of that user to root's.
fn scene() -> AttackScene {
    let scene = AttackScene::new();
    fs::write(scene.path("source"), "new").unwrap();
    scene.link("../ours", "theirs/l");
    scene
}

/// Swaps the folder for the link and back while iotomy runs again and again.
fn attack(scene: &AttackScene, words: &[&str]) {
    scene.attack("theirs/d", "theirs/l", RUNS, || {
        // It is written where it was meant to be, or refused.
        let output = iotomy(words).current_dir(scene.path("")).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 2)), "{words:?}: {output:?}");
    });
}

#[test]
fn a_folder_that_is_swapped_for_a_link_leads_no_copy_elsewhere() {
    if !root() {
        return;
    }
    let scene = scene();
    let ours = scene.ours();
    attack(&scene, &["copy", "--atomic", "source", "theirs/d/f"]);
    assert_eq!(scene.ours(), ours);
    // The same by the name of the folder: here the source has that of root's file.
    fs::rename(scene.path("source"), scene.path("f")).unwrap();
    attack(&scene, &["copy", "--atomic", "f", "theirs/d"]);
    assert_eq!(scene.ours(), ours);
}

#[test]
fn a_folder_that_is_swapped_for_a_link_leads_no_output_elsewhere() {
    if !root() {
        return;
    }
    let scene = scene();
    let ours = scene.ours();
    attack(&scene, &["copy", "--json", "theirs/d/f", "source", "copied"]);
    attack(
        &scene,
        &["race", "-q", "--no-trace", "-r", "1", "-w", "0", "--output", "theirs/d/f", "true"],
    );
    assert_eq!(scene.ours(), ours);
}

#[test]
fn a_link_to_a_descriptor_of_another_users_process_leads_no_output_elsewhere() {
    if !root() {
        return;
    }
    let scene = scene();
    let ours = scene.ours();
    let process = scene.their_process();
    scene.link(&format!("/proc/{}/fd/0", process.pid()), "theirs/out");
    scene.link("../ours/f", "theirs/file");
    let made = ["copy", "--json", "record.json", "source", "copied"];
    assert!(iotomy(&made).current_dir(scene.path("")).status().unwrap().success());
    for out in ["theirs/out", "theirs/file"] {
        for words in [
            &["trace", "-q", "--json", out, "true"][..],
            &["trace", "-q", "-o", out, "true"],
            &["trace", "-q", "--user", "nobody", "--json", out, "true"],
            &["copy", "--json", out, "source", "copied"],
            &["copy", "source", out],
            &["copy", "--append", "source", out],
            &["copy", "--atomic", "source", out],
            &["report", "-o", out, "record.json"],
            &["limits", "-q", "--only", "syscall", "--json", out],
            &["doctor", "--json", out],
            &["race", "-q", "--no-trace", "-r", "1", "-w", "0", "--output", out, "true"],
            &["race", "-q", "--no-trace", "-r", "1", "-w", "0", "--json", out, "true"],
            &["d", "-o", out, "-n", "BEGIN { trace(1); exit(0); }"],
        ] {
            let output = iotomy(words).current_dir(scene.path("")).output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
            assert!(error.contains("of user 65534"), "{words:?}: {error}");
            assert_eq!(scene.ours(), ours, "{words:?}");
        }
    }
}

#[test]
fn a_link_of_another_user_leads_no_history_elsewhere() {
    if !root() {
        return;
    }
    let scene = scene();
    let (theirs, ours) = (scene.path("theirs"), scene.ours());
    scene.link("../ours", "theirs/iotomy");
    let mut command = iotomy(&["trace", "-q", "--save", "true"]);
    let output = command.env("XDG_DATA_HOME", &theirs).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("a symbolic link of user 65534 leads to a directory of user 0"),
        "{error}"
    );
    assert_eq!(scene.ours(), ours);
}

#[test]
fn a_command_leads_the_record_of_its_run_nowhere() {
    if !root() || !has("perl") {
        return;
    }
    let scene = scene();
    let ours = scene.ours();
    // Twice 10,000 renames there and back, and at the end the link has the name.
    let script = "sub r { rename($_[0], $_[1]) or die \"$_[0] $_[1] $!\" } \
                  sub there { r('d', 'x'); r('l', 'd') } sub back { r('d', 'l'); r('x', 'd') } \
                  for (1..5000) { there(); back() } there();";
    let outputs = ["--json", "theirs/d/f", "-o", "theirs/d/report"];
    let mut command = iotomy(&["trace", "--user", "nobody"]);
    command.args(outputs).args(["--", "perl", "-e", &format!("chdir 'theirs'; {script}")]);
    let output = command.current_dir(scene.path("")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(scene.ours(), ours);
    // The record is where it was to be, in the folder that has another name now.
    let record = scene.path("theirs/x/f");
    let record = iotomy_record::store::load_trace(record).unwrap();
    let renames = record.calls.iter().filter(|call| call.syscall.starts_with("rename"));
    assert!(renames.map(|call| call.calls).sum::<u64>() >= 2 * SWAPS);
    assert!(scene.path("theirs/x/report").exists());
}

#[test]
fn root_looks_a_user_up_by_no_program_of_path() {
    if !root() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let spoil = format!("#!/bin/sh\necho $0 >> {}\n", folder.path().join("ran").display());
    for name in ["getent", "id", "sh", "true"] {
        program(folder.path(), name, spoil.as_bytes());
    }
    let ran = |path: &Path| fs::read_to_string(path.join("ran")).unwrap_or_default();
    for path in [format!("{}:/usr/bin:/bin", folder.path().display()), ".:/usr/bin:/bin".to_owned()]
    {
        let mut command = iotomy(&["trace", "-q", "--user", "nobody", "true"]);
        let output = command.env("PATH", &path).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let mut command =
            iotomy(&["race", "-q", "--no-trace", "-r", "2", "--prepare", ":", "exit 0; :"]);
        let output = command.env("PATH", &path).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(ran(folder.path()), "", "{path}");
    }
}
