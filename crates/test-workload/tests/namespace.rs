//! The truth suite once more in a namespace of process ids, as in a container: there, the kernel's numbers of
//! processes are none of those that user space has.

use crate::harness;

use std::process::Command;

use harness::{Need, skip};

/// Set in the run inside.
const INSIDE: &str = "IOTOMY_TRUTH_IN_NAMESPACE";

#[test]
fn every_truth_holds_inside_a_namespace_of_process_ids() {
    if std::env::var_os(INSIDE).is_some() {
        return;
    }
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
        unshare
    };
    if !unshare().arg("true").status().is_ok_and(|status| status.success()) {
        return skip(Need::Namespaces, "unshare --pid is not allowed here");
    }
    let mut inside = unshare();
    // The number of threads and the figures of stacks have nothing to do with the numbers of processes.
    inside.arg(std::env::current_exe().unwrap()).args(["truth", "rings_where"]);
    inside.args([
        "--test-threads",
        "1",
        "--skip",
        "ten_thousand",
        "--skip",
        "truth_anatomy",
        "--skip",
        "every_truth",
    ]);
    let run = inside.env(INSIDE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
    assert!(!text.contains("running 0 tests"), "{text}");
}
