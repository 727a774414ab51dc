//! Runs of experiments that are interrupted, and go on as they were asked for.

use crate::support;

use std::fs;
use std::path::Path;
use std::process::{Child, Output, Stdio};

use iotomy_record::{AxisValue, store};
use nix::sys::signal::Signal;
use support::labs::{SMALL, User, until_measured};
use support::{iotomy, send};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

/// Starts a run that takes long, and waits until it has measured something.
fn started(user: &User) -> Child {
    let mut command = user.command(&["copy", "-L", "size=64M", "--max-time=600", "--seed=5"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until_measured(&user.kept("copy"));
    child
}

#[test]
fn an_interrupted_run_says_how_to_go_on_and_goes_on() {
    let user = User::new();
    let child = started(&user);
    send(child.id(), Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("to resume: iotomy lab run copy --resume"), "{stderr}");
    let mut kept = store::load_sweep(user.kept("copy")).unwrap();
    assert!(kept.run.is_partial);
    // So little time is left that it has only to come to its end.
    kept.run.max_time_ns = Some(kept.run.wall_ns);
    store::RecordRef::Sweep(&kept).save_to(&user.kept("copy"), Path::new("/")).unwrap();
    let sweep = user.record(&["--resume"]);
    assert_eq!((sweep.run.seed, sweep.run.is_partial), (5, false));
    assert_eq!(sweep.started, kept.started);
    for (after, before) in sweep.cases.iter().zip(&kept.cases) {
        assert_eq!(after.samples, before.samples);
    }
    assert!(!user.kept("copy").exists());
}

#[test]
fn of_several_experiments_those_that_came_to_their_end_are_not_run_again() {
    let user = User::new();
    let whole = user.record(&SMALL);
    let mut part = user.record(&["null-sink", "-L", "size=1M", "--max-time=1"]);
    (part.run.is_partial, part.run.max_time_ns) = (true, Some(part.run.wall_ns));
    for kept in [&whole, &part] {
        store::RecordRef::Sweep(kept)
            .save_to(&user.kept(&kept.experiment), Path::new("/"))
            .unwrap();
    }
    let folder = user.work.path().to_str().unwrap();
    let output = user.run(&["copy", "null-sink", "--resume", "-q", "--json", folder]);
    assert!(output.status.success(), "{output:?}");
    let again = store::load_sweep(user.work.path().join("copy.json")).unwrap();
    assert_eq!(again, whole);
    let on = store::load_sweep(user.work.path().join("null-sink.json")).unwrap();
    assert_eq!((on.started, on.run.is_partial), (part.started, false));
    assert!(!user.kept("copy").exists() && !user.kept("null-sink").exists());
}

#[test]
fn a_killed_run_leaves_no_file_but_what_it_goes_on_from() {
    let user = User::new();
    let mut child = started(&user);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_dir(user.work.path()).unwrap().count(), 0);
    assert!(store::load_sweep(user.kept("copy")).unwrap().run.is_partial);
}

#[test]
fn a_record_that_finds_no_room_fails_after_the_report() {
    let user = User::new();
    let output = user.run(&[&SMALL[..], &["--json", "/dev/full"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("mmap-beats-read"), "{output:?}");
    assert!(text(&output.stderr).contains("/dev/full"), "{output:?}");
    assert!(user.kept("copy").exists(), "it can be had again");
}

fn interrupt(child: Child) -> Output {
    send(child.id(), Signal::SIGINT);
    child.wait_with_output().unwrap()
}

#[test]
fn a_run_goes_on_in_its_own_folder_and_in_no_other() {
    let user = User::new();
    let (folder, elsewhere) = (user.work.path().to_str().unwrap(), user.state.path());
    interrupt(started(&user));
    let mut kept = store::load_sweep(user.kept("copy")).unwrap();
    let volume = kept.run.volume.clone().unwrap();
    assert_eq!(volume.path, folder);
    kept.run.max_time_ns = Some(kept.run.wall_ns);
    store::RecordRef::Sweep(&kept).save_to(&user.kept("copy"), Path::new("/")).unwrap();
    let resume = |more: &[&str]| {
        let mut command = iotomy(&["lab", "run", "copy", "--resume"]);
        command.args(more).env("XDG_STATE_HOME", user.state.path()).output().unwrap()
    };
    let refused = resume(&["--path", elsewhere.to_str().unwrap()]);
    let error = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains(&format!("it used {folder}; leave out --path")), "{error}");
    assert_eq!(store::load_sweep(user.kept("copy")).unwrap(), kept, "and nothing was measured");
    // As the hint has it, without --path.
    let output = resume(&["--json", "-"]);
    assert!(output.status.success(), "{output:?}");
    let sweep = store::parse_sweep(&output.stdout).unwrap();
    assert_eq!(sweep.run.volume, Some(volume.clone()));
    let said = format!("{folder} ({})", volume.file_system);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&text(&output.stderr)).contains(&said), "{output:?}");
}

