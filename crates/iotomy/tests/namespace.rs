//! iotomy inside a namespace of process ids, as in a container: it sees its own numbers.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod support;

use std::process::Command;

#[test]
fn a_command_is_watched_inside_a_namespace_of_process_ids() {
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--fork", "--mount-proc"]);
        unshare
    };
    if !unshare().arg("true").status().is_ok_and(|status| status.success()) {
        support::skip("unshare --pid is not allowed here");
        return;
    }
    let run = unshare()
        .arg(env!("CARGO_BIN_EXE_iotomy"))
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
