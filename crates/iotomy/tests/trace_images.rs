//! `iotomy trace`: program images, what they are called, and how many of them are one entry.

use crate::support;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;

use iotomy_record::{Key, Process, Trace};
use support::{
    BackgroundProcess, Tracing, children, each_observer, glimpse, has, iotomy, program, traced,
    until, until_watching,
};

const LOOP: &str = "i=0; while [ $i -lt 120 ]; do /bin/true; i=$((i+1)); done";

/// Calls that return the same, however they are scheduled.
fn counts(record: &Trace) -> BTreeMap<(String, String), [u64; 3]> {
    let mut counts: BTreeMap<_, [u64; 3]> = BTreeMap::new();
    for call in record.calls.iter().filter(|call| call.exec == "true") {
        let sum = counts.entry((call.exec.clone(), call.syscall.clone())).or_default();
        for (sum, n) in sum.iter_mut().zip([call.calls, call.errors, call.in_flight]) {
            *sum += n;
        }
    }
    counts
}

#[test]
fn identical_images_are_one_entry_unless_each_is_asked_for() {
    each_observer(|observer| {
        let each = traced(observer, &["--each"], &["sh", "-c", LOOP]).record();
        let rolled = traced(observer, &[], &["sh", "-c", LOOP]);
        let record = rolled.record();
        let is_true = |process: &&Process| process.exec == "true";
        let of_true: Vec<&Process> = record.processes.iter().filter(is_true).collect();
        assert_eq!(of_true.len(), 1, "{of_true:?}");
        assert_eq!((of_true[0].instances, of_true[0].continued), (120, 120), "{observer}");
        assert_eq!(each.processes.iter().filter(is_true).count(), 120);
        for record in [&each, &record] {
            assert_eq!(record.process_count(), 121, "{observer}");
            assert_eq!(record.thread_count(), 121, "{observer}");
        }
        assert_eq!(counts(&record), counts(&each), "{observer}");
        let bytes = fs::metadata(rolled.json()).unwrap().len();
        assert!(bytes <= 120 * 2048, "{bytes} bytes for 120 processes");
        assert!(rolled.stderr().contains("true × 120"), "{}", rolled.stderr());
        assert!(rolled.stderr().contains("before exec × 120"), "{}", rolled.stderr());
    });
}

#[test]
fn an_exec_makes_no_thread() {
    each_observer(|observer| {
        let traced = traced(observer, &[], &["env", "true"]);
        let record = traced.record();
        assert_eq!((record.processes.len(), record.thread_count()), (2, 1), "{observer}");
        assert_eq!(record.processes[1].continued, 1);
        assert!(!traced.stderr().contains("overlap"), "{}", traced.stderr());
    });
}

/// A link to a program, as `redis-server` is one to `redis-check-rdb`.
#[test]
fn a_process_is_called_by_the_link_it_was_started_by() {
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("waits-for-a-line");
        symlink(fs::canonicalize("/bin/sh").unwrap(), &link).unwrap();
        let shell = fs::canonicalize("/bin/sh").unwrap();
        let binary = shell.file_name().unwrap().to_str().unwrap();
        let words = [link.to_str().unwrap(), "-c", "echo ready; read line; read line; :"];
        let run = traced(observer, &[], &[words[0], "-c", ":"]).record();
        assert_eq!(
            (&*run.processes[0].exec, run.processes[0].name()),
            ("waits-for-a-line", "waits-for-a-line")
        );
        assert_eq!(run.processes[0].binary, binary, "{observer}");

        let (mut process, _) = BackgroundProcess::ready(&words);
        let pid = process.pid();
        let attached = glimpse(observer, pid, &[]);
        let record = attached.record();
        let found = &record.processes[0];
        assert_eq!(
            (&*found.exec, found.name(), &*found.binary),
            ("waits-for-a-line", "waits-for-a-line", binary),
            "{observer}"
        );
        let head = format!("waits-for-a-line ({pid}) [{binary}]");
        assert!(attached.stderr().contains(&head), "{}", attached.stderr());

        let (pid, is) = (pid.to_string(), "image == \"waits-*\"");
        let options = ["-p", &pid, "--where", is, "--by", "image"];
        let watching = Tracing::new(observer, &options, &[]).start();
        until_watching(&watching, observer, process.pid());
        // The first call was made before the watch.
        process.say("\n\n");
        assert_eq!(process.end(), 0);
        let groups = watching.end().record().by.unwrap().rows;
        assert_eq!(groups.len(), 1, "{observer}: {groups:?}");
        assert_eq!(groups[0].key, [Key::Text("waits-for-a-line".to_owned())], "{observer}");
    });
}