#[test]
fn a_run_whose_folder_is_gone_says_so() {
    let mut user = User::new();
    interrupt(started(&user));
    let folder = std::mem::replace(&mut user.work, tempfile::tempdir().unwrap());
    let name = folder.path().to_str().unwrap().to_owned();
    drop(folder);
    let mut command = iotomy(&["lab", "run", "copy", "--resume"]);
    let output = command.env("XDG_STATE_HOME", user.state.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains(&format!("its directory {name} no longer exists")), "{error}");
}

#[test]
fn what_had_not_begun_is_run_by_resume_as_it_was_asked_for() {
    let user = User::new();
    let records = tempfile::tempdir().unwrap();
    let mut command = user.command(&["copy", "null-sink", "-L", "size=1M,2M", "-L", "way=read"]);
    command.args(["-L", "mover=read-write", "--max-time=600", "--seed=5", "-q", "--json"]);
    let child = command.arg(records.path()).spawn().unwrap();
    until_measured(&user.kept("copy"));
    assert_eq!(interrupt(child).status.code(), Some(130));
    for name in ["copy", "null-sink"] {
        let mut kept = store::load_sweep(user.kept(name)).unwrap();
        let run = &mut kept.run;
        assert_eq!((run.seed, run.max_time_ns), (5, Some(600_000_000_000)), "{name}");
        run.max_time_ns = Some(run.wall_ns + 500_000_000);
        store::RecordRef::Sweep(&kept).save_to(&user.kept(name), Path::new("/")).unwrap();
    }
    let mut resume = iotomy(&["lab", "run", "--resume", "-q"]);
    let output = resume.env("XDG_STATE_HOME", user.state.path()).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let sweep = store::load_sweep(records.path().join("null-sink.json")).unwrap();
    let values = |axis: &str| {
        let axis = sweep.axes.iter().find(|one| one.name == axis).unwrap();
        axis.values.clone()
    };
    assert_eq!(values("size"), [1 << 20, 2 << 20].map(AxisValue::Number));
    assert_eq!(values("way"), [AxisValue::Name("read".into())]);
    assert_eq!((sweep.run.seed, sweep.run.max_time_ns), (5, Some(500_000_000)));
    assert_eq!(sweep.run.volume.unwrap().path, user.work.path().to_str().unwrap());
    assert_eq!((sweep.run.json, sweep.run.is_partial), (None, false));
    assert!(records.path().join("copy.json").exists());
    assert_eq!(fs::read_dir(user.state.path().join("iotomy")).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_begun_leaves_nothing_to_go_on_with() {
    let user = User::new();
    let output = user.run(&["copy", "-L", "mover=splice", "-L", "block=8K"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(user.run(&["--resume"]).status.code(), Some(2));
    assert!(!user.kept("copy").exists());
}

#[test]
fn of_two_runs_of_one_experiment_the_second_is_refused_and_the_first_keeps_its_state() {
    let user = User::new();
    let child = started(&user);
    for arguments in [&SMALL[..], &["copy", "--resume"]] {
        let output = user.run(arguments);
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{error}");
        let by = format!("copy is already running, by process {}; wait", child.id());
        assert!(error.contains(&by), "{error}");
    }
    // Another experiment may be run.
    user.record(&["null-sink", "-L", "size=1M", "-L", "way=read", "--max-time=1"]);
    assert!(user.kept("copy").exists());
    assert_eq!(interrupt(child).status.code(), Some(130));
    let left = fs::read_dir(user.state.path().join("iotomy")).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["lab-copy.json"]);
}
