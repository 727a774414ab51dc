//! The condition on calls (`--where`): exact counts, and the same by both observers.

use crate::support;

use std::collections::BTreeMap;

use iotomy_record::{FileUse, Key, Trace};
use support::{Traced, Tracing, bpf, each_observer, has, traced};

/// Calls that returned, by program and name: how many, errors and bytes.
fn calls(record: &Trace) -> BTreeMap<(&str, &str), (u64, u64, u64)> {
    let mut calls = BTreeMap::new();
    for row in record.calls.iter().filter(|row| row.calls > 0) {
        let sums: &mut (u64, u64, u64) =
            calls.entry((row.exec.as_str(), row.syscall.as_str())).or_default();
        *sums = (sums.0 + row.calls, sums.1 + row.errors, sums.2 + row.bytes);
    }
    calls
}

fn total(record: &Trace) -> u64 {
    record.calls.iter().map(|row| row.calls).sum()
}

/// Moves bytes of its own files in known pieces.
const PIECES: &str = r#"
import os, threading
f = os.open("piece", os.O_RDWR | os.O_CREAT)
for n in range(7): os.write(f, b"x" * 100)
for n in range(5): os.write(f, b"x" * 600)
os.rename("piece", "other")
for n in range(3): os.write(f, b"x" * 600)
os.lseek(f, 0, 0)
for n in range(4): os.pread(f, 64, 0)
for n in range(2):
    try: os.open("nowhere", os.O_RDONLY)
    except OSError: pass
def named():
    with open("/proc/self/task/%d/comm" % threading.get_native_id(), "w") as comm: comm.write("worker")
    for n in range(6): os.write(f, b"yy")
thread = threading.Thread(target=named)
thread.start()
thread.join()
d = os.dup2(f, 77)
for n in range(9): os.fsync(77) if n % 3 else os.fstat(77)
"#;

fn python(observer: &str, condition: &str, folder: &std::path::Path) -> Traced {
    let options = ["--where", condition];
    let mut tracing = Tracing::new(observer, &options, &["python3", "-c", PIECES]);
    tracing.command.current_dir(folder);
    let traced = tracing.run();
    assert_eq!(traced.code(), 0, "{condition}: {}", traced.stderr());
    traced
}

#[test]
fn a_file_has_the_present_name_of_its_directory() {
    each_observer(|observer| {
        // `f` is read under both names of its directory, `g` is written under the first and read under the second.
        for (name, bytes) in [("d1/f", 4), ("d2/f", 4), ("d1/g", 0), ("d2/g", 4)] {
            let folder = tempfile::tempdir().unwrap();
            let base = folder.path().canonicalize().unwrap();
            let condition = format!("path == \"{}/{name}\" && call == \"read\"", base.display());
            let script = "mkdir d1; echo one >d1/f; echo two >d1/g; read a <d1/f; mv d1 d2; \
                read a <d2/f; read a <d2/g";
            let options = ["--where", &condition];
            let mut tracing = Tracing::new(observer, &options, &["sh", "-c", script]);
            tracing.command.current_dir(&base);
            let traced = tracing.run();
            let moved: u64 = traced.record().calls.iter().map(|row| row.bytes).sum();
            assert_eq!(moved, bytes, "{observer} {name}");
        }
    });
}

#[test]
fn a_condition_that_no_call_can_fulfil_is_refused() {
    for condition in ["1 == 2", "call == \"read\" && call == \"write\""] {
        let run = support::iotomy(&["trace", "--where", condition, "--", "true"]).output().unwrap();
        let stderr = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{condition}: {stderr}");
        assert!(stderr.contains("--where: no call or ring operation"), "{condition}: {stderr}");
    }
}

#[test]
fn only_the_calls_for_which_it_holds_are_counted() {
    if !has("python3") {
        return;
    }
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let base = base.to_str().unwrap();
        for (condition, call, expected) in [
            ("call == \"write\" && bytes == 100".to_owned(), "write", (7, 0, 700)),
            ("bytes > 512 && bytes < 1K && call == \"write\"".into(), "write", (8, 0, 4800)),
            (format!("path == \"{base}/piece\" && group == \"%io\""), "write", (12, 0, 3700)),
            (format!("path == \"{base}/other\" && bytes == 600"), "write", (3, 0, 1800)),
            (format!("path == \"{base}/*\" && call == \"pread64\""), "pread64", (4, 0, 256)),
            (format!("path == \"{base}/nowhere\" && errno == ENOENT"), "openat", (2, 2, 0)),
            (format!("path == \"{base}/other\" && call == \"rename\""), "rename", (1, 0, 0)),
            ("threadname == \"work*\" && bytes == 2".into(), "write", (6, 0, 12)),
            ("fd == 77 && call == \"fsync\"".into(), "fsync", (6, 0, 0)),
            ("thread != pid && call == \"write\" && bytes == 2".into(), "write", (6, 0, 12)),
        ] {
            let traced = python(observer, &condition, folder.path());
            std::fs::remove_file(folder.path().join("other")).unwrap();
            let record = traced.record();
            let calls = calls(&record);
            let found: Vec<_> = calls.iter().map(|((_, name), sums)| (*name, *sums)).collect();
            assert_eq!(found, [(call, expected)], "{condition}");
            assert_eq!(record.view.r#where, condition);
            assert!(traced.stderr().contains("only calls where"), "{}", traced.stderr());
        }
    });
}

