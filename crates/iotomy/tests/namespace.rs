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

/// The record of a run inside.
fn record_inside(mut iotomy: Command, arguments: &[&str]) -> serde_json::Value {
    let run = iotomy.args(arguments).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    serde_json::from_slice(&run.stdout).unwrap()
}

fn sum(rows: &serde_json::Value) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row["calls"].as_u64().unwrap()).sum()
}

#[test]
fn no_call_of_iotomy_s_own_is_grouped_or_divides_by_zero_inside_a_namespace() {
    support::each_observer(|observer| {
        let trace = ["trace", "--observer", observer, "-o", "/dev/null", "--json", "-"];
        let Some(iotomy) = first_in_namespace() else { return };
        let record = record_inside(iotomy, &[&trace[..], &["--by", "call", "--", "true"]].concat());
        assert_eq!(sum(&record["by"]["rows"]), sum(&record["calls"]), "{observer}: {record:#}");
        let Some(iotomy) = first_in_namespace() else { return };
        let condition = ["--where", "1 / bytes >= 0", "--", "true"];
        let record = record_inside(iotomy, &[&trace[..], &condition].concat());
        let observer_use = &record["observer"];
        assert_eq!(
            observer_use["divided_by_zero"], observer_use["calls_left_out"],
            "{observer}: {record:#}"
        );
    });
}

#[test]
fn a_call_ends_the_watch_only_if_it_is_the_command_s() {
    support::each_observer(|observer| {
        let Some(iotomy) = first_in_namespace() else { return };
        let trace = ["trace", "--observer", observer, "-o", "/dev/null", "--json", "-"];
        let until = ["--until", "call == \"close\" && pid == 1", "--", "true"];
        let record = record_inside(iotomy, &[&trace[..], &until].concat());
        assert!(record["ended_by"].is_null(), "{observer}: {record:#}");
    });
}

#[test]
fn processes_of_another_namespace_beside_are_not_watched() {
    let Some(iotomy) = first_in_namespace() else { return };
    if !support::bpf() {
        return;
    }
    let unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let shell = ["sh", "-c", "echo on; while :; do : > /dev/null; done"];
    let _beside = support::BackgroundProcess::ready(&[&unshare[..], &shell].concat());
    // Of the namespace outside: also while the watch begins.
    let shell = ["sh", "-c", "echo on; while :; do /bin/true; done"];
    let _outside = support::BackgroundProcess::ready(&shell);
    let watch = ["trace", "-a", "-d", "0.3", "-o", "/dev/null", "--json", "-"];
    let record = record_inside(iotomy, &watch);
    assert_eq!(record["processes"].as_array().unwrap().len(), 0, "{record:#}");
}

#[test]
fn processes_have_their_numbers_of_the_namespace_in_d() {
    let Some(mut iotomy) = first_in_namespace() else { return };
    if !support::bpf() {
        return;
    }
    let program = "BEGIN { printf(\"%d \", pid); } \
        proc:::exec-success /ppid == $pid && pid == $target && progenyof($pid)/ { printf(\"exec \"); } \
        syscall::write:entry /pid == $target && tid == pid/ { printf(\"write \"); }";
    let run = iotomy.args(["d", "-q", "-n", program, "-c", "echo"]).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    let text = String::from_utf8_lossy(&run.stdout);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words, ["1", "exec", "write"], "{run:?}");
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
