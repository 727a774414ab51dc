//! What was kept stays kept: kills in the middle, several at once, full and read-only disks.

use crate::support;

use std::fs;
use std::process::{Command, Output, Stdio};

use support::histories::{History, limits, names, noise};
use support::{IOTOMY, Need, root, skip, until};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A record of some MiB that cannot be packed well, so that it takes many pages.
fn large(history: &History) -> String {
    let json = limits(1, 80.0, "6.1").replace("getppid", &noise(4 << 20));
    fs::write(history.path("large.json"), json).unwrap();
    "large.json".to_owned()
}

#[test]
fn a_kill_while_a_run_is_written_loses_neither_it_in_part_nor_those_before() {
    let history = History::new();
    let large = large(&history);
    history.keep(1, 80.0, Some("first"));
    history.keep(2, 81.0, Some("second"));
    let before = history.says(&["history", "export", "second"]);
    let ahead = history.path("data/iotomy/history.db-wal");
    let length = |path: &std::path::Path| fs::metadata(path).map_or(0, |file| file.len());
    let mut cut_short = 0;
    for round in 0..6u64 {
        let mut command = history.command(&["history", "import", &large]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let database = length(&history.file());
        // From its first pages on, and each time a little further.
        let enough = 4096 + round * (384 << 10);
        until("it writes or ends", || {
            let writes = length(&ahead) > enough || length(&history.file()) > database;
            (writes || child.try_wait().unwrap().is_some()).then_some(())
        });
        let _ = child.kill();
        cut_short += u32::from(!child.wait().unwrap().success());
        // Whole, or not there at all.
        let list = history.says(&["history", "list", "--last", "0"]);
        let kept = list.lines().filter(|line| line.contains("MiB")).count();
        for at in 3..3 + kept {
            let run = list.lines().nth(at).unwrap().split_whitespace().next().unwrap().to_owned();
            let exported = history.says(&["history", "export", &run]);
            assert_eq!(exported, fs::read_to_string(history.path(&large)).unwrap());
            history.says(&["history", "rm", &run]);
        }
        assert_eq!(history.says(&["history", "export", "second"]), before);
    }
    if cut_short == 0 {
        skip(Need::Machine, "every run was written before it could be killed");
    }
}

#[test]
fn several_that_save_at_once_are_all_kept() {
    let history = History::new();
    let files: Vec<String> = (0..6).map(|day| format!("{day}.json")).collect();
    for (day, file) in (0..).zip(&files) {
        history.limits(file, day, 80.0 + f64::from(day));
    }
    let children: Vec<_> = files
        .iter()
        .map(|file| {
            history.command(&["history", "import", file]).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let list = history.says(&["history", "list"]);
    assert_eq!(list.lines().count(), 1 + 6, "{list}");
    assert_eq!(names(&history.path("data/iotomy")), ["history.db"]);
}

/// Runs a script in a mount namespace of its own in which `data` is a file system made by `options`.
fn mounted(history: &History, options: &str, script: &str) -> Option<Output> {
    if !root() {
        return None;
    }
    fs::create_dir_all(history.path("data")).unwrap();
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-c"]);
    let script = format!("mount -t tmpfs {options} tmpfs data || exit 99; {script}");
    unshare.arg(script).arg(IOTOMY).env_remove("LD_LIBRARY_PATH").stdin(Stdio::null());
    support::caches::give_to(&mut unshare);
    history.surround(&mut unshare);
    let output = unshare.output().unwrap();
    if output.status.code() == Some(99) {
        skip(Need::Namespaces, "no file system can be mounted here");
        return None;
    }
    Some(output)
}

#[test]
fn a_full_disk_is_told_and_harms_neither_the_run_nor_its_status() {
    let history = History::new();
    let run = "\"$0\" trace -q --save sh -c 'echo ran; exit 3'";
    let script = format!("dd if=/dev/zero of=data/full bs=4k status=none; {run}");
    let Some(full) = mounted(&history, "-o size=64k", &script) else { return };
    assert_eq!((full.status.code(), &full.stdout[..]), (Some(3), &b"ran\n"[..]), "{full:?}");
    let said = stderr(&full);
    let told = said.lines().find(|line| line.starts_with("iotomy: the run was not kept: cannot "));
    assert!(told.is_some(), "{said}");
    // In the middle of a record, and what was there before stays.
    let large = large(&history);
    history.limits("small.json", 1, 80.0);
    let script = format!(
        "\"$0\" history import small.json && ! \"$0\" history import {large} && \"$0\" history list"
    );
    let Some(full) = mounted(&history, "-o size=2m", &script) else { return };
    let (out, said) = (String::from_utf8(full.stdout.clone()).unwrap(), stderr(&full));
    assert!(full.status.success() && out.lines().count() == 3, "{full:?}");
    assert!(
        said.contains("is full; free some space") || said.contains("whether the disk is full"),
        "{said}"
    );
}

#[test]
fn a_full_disk_hides_no_run_that_is_kept() {
    let history = History::new();
    history.limits("small.json", 1, 80.0);
    history.limits("other.json", 2, 80.0);
    for left in ["", "; rm -f data/iotomy/history.db-*"] {
        let script = format!(
            "\"$0\" history import small.json || exit 1; \
             dd if=/dev/zero of=data/full bs=1k status=none{left}; \
             \"$0\" history list && \"$0\" history show last && \"$0\" history export last && \
             ! \"$0\" history import other.json"
        );
        let Some(full) = mounted(&history, "-o size=256k", &script) else { return };
        let (out, said) = (String::from_utf8(full.stdout.clone()).unwrap(), stderr(&full));
        assert!(full.status.success() && out.contains("1  limits"), "{full:?}");
        assert!(out.contains("iotomy.limits/1") && out.contains("getppid"), "{out}");
        assert!(said.contains("dd: ") && said.contains("iotomy: cannot "), "{said}");
    }
}

#[test]
fn a_history_that_cannot_be_written_can_be_read() {
    let history = History::new();
    history.limits("small.json", 1, 80.0);
    let script = "\"$0\" history import small.json && mount -o remount,ro data && \
                  \"$0\" history list && ! \"$0\" race --no-trace -q -r 2 --save true && \
                  ! \"$0\" history rm 1";
    let Some(read) = mounted(&history, "", script) else { return };
    let (out, said) = (String::from_utf8(read.stdout.clone()).unwrap(), stderr(&read));
    assert!(read.status.success() && out.contains("1  limits"), "{read:?}");
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.starts_with("iotomy: the run was not kept: cannot "), "{said}");
    assert!(said.contains("XDG_DATA_HOME"), "{said}");
}

#[test]
fn without_any_folder_a_run_is_as_ever_and_the_reason_is_told() {
    let history = History::new();
    let mut run = history.command(&["trace", "-q", "--save", "false"]);
    let run = run.env_remove("XDG_DATA_HOME").env_remove("HOME").output().unwrap();
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert!(stderr(&run).contains("neither XDG_DATA_HOME nor HOME names a directory"), "{run:?}");
    // What should be its folder is a file.
    fs::write(history.path("data"), "").unwrap();
    let run = history.run(&["trace", "-q", "--save", "false"]);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert!(stderr(&run).contains("cannot make the directory of the history /"), "{run:?}");
}

#[test]
fn a_limit_of_file_sizes_is_told_and_ends_nothing() {
    let history = History::new();
    let mut shell = Command::new("sh");
    // 4 blocks of 512 bytes; the pipe and the null device have no size.
    shell.args(["-c", "ulimit -f 4; exec \"$0\" trace -q --save false", IOTOMY]);
    support::caches::give_to(shell.stdin(Stdio::null()));
    history.surround(&mut shell);
    let run = shell.output().unwrap();
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert!(stderr(&run).contains("the run was not kept: cannot "), "{run:?}");
}

#[test]
fn a_home_that_is_not_there_is_not_made() {
    let history = History::new();
    let home = history.path("home");
    let at_home = |words: &[&str]| {
        let mut command = history.command(words);
        for variable in ["DATA", "CONFIG", "CACHE", "STATE"] {
            command.env_remove(format!("XDG_{variable}_HOME"));
        }
        command.env("HOME", &home).output().unwrap()
    };
    let run = at_home(&["trace", "-q", "--save", "true"]);
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    assert!(stderr(&run).contains("neither XDG_DATA_HOME nor HOME names a directory"), "{run:?}");
    let run = at_home(&["limits", "-q", "--only", "syscall"]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(stderr(&run).contains("neither XDG_CACHE_HOME nor HOME names a directory"), "{run:?}");
    let run = at_home(&["lab", "run", "-q", "--quick", "--max-time", "0.1", "null-sink"]);
    assert!(stderr(&run).contains("neither XDG_STATE_HOME nor HOME names a directory"), "{run:?}");
    assert!(!home.exists());
    // Below a home that is there, folders are made.
    fs::create_dir(&home).unwrap();
    let run = at_home(&["trace", "-q", "--save", "true"]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(home.join(".local/share/iotomy/history.db").exists());
}