#[test]
fn frequent_calls_are_left_out_one_by_one() {
    if !has("python3") {
        return;
    }
    let script = "import os\nf = os.open('/dev/null', 1)\n\
                  for n in range(20000): os.write(f, b'abc'); os.write(f, b'ab'); os.getppid()";
    each_observer(|observer| {
        let many = ["--where", "bytes == 2 && call == \"write\"", "--files"];
        let record = traced(observer, &many, &["python3", "-c", script]).record();
        assert_eq!(calls(&record).values().collect::<Vec<_>>(), [&(20_000, 0, 40_000)]);
        let files: Vec<(&str, u64, u64)> = record
            .files
            .iter()
            .filter(|file| file.write_calls > 0)
            .map(|file| (file.path.as_str(), file.write_calls, file.write_bytes))
            .collect();
        assert_eq!(files, [("/dev/null", 20_000, 40_000)]);
        // The times of all calls are the threads' all the same.
        if !record.ledger.is_empty() {
            let all: u64 = record.ledger.iter().map(|row| row.calls_on_cpu_ns).sum();
            let own: u64 = record.calls.iter().filter_map(|call| call.on_cpu_ns).sum();
            assert!(all > own, "{all} {own}");
        }
    });
}

#[test]
fn both_observers_leave_out_the_same_calls() {
    if !bpf() || !has("cat") {
        return;
    }
    let script = "cat /etc/hostname /nonexistent; cd /etc; cat ./hostname passwd; \
                  echo hello | cat; cat < /etc/../etc/group";
    for condition in [
        "path == \"/etc/hostname\"",
        "path == \"/etc/*\" && call == \"openat\"",
        "path == \"pipe:*\" || path == \"/dev/*\"",
        // The order of processes decides how many signals interrupt, and how often is waited.
        "path == \"\" && group != \"%process\" && group != \"memory\" && group != \"signal\"",
        "errno == ENOENT || errno == ENOTTY",
        "image == \"cat\" && call == \"close\"",
        "execname != \"cat\" && group == \"%file\"",
        "call == \"execve\"",
        "threadname == \"cat\" && call == \"mmap\"",
        "cgroup == \"/*\" && call == \"brk\"",
        "cgroup == \"/no/such\"",
        "fd <= 1 && fd >= 0",
        "bytes > 0 ? bytes % 2 : errno == EBADF",
        "call == \"read\" && bytes / (bytes - 6) == 1 || call == \"getpid\"",
    ] {
        let seen = ["bpf", "ptrace"].map(|observer| {
            traced(observer, &["--where", condition], &["sh", "-c", script]).record()
        });
        assert_eq!(calls(&seen[0]), calls(&seen[1]), "{condition}");
        let [bpf, ptrace] = seen.map(|record| record.observer.divided_by_zero);
        assert_eq!(bpf, ptrace, "{condition}");
    }
}

/// The groups of a record.
fn groups(record: &Trace) -> BTreeMap<Vec<Key>, (u64, u64, u64)> {
    let rows = record.by.iter().flat_map(|groups| &groups.rows);
    rows.map(|row| (row.key.clone(), (row.calls, row.errors, row.bytes))).collect()
}

fn text(text: &str) -> Key {
    Key::Text(text.to_owned())
}

