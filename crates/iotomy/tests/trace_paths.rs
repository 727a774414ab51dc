//! The paths that calls are given, by outcome.

use crate::support;

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;

use iotomy_record::{Call, Trace};
use iotomy_sys::syscalls;
use support::{Traced, Tracing, bpf, each_observer, has, traced};

/// Calls by their name, whether it is their second path, the error, and the path.
fn paths(record: &Trace) -> BTreeMap<(&str, bool, &str, &str), u64> {
    let mut paths = BTreeMap::new();
    for row in &record.paths {
        let path = row.path.as_deref().unwrap_or("?");
        // Each run has its own.
        let path = if path.starts_with("pipe:") { "pipe" } else { path };
        let key = (row.syscall.as_str(), row.second, row.error.as_deref().unwrap_or("ok"), path);
        *paths.entry(key).or_default() += row.calls;
    }
    paths
}

/// Makes calls with paths of every kind.
const CALLS: &str = r#"
import os
base = os.getcwd()
for n in range(5):
    try: os.open("nowhere/%d" % (n % 2), os.O_RDONLY)
    except OSError: pass
os.mkdir("sub")
open("sub/a", "w").close()
os.rename("sub/a", base + "/sub/b")
os.symlink("target", "sub/link")
os.chdir("./sub/../sub")
os.stat("b")
d = os.open(base, os.O_RDONLY)
os.stat("sub/b", dir_fd=d)
os.unlink("link")
os.chdir("/")
try: os.rmdir("a" * 3000)
except OSError: pass
try: os.rmdir(base + "/sub\n/\u00e4")
except OSError: pass
"#;

fn python(observer: &str, options: &[&str], folder: &std::path::Path) -> Traced {
    let options: Vec<&str> = ["--paths"].iter().chain(options).copied().collect();
    let mut tracing = Tracing::new(observer, &options, &["python3", "-c", CALLS]);
    tracing.command.current_dir(folder);
    let traced = tracing.run();
    assert_eq!(traced.code(), 0, "{}", traced.stderr());
    traced
}

#[test]
fn calls_are_counted_by_the_paths_they_are_given() {
    if !has("python3") {
        return;
    }
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let traced = python(observer, &[], folder.path());
        let record = traced.record();
        let paths = paths(&record);
        let base = folder.path().canonicalize().unwrap();
        let at = |name: &str| base.join(name).to_str().unwrap().to_owned();
        let calls = |call: &str, second, error: &str, path: &str| {
            paths.get(&(call, second, error, path)).copied().unwrap_or(0)
        };
        assert_eq!(calls("openat", false, "ENOENT", &at("nowhere/0")), 3, "{paths:#?}");
        assert_eq!(calls("openat", false, "ENOENT", &at("nowhere/1")), 2, "{paths:#?}");
        assert_eq!(calls("mkdir", false, "ok", &at("sub")), 1, "{paths:#?}");
        assert_eq!(calls("rename", false, "ok", &at("sub/a")), 1, "{paths:#?}");
        assert_eq!(calls("rename", true, "ok", &at("sub/b")), 1, "{paths:#?}");
        assert_eq!(calls("symlink", false, "ok", &at("sub/link")), 1, "{paths:#?}");
        assert_eq!(calls("chdir", false, "ok", &at("sub")), 1, "{paths:#?}");
        // Relative to the working directory, and to a descriptor.
        let stats = ["stat", "newfstatat", "statx"];
        let asked = stats.iter().map(|call| calls(call, false, "ok", &at("sub/b"))).sum::<u64>();
        assert_eq!(asked, 2, "{paths:#?}");
        assert_eq!(calls("unlink", false, "ok", &at("sub/link")), 1, "{paths:#?}");
        assert_eq!(calls("execve", false, "ok", "?"), 0, "{paths:#?}");
        let programs: u64 =
            paths.iter().filter(|((call, ..), _)| *call == "execve").map(|(_, n)| n).sum();
        assert!(programs > 0, "{paths:#?}");
        // What is too long is cut, and what is strange stays what it is.
        let cut = format!("{}…", "a".repeat(382));
        let rmdir = |path: &str| {
            let of = paths.iter().find(|((call, .., known), _)| *call == "rmdir" && *known == path);
            of.map(|(_, calls)| *calls)
        };
        assert_eq!(rmdir(&format!("/{}", &cut)).or(rmdir(&format!("/a{}", &cut))), Some(1));
        assert_eq!(rmdir(&at("sub\n/ä")), Some(1), "{paths:#?}");
        let text = traced.stderr();
        assert!(text.contains("call, outcome, path"), "{text}");
        assert!(
            !text.contains("sub\n/"),
            "a line break of a path is not one of the report: {text}"
        );
    });
}

#[test]
fn both_observers_see_the_same_paths() {
    if !bpf() || !has("ls") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    symlink("/etc", folder.path().join("link")).unwrap();
    let seen = ["bpf", "ptrace"].map(|observer| {
        let script = "cd link; ls . passwd ../usr nowhere; cd ..; ls";
        let mut tracing = Tracing::new(observer, &["--paths"], &["sh", "-c", script]);
        tracing.command.current_dir(folder.path());
        tracing.run().record()
    });
    let [by_bpf, by_ptrace] = [&seen[0], &seen[1]].map(paths);
    assert_eq!(by_bpf, by_ptrace);
}

#[test]
fn a_table_without_room_says_so() {
    let script = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \
                  test -e /nowhere/$n; done";
    each_observer(|observer| {
        let options = ["--paths", "--call", "%file", "--max-rows", "12"];
        let traced = traced(observer, &options, &["sh", "-c", script]);
        let record = traced.record();
        assert!(record.observer.lost_paths > 0, "{:?}", record.observer);
        assert!(traced.stderr().contains("did not fit"), "{}", traced.stderr());
        let kept: u64 = record.paths.iter().filter(|row| !row.second).map(|row| row.calls).sum();
        let takes_one = |call: &&Call| !syscalls::paths(&call.syscall).is_empty();
        let all: u64 = record.calls.iter().filter(takes_one).map(|call| call.calls).sum();
        if record.observer.lost_events == 0 {
            assert_eq!(kept + record.observer.lost_paths, all);
        }
    });
}

#[test]
fn without_the_option_no_paths_are_kept() {
    each_observer(|observer| {
        let record = traced(observer, &[], &["true"]).record();
        assert_eq!(record.paths, []);
        assert!(!record.view.paths);
    });
}