#[test]
fn a_script_is_called_by_its_name_and_its_interpreter_stands_beside_it() {
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let script = program(folder.path(), "greets", b"#!/bin/sh\n:\n");
        let record = traced(observer, &[], &[script.to_str().unwrap()]).record();
        let shell = fs::canonicalize("/bin/sh").unwrap();
        let found = &record.processes[0];
        assert_eq!((&*found.exec, found.name()), ("greets", "greets"), "{observer}");
        assert_eq!(Some(&*found.binary), shell.file_name().unwrap().to_str(), "{observer}");
    });
}

#[test]
fn children_made_before_the_watch_are_said_not_to_be_watched_with_only() {
    each_observer(|observer| {
        let (mut shell, _) = BackgroundProcess::ready(&[
            "sh",
            "-c",
            "sleep 1000 & echo ready; read line; kill $!; :",
        ]);
        let child = until("it has its child", || children(shell.pid()).first().copied());
        until("the child has executed its program", || {
            let name = fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
            (name == "sleep\n").then_some(())
        });
        let attached = glimpse(observer, shell.pid(), &["--only"]);
        let record = attached.record();
        let unwatched: Vec<_> =
            record.unwatched_children.iter().map(|one| (one.pid, &*one.exec)).collect();
        assert_eq!(unwatched, [(child, "sleep")], "{observer}");
        let said = format!("not watched  sleep ({child})");
        assert!(attached.stderr().contains(&said), "{}", attached.stderr());
        let shown = iotomy(&["show", attached.json().to_str().unwrap()]).output().unwrap();
        assert!(String::from_utf8_lossy(&shown.stdout).contains(&said), "as show does");
        shell.say("\n");
        assert_eq!(shell.end(), 0);
    });
}

#[test]
fn a_command_line_that_is_cut_says_so_and_an_empty_one_is_seen() {
    if !has("perl") {
        return;
    }
    let cut = "exec {'/bin/true'} 'true', map { \"word$_\" } 1 .. 600";
    let empty = "exec {'/bin/true'} ''";
    each_observer(|observer| {
        let run = traced(
            observer,
            &["--top", "0"],
            &["perl", "-e", &format!("if (!fork) {{ {cut} }} wait")],
        );
        let record = run.record();
        let is_true = |process: &&Process| process.exec == "true";
        let found = record.processes.iter().find(is_true).unwrap();
        assert_eq!(found.argv[..3], ["true", "word1", "word2"], "{observer}");
        match observer {
            "bpf" => {
                assert_eq!((found.argv_words, found.argv.last().unwrap().as_str()), (601, "…"));
                assert!(found.argv.len() < 200, "{:?}", found.argv);
                assert!(run.stderr().contains(" (601 words)"), "{}", run.stderr());
            }
            _ => assert_eq!((found.argv_words, found.argv.len()), (0, 601), "{observer}"),
        }
        let run = traced(
            observer,
            &["--top", "0"],
            &["perl", "-e", &format!("if (!fork) {{ {empty} }} wait")],
        );
        let record = run.record();
        assert_eq!(record.processes.iter().find(is_true).unwrap().argv, [""], "{observer}");
        assert!(run.stderr().lines().any(|line| line.ends_with("   ''")), "{}", run.stderr());
    });
}

/// Threads that are called so: by prctl, which is call 157.
const CALLED: &str = r#"
import ctypes, os, threading
libc = ctypes.CDLL(None)
def work(name):
    libc.syscall(157, 15, ctypes.c_char_p(name), 0, 0, 0)
    for _ in range(50): os.getppid()