#[test]
fn calls_are_grouped_by_their_values() {
    if !has("python3") {
        return;
    }
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let at = |name: &str| text(base.join(name).to_str().unwrap());
        let condition = format!("path == \"{}/*\" && group == \"io\"", base.display());
        let options = ["--where", &condition, "--by", "path,call,bytes,threadname"];
        let mut tracing = Tracing::new(observer, &options, &["python3", "-c", PIECES]);
        tracing.command.current_dir(folder.path());
        let traced = tracing.run();
        let record = traced.record();
        let of = |path: Key, call: &str, bytes: i64, sums| {
            let groups = groups(&record);
            let found: Vec<_> = groups
                .iter()
                .filter(|(key, _)| key[..3] == [path.clone(), text(call), Key::Number(bytes)])
                .collect();
            assert_eq!(found.len(), 1, "{groups:#?}");
            assert_eq!(*found[0].1, sums, "{groups:#?}");
            found[0].0[3].clone()
        };
        of(at("piece"), "write", 64, (7, 0, 700));
        of(at("piece"), "write", 512, (5, 0, 3000));
        of(at("other"), "write", 512, (3, 0, 1800));
        of(at("other"), "pread64", 64, (4, 0, 256));
        assert_eq!(of(at("other"), "write", 2, (6, 0, 12)), text("worker"));
        assert_eq!(groups(&record).len(), 5);
        assert!(traced.stderr().contains("512 … 1,023"), "{}", traced.stderr());
    });
}

#[test]
fn groups_have_all_calls_that_are_counted() {
    each_observer(|observer| {
        let script = "cat /etc/hostname /nonexistent; echo | cat";
        for by in ["call", "errno,duration", "image,pid,thread", "cgroup,fd", "path,threadname"] {
            let record = traced(observer, &["--by", by], &["sh", "-c", script]).record();
            let calls: u64 = groups(&record).values().map(|sums| sums.0).sum();
            assert_eq!(calls, total(&record), "{by}: {:#?}", record.by);
            let errors: u64 = groups(&record).values().map(|sums| sums.1).sum();
            assert_eq!(errors, record.calls.iter().map(|row| row.errors).sum::<u64>(), "{by}");
            let bytes: u64 = groups(&record).values().map(|sums| sums.2).sum();
            assert_eq!(bytes, record.calls.iter().map(|row| row.bytes).sum::<u64>(), "{by}");
            let by = record.by.as_ref().unwrap();
            assert!(by.rows.iter().all(|row| row.max_ns <= row.wall_ns), "{by:#?}");
            let in_flight: u64 = record.calls.iter().map(|row| row.in_flight).sum();
            assert!(in_flight > 0, "exit_group is counted without a condition");
        }
    });
}

#[test]
fn a_call_of_several_groups_is_in_each() {
    each_observer(|observer| {
        let options = ["--by", "group", "--where", "call == \"execve\""];
        let record = traced(observer, &options, &["true"]).record();
        let found = groups(&record).into_iter().map(|(key, sums)| (key, sums.0));
        let expected = [(vec![text("%file")], 1), (vec![text("%process")], 1)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    });
}

#[test]
fn groups_without_room_are_said_to_be_lost() {
    each_observer(|observer| {
        let script = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \
                      test -e /nowhere/$n; done";
        let options = ["--by", "path", "--where", "path == \"/nowhere/*\"", "--max-rows", "12"];
        let traced = traced(observer, &options, &["sh", "-c", script]);
        let record = traced.record();
        let by = record.by.as_ref().unwrap();
        let kept: u64 = by.rows.iter().map(|row| row.calls).sum();
        assert!(by.rows.len() <= 13 && kept + by.lost_calls == 20, "{by:#?}");
        let unnamed = by.rows.iter().any(|row| row.key == [text("?")]);
        assert!(by.lost_calls > 0 || unnamed, "{by:#?}");
    });
}

#[test]
fn what_is_no_variable_is_refused_with_those_there_are() {
    for (by, said) in [
        ("byte", "there are call, group, fd"),
        ("call,call", "twice"),
        ("call,fd,path,errno,bytes", "by 4 at most"),
    ] {
        let traced = traced("ptrace", &["--by", by], &["true"]);
        assert_eq!(traced.code(), 2);
        assert!(traced.stderr().contains(said), "{}", traced.stderr());
    }
}

#[test]
fn a_call_for_which_it_divides_by_zero_is_left_out_and_counted() {
    each_observer(|observer| {
        let script = "echo 12345; echo 123; echo 12345";
        let condition = "call == \"write\" && 100 / (bytes - 6) < 0";
        let traced = traced(observer, &["--where", condition], &["sh", "-c", script]);
        let record = traced.record();
        assert_eq!((total(&record), record.observer.divided_by_zero), (1, 2));
        assert!(traced.stderr().contains("2 calls were left out"), "{}", traced.stderr());
    });
}

#[test]
fn calls_that_do_not_return_are_counted_where_their_name_decides() {
    each_observer(|observer| {
        let open = |condition: &str| {
            let record = traced(observer, &["--where", condition], &["true"]).record();
            record.calls.iter().map(|row| row.in_flight).sum::<u64>()
        };
        assert_eq!(open("call == \"exit_group\""), 1);
        assert_eq!(open("group == \"process\" && call != \"execve\""), 1);
        assert_eq!(open("pid == tid"), 0);
        assert_eq!(open("errno == 0"), 0);
    });
}

#[test]
fn a_mistake_is_shown_at_its_place_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("ran");
    for (condition, lines) in [
        (
            "call == \"read\" && byte < 512",
            "iotomy: --where: unknown variable `byte`\n    call == \"read\" && byte < 512\n    \
             \u{20}                 ^^^^ did you mean `bytes`?\n",
        ),
        ("errno == \"ENOENT\"", "a number and a string"),
        ("fd = 3", "compare by =="),
        ("bytes < 5 &&", "expected a value"),
        ("bytes \u{1b}[2J", "no meaning here"),
        ("call == \"a[\"", "`[` without `]`"),
        ("bytes / 0", "division by zero"),
        ("", "expected a value"),
    ] {
        let touch = ["touch", mark.to_str().unwrap()];
        let traced = traced("ptrace", &["--where", condition], &touch);
        assert_eq!(traced.code(), 2, "{condition}");
        let text = traced.stderr();
        assert!(text.contains(lines) && !text.contains('\u{1b}'), "{text}");
        assert!(!mark.exists(), "{condition}");
    }
}

