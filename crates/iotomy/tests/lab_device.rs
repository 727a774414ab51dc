//! The experiment `device` of the built command: whether requests reach the device, and that nothing of
//! its devices is left.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod support;

use std::fs;

use iotomy_record::{Case, Sweep, store};
use support::{iotomy, root, skip};

fn record(work: &tempfile::TempDir, arguments: &[&str]) -> Sweep {
    let state = tempfile::tempdir().unwrap();
    let mut command = iotomy(&["lab", "run", "device", "-q", "--json", "-", "--path"]);
    command.arg(work.path()).args(arguments).env("XDG_STATE_HOME", state.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    store::parse_sweep(&output.stdout).unwrap()
}

fn work() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn value(case: &Case, axis: &str) -> String {
    case.params[axis].to_string()
}

#[test]
fn reads_past_the_cache_leave_nothing_in_it_and_faults_read_around() {
    let work = work();
    let words = ["-L", "device=here", "-L", "op=read", "-L", "pattern=random", "-L", "depth=1"];
    let sweep = record(&work, &[&words[..], &["--max-time=2"]].concat());
    assert_eq!(sweep.cases.len(), 4, "a way each");
    for case in &sweep.cases {
        let way = value(case, "way");
        if let Some(reason) = &case.skipped {
            skip(&format!("{way}: {reason}"));
            continue;
        }
        let cached = case.extra["cached"];
        match way.as_str() {
            "direct" | "io-uring" => assert!(cached < 0.5, "{way}: {cached}"),
            _ => assert!(cached > 0.5, "{way}: {cached}"),
        }
    }
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
}

#[test]
fn the_window_is_that_of_a_device_of_ones_own() {
    if !root() {
        return skip("devices of one's own are made by root only");
    }
    let work = work();
    let words = ["-L", "device=ram", "-L", "fs=ext4", "-L", "op=read", "-L", "way=mmap", "-L"];
    let more = ["pattern=random", "-L", "window=0,128", "-L", "depth=1", "--max-time=3"];
    let sweep = record(&work, &[&words[..], &more[..]].concat());
    let cached = |window: &str| {
        let case = sweep.cases.iter().find(|case| value(case, "window") == window).unwrap();
        match &case.skipped {
            Some(reason) => {
                skip(reason);
                None
            }
            None => Some(case.extra["cached"]),
        }
    };
    let Some((without, with)) = cached("0").zip(cached("128")) else { return };
    assert!(with > 2.0 * without, "faults read around by the window: {without} and {with}");
}

#[test]
fn stripes_and_memory_are_held_against_one_disk() {
    if !root() {
        return skip("devices of one's own are made by root only");
    }
    let work = work();
    let words = ["-L", "way=direct", "-L", "block=1M", "-L", "pattern=sequential", "-L", "depth=1"];
    let more = ["-L", "device=single,striped", "-L", "fs=btrfs", "--max-time=6"];
    let sweep = record(&work, &[&words[..], &more[..]].concat());
    assert_eq!(sweep.cases.len(), 4, "{:?}", sweep.cases);
    for case in &sweep.cases {
        match &case.skipped {
            Some(reason) => skip(reason),
            None => assert!(case.median.unwrap() > 0.0),
        }
    }
    // Nothing is left but what the kernel takes down by itself.
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
    assert!(!fs::read_to_string("/proc/mounts").unwrap().contains(work.path().to_str().unwrap()));
}
