//! The experiment `files` of the built command: what it measures, and that it touches nothing that it
//! did not make, also when it is killed.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use iotomy_record::{Case, Sweep, store};
use nix::sys::signal::Signal;
use support::labs::{ENOUGH, until_measured};
use support::{Need, iotomy, root, send, skip, text, until, until_ended};
use tempfile::TempDir;

/// A user with folders of its own.
struct User {
    state: TempDir,
    work: TempDir,
}

impl User {
    fn new() -> Self {
        Self {
            state: tempfile::tempdir().unwrap(),
            work: tempfile::tempdir_in("/var/tmp").unwrap(),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = iotomy(&["lab", "run", "files", "--path"]);
        command.arg(self.work.path()).args(arguments).env("XDG_STATE_HOME", self.state.path());
        command
    }

    fn record(&self, arguments: &[&str]) -> Sweep {
        let arguments = [arguments, &["-q", "--json", "-"]].concat();
        let output = self.command(&arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        store::parse_sweep(&output.stdout).unwrap()
    }

    /// A run that takes long, once it has measured something.
    fn started(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(&[arguments, &["--max-time=600"]].concat());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let kept = self.state.path().join("iotomy/lab-files.json");
        until_measured(&kept);
        child
    }

    fn in_work(&self) -> Vec<PathBuf> {
        fs::read_dir(self.work.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

/// Rounds on one file system, of one kind.
fn small<'a>(fs: &'a str, way: &'a str) -> Vec<&'a str> {
    let mut words = vec!["-L", way, "-L", fs, "-L", "op=round", "-L", "name=14", "-L", "files=10"];
    words.extend(["-L", "sched=normal", "-L", "cache=warm", "-L", "threads=1", "-L", "sync=none"]);
    words.extend(["-L", "layout=default"]);
    words
}

fn value(case: &Case, axis: &str) -> String {
    case.params[axis].to_string()
}

#[test]
fn every_way_makes_the_calls_of_a_round_and_says_what_each_takes() {
    let words = small("fs=tmpfs", "way=libc,static,musl,raw,io-uring");
    let sweep = User::new().record(&[&words[..], &["-L", "depth=1,8", ENOUGH]].concat());
    assert_eq!(sweep.cases.len(), 6);
    for case in &sweep.cases {
        let way = value(case, "way");
        if let Some(reason) = &case.skipped {
            assert!(!case.had_no_time(), "{way}");
            skip(Need::Machine, &format!("{way}: {reason}"));
            continue;
        }
        let extra = |name: &str| case.extra.get(name).copied();
        assert!(case.median.unwrap() > 0.0 && extra("start_ns").unwrap() > 0.0, "{case:?}");
        let is_ring = way == "io-uring";
        assert_eq!(extra("create_ns").is_some(), !is_ring, "{way}");
        // Seven, and its start and end; a ring takes one for several files.
        if let Some(calls) = extra("calls").filter(|_| !is_ring) {
            assert!((7.0..100.0).contains(&calls), "{way}: {calls}");
        }
    }
}

#[test]
fn listing_looking_up_and_reading_back_are_measured_too() {
    let sweep = User::new().record(&[
        "-L",
        "way=raw",
        "-L",
        "fs=here",
        "-L",
        "op=back,list,ls-l,names",
        "-L",
        "files=10,100",
        "-L",
        "name=255",
        "-L",
        "sched=normal",
        "-L",
        "threads=1",
        "-L",
        "sync=none",
        ENOUGH,
    ]);
    let of = |op: &str| sweep.cases.iter().filter(|case| value(case, "op") == op).count();
    assert_eq!([of("back"), of("list"), of("ls-l"), of("names")], [1, 2, 2, 1]);
    for case in &sweep.cases {
        assert_eq!(case.skipped, None, "{case:?}");
        let is_listed = value(case, "op").starts_with('l');
        assert_eq!(case.extra.contains_key("entry_ns"), is_listed, "{case:?}");
    }
}

#[test]
fn what_was_there_is_not_touched_and_nothing_is_left() {
    let user = User::new();
    let foreign = user.work.path().join("annnnnnnnnnnnn");
    fs::write(&foreign, "mine").unwrap();
    let words = small("fs=here", "way=libc");
    user.record(&[&words[..], &["-L", "depth=1", "--max-time=1"]].concat());
    assert_eq!(user.in_work(), std::slice::from_ref(&foreign));
    assert_eq!(fs::read_to_string(foreign).unwrap(), "mine");
    assert_eq!(fs::read_dir(user.state.path().join("iotomy")).unwrap().count(), 0);
}

#[test]
fn the_folder_of_a_killed_run_is_removed_by_the_next_and_its_processes_end() {
    let user = User::new();
    let words = small("fs=here", "way=libc");
    let mut child = user.started(&words);
    let workers = support::children(child.id());
    send(child.id(), Signal::SIGKILL);
    child.wait().unwrap();
    workers.into_iter().for_each(until_ended);
    let left = user.in_work();
    assert_eq!(left.len(), 1, "{left:?}");
    let copy = ["copy", "-L", "size=1M", "-L", "block=8M", "--max-time=1"];
    let mut next = iotomy(&["lab", "run", "-q"]);
    next.args(copy).env("XDG_STATE_HOME", user.state.path());
    let output = next.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("removed ") && error.contains("killed"), "{error}");
    assert!(error.contains(left[0].to_str().unwrap()), "{error}");
    assert!(user.in_work().is_empty());
}

/// The loop devices a process has open, and the files behind them.
fn loops_of(pid: u32) -> Vec<(String, String)> {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let devices = links.filter_map(|link| {
        let path = fs::read_link(link.path()).ok()?;
        let name = path.file_name()?.to_str()?.to_owned();
        path.starts_with("/dev").then_some(name).filter(|name| name.starts_with("loop"))
    });
    let file = |name: &str| fs::read_to_string(backing(name)).ok();
    devices.filter_map(|name| Some((file(&name)?, name))).map(|(file, name)| (name, file)).collect()
}

fn backing(name: &str) -> PathBuf {
    Path::new("/sys/block").join(name).join("loop/backing_file")
}

#[test]
fn the_file_systems_of_a_killed_run_go_with_it() {
    if !root() {
        return skip(Need::Root, "only root can mount images of file systems");
    }
    let user = User::new();
    let mut child = user.started(&small("fs=ext4", "way=libc"));
    let loops = loops_of(child.id());
    if loops.is_empty() {
        skip(Need::Devices, "no loop device to be had here");
    }
    // Nobody else sees the file system.
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    for (name, _) in &loops {
        assert!(!mounts.contains(&format!("/dev/{name} ")), "{mounts}");
    }
    send(child.id(), Signal::SIGKILL);
    child.wait().unwrap();
    for (name, file) in loops {
        until("the kernel has cleared the loop device", || {
            (fs::read_to_string(backing(&name)).ok().as_ref() != Some(&file)).then_some(())
        });
    }
    assert!(user.in_work().is_empty());
}

#[test]
fn a_file_system_without_inodes_or_room_is_a_skip_that_says_so() {
    if !root() {
        return skip(Need::Root, "mounting takes root");
    }
    for (option, says) in [("nr_inodes=30,size=64m", "inodes"), ("size=64k", "MiB are free")] {
        let user = User::new();
        let mut command = support::on_small_tmpfs(user.work.path(), option);
        command.args(["lab", "run", "files", "--path"]);
        command.arg(user.work.path()).env("XDG_STATE_HOME", user.state.path());
        command.args(["-L", "fs=here", "-L", "way=libc", "-L", "op=round", "-L", "files=1000"]);
        command.args(["-L", "name=14", "-L", "threads=1", "-L", "sched=normal", "-L", "sync=none"]);
        let mut child = command.arg("--max-time=2").stdout(Stdio::piped()).spawn().unwrap();
        let report = text(child.stdout.take().unwrap());
        let status = child.wait().unwrap();
        if !report.contains("files") && !status.success() {
            return skip(Need::Namespaces, "unshare --mount is not allowed here");
        }
        assert!(report.contains("skipped") && report.contains(says), "{report}");
        assert!(report.contains("name another directory with --path"), "{report}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_in_is_refused_before_anything_is_made() {
    let user = User::new();
    let mut command = iotomy(&["lab", "run", "files", "--quick", "--path", "/proc"]);
    let output = command.env("XDG_STATE_HOME", user.state.path()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.starts_with("iotomy: ") && error.contains("--path"), "{error}");
}

#[test]
fn other_users_get_what_needs_no_root() {
    if !root() {
        return skip(Need::Root, "takes root to be somebody else");
    }
    let folder = support::for_everyone();
    let mut command = support::as_nobody(folder.path());
    command.args(["lab", "run", "files", "--path"]).arg(folder.path());
    command.args(["-L", "op=round,names", "-L", "fs=here,tmpfs,ext4", "-L", "way=libc,io-uring"]);
    command.args(["-L", "name=14", "-L", "files=10", "-L", "sync=none", "-L", "layout=default"]);
    command.args(["-q", "--json", "-", "--max-time=3"]).env("XDG_STATE_HOME", folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let sweep = store::parse_sweep(&output.stdout).unwrap();
    for case in &sweep.cases {
        match &case.skipped {
            Some(reason) => assert!(
                value(case, "fs") == "ext4"
                    || value(case, "sched") == "realtime"
                    || value(case, "way") == "io-uring",
                "{reason}"
            ),
            None => assert_ne!(value(case, "fs"), "ext4"),
        }
    }
    assert!(sweep.cases.iter().any(|case| case.skipped.is_none()));
}