#[test]
fn a_condition_of_every_size_is_taken() {
    if !bpf() {
        return;
    }
    let terms = |count: i32| {
        let terms: Vec<String> = (0..count)
            .map(|term| format!("bytes * {term} + errno / (duration + 1) == {term}000000007"))
            .collect();
        format!("call == \"write\" && ({} || bytes == 6)", terms.join(" || "))
    };
    for count in [1, 20, 80] {
        let record =
            traced("bpf", &["--where", &terms(count)], &["sh", "-c", "echo 12345; echo 1"])
                .record();
        assert_eq!(total(&record), 1, "{count}");
    }
    let traced = traced("bpf", &["--where", &terms(250)], &["true"]);
    assert_eq!(traced.code(), 2);
    assert!(traced.stderr().contains("of at most 2040"), "{}", traced.stderr());
    let names: Vec<String> = (0..60).map(|name| format!("path == \"*/{name}/*[a-z]?\"")).collect();
    let all = names.join(" || ") + " || path == \"/etc/hos*\" && call == \"openat\"";
    let record = support::traced("bpf", &["--where", &all], &["cat", "/etc/hostname"]).record();
    assert_eq!(total(&record), 1, "{:?}", record.calls);
}

#[test]
fn every_table_has_just_the_calls_that_all_filters_let_pass() {
    let filters: [&[&str]; 4] = [
        &["--call", "read"],
        &["--where", "call == \"read\""],
        &["--call", "read,close", "--where", "call != \"close\" && errno == 0"],
        // Of calls without a descriptor it would divide by zero.
        &["--call", "read", "--where", "1 / (fd + 1) >= 0"],
    ];
    let script = "cat /etc/passwd | cat >/dev/null; true";
    let tables = ["--by", "call", "--files", "--peers", "--threads", "--slowest", "50"];
    each_observer(|observer| {
        for filter in filters {
            let of = format!("{observer} {filter:?}");
            let options = [filter, &tables].concat();
            let record = traced(observer, &options, &["sh", "-c", script]).record();
            let bytes: u64 = record.calls.iter().map(|row| row.bytes).sum();
            let calls = total(&record);
            assert!(record.calls.iter().all(|row| row.syscall == "read") && calls > 2, "{of}");
            let by = record.by.as_ref().unwrap();
            assert_eq!(by.rows.iter().map(|row| row.calls).sum::<u64>(), calls, "{of}");
            let sum = |of: fn(&FileUse) -> u64| record.files.iter().map(of).sum::<u64>();
            assert_eq!((sum(|f| f.read_calls), sum(|f| f.read_bytes)), (calls, bytes), "{of}");
            assert_eq!((sum(|f| f.write_calls), sum(|f| f.map_calls)), (0, 0), "{of}");
            assert_eq!(record.threads.iter().map(|row| row.calls).sum::<u64>(), calls, "{of}");
            assert!(record.slowest.iter().all(|call| call.syscall == "read"), "{of}");
            assert_eq!(record.observer.divided_by_zero, 0, "{of}");
        }
    });
}

#[test]
fn a_condition_may_begin_with_a_sign() {
    each_observer(|observer| {
        let options = ["--where", "-fd == -1"];
        let record = traced(observer, &options, &["sh", "-c", "echo x"]).record();
        assert!(record.calls.iter().any(|row| row.syscall == "write"), "{:?}", record.calls);
    });
}
