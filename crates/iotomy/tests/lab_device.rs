//! The experiment `device` of the built command: whether requests reach the device, and that nothing of
//! its devices is left.

use crate::support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use iotomy_record::{Case, Sweep, store};
use nix::sys::signal::Signal;
use support::labs::{ENOUGH, until_measured};
use support::{Need, iotomy, root, send, skip};

fn record(work: &tempfile::TempDir, arguments: &[&str]) -> Sweep {
    let state = tempfile::tempdir().unwrap();
    let mut command = iotomy(&["lab", "run", "device", "-q", "--json", "-", "--path"]);
    command.arg(work.path()).args(arguments).env("XDG_STATE_HOME", state.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // Neither a record to go on with, nor a note of something that could not be removed.
    let kept = fs::read_dir(state.path().join("iotomy")).into_iter().flatten();
    assert_eq!(kept.count(), 0);
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
    let sweep = record(&work, &[&words[..], &[ENOUGH]].concat());
    assert_eq!(sweep.cases.len(), 4, "a way each");
    for case in &sweep.cases {
        let way = value(case, "way");
        if let Some(reason) = &case.skipped {
            assert!(!case.had_no_time(), "{way}");
            skip(Need::Machine, &format!("{way}: {reason}"));
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
fn the_window_is_that_of_a_device_or_a_file_system_of_ones_own() {
    if !root() {
        return skip(Need::Root, "only root can create devices");
    }
    // The one has the window of its device, the other one of its own.
    for fs in ["ext4", "btrfs"] {
        faults_read_around(fs);
    }
}

fn faults_read_around(fs: &str) {
    let (work, fs) = (work(), format!("fs={fs}"));
    let words = ["-L", "device=ram", "-L", &fs, "-L", "op=read", "-L", "way=mmap", "-L"];
    let more = ["pattern=random", "-L", "window=0,128", "-L", "depth=1", ENOUGH];
    let sweep = record(&work, &[&words[..], &more[..]].concat());
    let cached = |window: &str| {
        let case = sweep.cases.iter().find(|case| value(case, "window") == window).unwrap();
        match &case.skipped {
            Some(reason) => {
                skip(Need::Devices, reason);
                None
            }
            None => Some(case.extra["cached"]),
        }
    };
    let Some((without, with)) = cached("0").zip(cached("128")) else { return };
    assert!(with > 2.0 * without, "{fs}: faults read around by the window: {without} and {with}");
}

#[test]
fn stripes_are_held_against_one_device() {
    if !root() {
        return skip(Need::Root, "only root can create devices");
    }
    let work = work();
    let words = ["-L", "way=direct", "-L", "block=1M", "-L", "pattern=sequential", "-L", "depth=1"];
    let more = ["-L", "device=single,striped", "-L", "fs=btrfs", ENOUGH];
    let sweep = record(&work, &[&words[..], &more[..]].concat());
    assert_eq!(sweep.cases.len(), 4, "{:?}", sweep.cases);
    for case in &sweep.cases {
        match &case.skipped {
            Some(reason) => skip(Need::Devices, reason),
            None => assert!(case.median.unwrap() > 0.0),
        }
    }
    // Nothing is left but what the kernel takes down by itself.
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
    assert!(!fs::read_to_string("/proc/mounts").unwrap().contains(work.path().to_str().unwrap()));
}

/// The words of a run that goes on for long, on a device of memory.
const ON_RAM: [&str; 12] = [
    "-L",
    "device=ram",
    "-L",
    "fs=ext4",
    "-L",
    "op=read,write",
    "-L",
    "way=direct",
    "-L",
    "depth=1",
    "--max-time=600",
    "--quiet",
];

#[test]
fn the_device_of_memory_of_a_killed_run_is_removed_by_the_next() {
    if !root() {
        return skip(Need::Root, "only root can create devices");
    }
    let (work, state) = (work(), tempfile::tempdir().unwrap());
    let mut command = iotomy(&["lab", "run", "device", "--path"]);
    command.arg(work.path()).args(ON_RAM).env("XDG_STATE_HOME", state.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let folder = state.path().join("iotomy");
    let kept = folder.join("lab-device.json");
    until_measured(&kept);
    let notes = || {
        let all = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("zram-"))
            .collect::<Vec<_>>()
    };
    let noted = notes();
    send(child.id(), Signal::SIGKILL);
    child.wait().unwrap();
    let [note] = &noted[..] else { return skip(Need::Devices, "there is no zram here") };
    let content = fs::read_to_string(note).unwrap();
    let device = format!("zram{}", content.split(' ').next().unwrap());
    let disk = Path::new("/sys/block").join(&device).join("diskseq");
    let number = || fs::read_to_string(&disk).ok();
    let left = number();
    assert!(left.is_some(), "{device} is left by the kernel");
    let mut next = iotomy(&["lab", "run", "copy", "-q", "-L", "size=1M", "-L", "block=8M"]);
    next.arg("--max-time=1").env("XDG_STATE_HOME", state.path());
    let error = String::from_utf8(next.output().unwrap().stderr).unwrap();
    assert!(error.contains(&format!("removed /dev/{device}, left by a killed run")), "{error}");
    assert_ne!(number(), left, "it is no more, or is somebody else's");
    assert!(notes().is_empty());
}

#[test]
fn a_device_that_finds_no_room_is_a_skip_and_makes_nothing() {
    if !root() {
        return skip(Need::Root, "mounting takes root");
    }
    let (work, state) = (work(), tempfile::tempdir().unwrap());
    for (option, says) in [("size=40m", "MiB are free"), ("nr_inodes=3,size=1g", "inodes")] {
        let mut command = support::on_small_tmpfs(work.path(), option);
        command.args(["lab", "run", "device", "-L", "device=here,disk", "-L", "fs=ext4", "--path"]);
        command.arg(work.path()).env("XDG_STATE_HOME", state.path());
        let output = command.args(["-L", "op=read", "--max-time=2"]).output().unwrap();
        let report = String::from_utf8(output.stdout).unwrap();
        if !report.contains("device") {
            return skip(Need::Namespaces, "unshare --mount is not allowed here");
        }
        assert_eq!(output.status.code(), Some(2), "every case is skipped: {report}");
        assert!(report.contains("skipped") && report.contains(says), "{report}");
        assert!(report.contains("name another directory with --path"), "{report}");
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_a_skip_that_names_it() {
    let (work, state) = (work(), tempfile::tempdir().unwrap());
    // In blocks of 512 bytes: 10 MiB, where the file takes 32.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 20480; exec \"$@\"", "sh", support::IOTOMY]);
    command.args(["lab", "run", "device", "-L", "device=here", "-L", "depth=1", "--path"]);
    command.arg(work.path()).env("XDG_STATE_HOME", state.path());
    let output = command.arg("--max-time=2").output().unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2), "{report}");
    assert!(report.contains("ulimit -f"), "{report}");
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
}
