//! The contract of every check, on the machine the tests run on.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use iotomy_observe::OBSERVERS;
use iotomy_sys::probe::Refusal;

use crate::check::{Context, refusal_text};
use crate::registry::{GROUPS, try_all};

/// Traces that a trial could leave behind, by name.
fn traces_of_a_process() -> Vec<(&'static str, String)> {
    let list = |path: &str| {
        let mut names: Vec<_> = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names.join(" ")
    };
    let file = |path: &str| fs::read_to_string(path).unwrap();
    // Of every thread: a child belongs to the one that made it.
    let children: String = fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default())
        .collect();
    let policy = fs::read_to_string("/proc/self/stat").unwrap();
    let policy = policy.rsplit(')').next().unwrap().split(' ').nth(39).unwrap().to_owned();
    // Those of kinds that a trial could mount: others of this machine may be mounted and unmounted at any time.
    let mounts = file("/proc/self/mounts");
    let is_of_a_trial = |line: &&str| {
        let kind = line.split(' ').nth(2);
        ["tracefs", "debugfs", "bpf"].iter().any(|one| kind == Some(*one))
    };
    let mounts: Vec<_> = mounts.lines().filter(is_of_a_trial).collect();
    let status = file("/proc/self/status");
    let kept = ["Uid:", "Gid:", "Seccomp:", "NoNewPrivs:", "CapEff:", "VmLck:", "SigCgt:"];
    vec![
        ("descriptors", list("/proc/self/fd")),
        ("threads", list("/proc/self/task")),
        ("children", children),
        ("mounts", mounts.join("\n")),
        ("limits", file("/proc/self/limits")),
        ("network", fs::read_link("/proc/self/ns/net").unwrap().display().to_string()),
        ("users", fs::read_link("/proc/self/ns/user").unwrap().display().to_string()),
        ("scheduling", policy),
        (
            "status",
            status.lines().filter(|l| kept.iter().any(|k| l.starts_with(k))).collect::<String>(),
        ),
    ]
}

/// The work of the test below, in a process where no other test runs at the same time.
#[test]
#[ignore = "run by every_trial_answers_and_leaves_nothing"]
fn alone_every_trial_answers_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let context = Context { folder: folder.path().to_owned() };
    // An observer may keep a descriptor it creates once (ptrace its eventfd); it must not create
    // another.
    for observer in OBSERVERS {
        let _ = observer.probe();
    }
    let first = traces_of_a_process();
    for tried in try_all(&context) {
        println!("{tried:?}");
        let texts = [tried.detail, tried.reason, tried.remedy];
        assert_eq!(
            texts.each_ref().map(Option::is_some),
            [tried.ready, !tried.ready, !tried.ready]
        );
        assert!(texts.into_iter().flatten().all(|text| !text.is_empty()), "{}", tried.name);
    }
    for (before, after) in first.iter().zip(traces_of_a_process()) {
        assert_eq!(*before, after);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

fn run_alone(mut command: Command) {
    let output = command
        .args(["--ignored", "--exact", "--nocapture", "--test-threads=1"])
        .arg("tests::alone_every_trial_answers_and_leaves_nothing")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
}

#[test]
fn every_trial_answers_and_leaves_nothing() {
    run_alone(Command::new(std::env::current_exe().unwrap()));
}

#[test]
fn every_trial_answers_a_user_without_privilege() {
    if !rustix::process::geteuid().is_root() {
        return; // The test above was that.
    }
    // A copy where every user may read it. Made by another process: a child of a trial in another
    // thread would hold the file open for writing for a moment, and then it cannot be executed.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let program = folder.path().join("tests");
    let this = std::env::current_exe().unwrap();
    assert!(Command::new("cp").arg(this).arg(&program).status().unwrap().success());
    let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(folder.path(), open).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
    command.arg(program).env("TMPDIR", "/tmp").current_dir("/");
    run_alone(command);
}

#[test]
fn a_folder_that_cannot_be_written_is_a_reason() {
    let context = Context { folder: PathBuf::from("/proc") };
    for tried in try_all(&context).into_iter().filter(|tried| tried.group == "files") {
        assert!(!tried.ready, "{tried:?}");
    }
}

#[test]
fn names_are_unique_and_every_check_says_what_needs_it() {
    let mut seen: HashSet<_> = OBSERVERS.iter().map(|one| one.declaration().name).collect();
    assert_eq!(seen.len(), OBSERVERS.len());
    for group in GROUPS {
        assert!(seen.insert(group.name) && !group.checks.is_empty(), "{}", group.name);
        for check in group.checks {
            assert!(seen.insert(check.name), "{} twice", check.name);
            assert!(!check.purpose.is_empty() && !check.name.contains(' '), "{check:?}");
        }
    }
}

#[test]
fn a_refusal_names_the_call_and_the_error() {
    let refusal = Refusal::new("mmap", rustix::io::Errno::NOMEM);
    assert_eq!(refusal_text(&refusal), "mmap: ENOMEM, cannot allocate memory");
    let other = Refusal::new("mmap", std::io::Error::other("Something odd"));
    assert_eq!(refusal_text(&other), "mmap: something odd");
}
