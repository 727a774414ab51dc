//! iotomy inside a namespace of process ids and under a root folder of its own, as in a container:
//! it sees its own numbers and paths.

use crate::support;

use std::process::Command;
use support::{Need, skip};

/// iotomy as the first process of a namespace of process ids; `None` where there is none to be had.
fn first_in_namespace() -> Option<Command> {
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--fork", "--mount-proc"]);
        unshare
    };
    if !unshare().arg("true").status().is_ok_and(|status| status.success()) {
        skip(Need::Namespaces, "unshare --pid is not allowed here");
        return None;
    }
    let mut iotomy = unshare();
    iotomy.arg(env!("CARGO_BIN_EXE_iotomy"));
    Some(iotomy)
}

#[test]
fn a_session_that_an_outer_namespace_leads_is_zero_in_d() {
    let Some(mut iotomy) = first_in_namespace() else { return };
    if !support::bpf() {
        return;
    }
    let program = "BEGIN { printf(\"%d %d %d\\n\", $pid, $ppid, $sid); exit(0); }";
    let run = iotomy.args(["d", "-q", "-n", program]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&run.stdout), "1 0 0\n", "{run:?}");
    assert!(run.status.success(), "{run:?}");
}

#[test]
fn a_command_is_watched_inside_a_namespace_of_process_ids() {
    let Some(mut iotomy) = first_in_namespace() else { return };
    let run = iotomy
        .args(["trace", "-o", "/dev/null", "--json", "-", "--", "sh", "-c", "true; (exit 3)"])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    let record: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let processes = record["processes"].as_array().unwrap();
    assert!(processes.len() >= 2, "{processes:#?}");
    assert_eq!(processes[0]["ppid"], 1, "iotomy is the first in its namespace");
    assert_eq!(processes[1]["ppid"], processes[0]["pid"]);
    assert!(record["calls"].as_array().unwrap().iter().any(|row| row["syscall"] == "exit_group"));
}

#[test]
fn paths_begin_at_the_root_folder_iotomy_has() {
    let folder = tempfile::tempdir().unwrap();
    let under = |words: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--propagation", "private", "sh", "-c"]);
        unshare.arg(r#"mount --rbind / "$0" && exec chroot "$0" "$@""#).arg(folder.path());
        unshare.args(words).output().unwrap()
    };
    if !under(&["true"]).status.success() {
        skip(Need::Namespaces, "unshare --mount or chroot is not allowed here");
        return;
    }
    support::each_observer(|observer| {
        let iotomy = env!("CARGO_BIN_EXE_iotomy");
        let options = ["trace", "--observer", observer, "--files", "-o", "/dev/null"];
        let command = ["--json", "-", "--", "dd", "if=/etc/passwd", "of=/dev/null", "status=none"];
        let run = under(&[&[iotomy][..], &options, &command].concat());
        assert!(run.status.success(), "{run:?}");
        let record: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        let files = record["files"].as_array().unwrap();
        for path in ["/etc/passwd", "/dev/null"] {
            assert!(files.iter().any(|file| file["path"] == path), "{observer}: {files:#?}");
        }
    });
}