each = [threading.Thread(target=work, args=[name]) for name in (b"", b"worker-pool-1", b"worker-pool-2")]
for one in each: one.start()
for one in each: one.join()
"#;

#[test]
fn threads_are_told_apart_by_their_names_and_one_without_a_name_by_its_id() {
    if !has("python3") {
        return;
    }
    each_observer(|observer| {
        let run = traced(observer, &["--threads", "--top", "0"], &["python3", "-c", CALLED]);
        let record = run.record();
        let thread = |name: &str| {
            let found = record.threads.iter().find(|thread| thread.name == name);
            found.unwrap_or_else(|| panic!("{observer}: {name:?}")).tid
        };
        for (name, shown) in [
            ("", "(no name)"),
            ("worker-pool-1", "worker-pool-1"),
            ("worker-pool-2", "worker-pool-2"),
        ] {
            let shown = format!("  {shown} ({}) ", thread(name));
            assert!(run.stderr().contains(&shown), "{observer}: {shown}: {}", run.stderr());
        }
    });
}

#[test]
fn names_that_differ_in_invalid_bytes_are_told_apart() {
    if !has("cat") {
        return;
    }
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        for (last, content) in [(0xff_u8, "a"), (0xfe, "bb")] {
            let name = OsString::from_vec(vec![b'n', last]);
            fs::write(folder.path().join(name), content).unwrap();
        }
        let script = format!("cat {}/n*", folder.path().to_str().unwrap());
        let traced = traced(observer, &["--files", "--top", "0"], &["sh", "-c", &script]);
        let record = traced.record();
        let mut read: Vec<_> = record
            .files
            .iter()
            .filter_map(|file| Some((file.path.strip_prefix(folder.path().to_str()?)?, file)))
            .map(|(name, file)| (name, file.read_bytes, file.allocated_bytes.is_some()))
            .collect();
        read.sort();
        assert_eq!(read, [("/n\\xfe", 2, true), ("/n\\xff", 1, true)], "{observer}");
        for name in ["n\\xfe", "n\\xff"] {
            assert!(traced.stderr().contains(name), "{}", traced.stderr());
        }
    });
}

#[test]
fn processes_come_in_the_order_asked_for_in_show_too() {
    if !has("dd") {
        return;
    }
    each_observer(|observer| {
        let script = "sleep 0.2 & dd if=/dev/zero of=/dev/null count=500 2>/dev/null; wait";
        let traced = traced(observer, &["--sort", "calls"], &["sh", "-c", script]);
        let first = |text: &str| {
            let mut rows = text.lines().skip_while(|line| !line.starts_with("  process "));
            let row = rows.find(|line| line.contains('(')).unwrap();
            row.split_whitespace().next().unwrap().to_owned()
        };
        assert_eq!(first(traced.stderr()), "dd", "{observer}: {}", traced.stderr());
        let json = traced.json();
        let shown = |key| {
            let words = ["show", "--sort", key, json.to_str().unwrap()];
            String::from_utf8(iotomy(&words).output().unwrap().stdout).unwrap()
        };
        assert_eq!(first(&shown("calls")), "dd", "{observer}");
        assert_eq!(first(&shown("name")), "dd", "{observer}");
        assert_ne!(first(&shown("wall")), "dd", "{observer}: the shell was there longer");
    });
}

#[test]
fn an_observer_s_memory_is_bounded_by_the_rows_it_may_keep() {
    let script = "i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done";
    each_observer(|observer| {
        if observer == "bpf" {
            return;
        }
        let traced = traced(observer, &["--max-rows", "9", "--each"], &["sh", "-c", script]);
        assert_eq!(traced.code(), 0);
        let record = traced.record();
        assert_eq!(record.processes.len(), 9, "{observer}");
        // Of 41 images 32 found no room, and each made a call or more.
        assert!(record.observer.lost_events >= 64, "{}", record.observer.lost_events);
        assert!(traced.stderr().contains("lost"), "{}", traced.stderr());
    });
}
