//! What is found in real runs: a corpus of commands, each with the findings it must raise, and no
//! others but notes.

use crate::support;

use iotomy_test_requirements::Need;
use std::fs::File;
use std::io::Write;

use iotomy_record::{Finding, Verdict};
use support::caches::{self, FAST, FAST_CALL};
use support::{IOTOMY, Tracing, each_observer};
use tempfile::TempDir;

const MIB: usize = 1 << 20;

/// A folder with a file of 64 MiB, `f`, and one of 64 GiB of which nothing is stored, `vmcore`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut file = File::create(folder.path().join("f")).unwrap();
    // Nothing a file system could leave out.
    let block: Vec<u8> = (0..MIB).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) as u8).collect();
    for _ in 0..64 {
        file.write_all(&block).unwrap();
    }
    file.sync_all().unwrap();
    File::create(folder.path().join("vmcore")).unwrap().set_len((64 << 10) * MIB as u64).unwrap();
    know_limits(&folder, FAST_CALL, FAST);
    folder
}

/// Memory so slow that a busy machine, too, is faster with bytes that nobody reads.
const SLOW: f64 = 5e9;
/// Calls that cost all the time that they are on a CPU.
const SLOW_CALL: f64 = 1e6;

/// Has the folder keep limits that no noise of this machine is in: a call takes so many nanoseconds, and memory
/// moves so many bytes a second.
fn know_limits(folder: &TempDir, call: f64, memory: f64) {
    caches::know_limits(&folder.path().join("cache"), call, memory);
}

/// The findings of a command run by a shell in a folder; `iotomy` in it is the built one.
fn findings(observer: &str, folder: &TempDir, line: &str) -> Vec<Finding> {
    let line = line.replace("iotomy", IOTOMY);
    let mut tracing = Tracing::new(observer, &[], &["sh", "-c", &line]);
    tracing.command.current_dir(folder.path());
    tracing.command.env("XDG_CACHE_HOME", folder.path().join("cache"));
    tracing.run().record().findings
}

/// The ids of all but notes.
fn raised(findings: &[Finding]) -> Vec<&str> {
    let grave = findings.iter().filter(|found| found.verdict != Verdict::Note);
    grave.map(|found| found.id.as_str()).collect()
}

fn has(findings: &[Finding], id: &str) -> bool {
    findings.iter().any(|found| found.id == id)
}

#[test]
fn honest_runs_raise_nothing() {
    each_observer(|observer| {
        let folder = folder();
        let honest = [
            "true",
            "md5sum f",
            "cat f > /dev/null",
            "head -c 1000 f",
            "wc -c < f",
            "dd if=f of=/dev/null bs=1M status=none",
            "ls -l",
            "sort /etc/passwd | uniq -c",
            "grep -c nothing f",
            "sleep 0.1",
            "iotomy copy f g",
            "cat nosuch; true",
            // A shell seeks back on every line of a pipe, in vain.
            "seq 3000 | while read x; do :; done",
            "dd if=f of=/dev/null bs=1M iflag=direct status=none; true",
        ];
        for line in honest {
            let found = findings(observer, &folder, line);
            assert_eq!(raised(&found), [""; 0], "{line} by {observer}: {found:#?}");
        }
    });
}

#[test]
fn what_could_be_done_better_is_advised_with_the_line_that_does() {
    each_observer(|observer| {
        let folder = folder();
        let found = findings(observer, &folder, "cat f | md5sum");
        assert_eq!(raised(&found), ["relay"], "{found:#?}");
        let relay = found.iter().find(|found| found.id == "relay").unwrap();
        let line = format!("iotomy copy {}/f -", folder.path().display());
        assert_eq!(relay.advice.as_deref(), Some(line.as_str()));

        know_limits(&folder, SLOW_CALL, FAST);
        let found = findings(observer, &folder, "dd if=f of=g bs=64 count=131072 status=none");
        // It relays, too, which its user time shows where the machine is fast enough.
        let raised = raised(&found).into_iter().filter(|id| *id != "relay");
        assert_eq!(raised.collect::<Vec<_>>(), ["small-requests"], "{found:#?}");

        let many = "i=0; while [ $i -lt 2000 ]; do [ -e /nosuch ]; i=$((i+1)); done";
        let found = findings(observer, &folder, many);
        assert!(has(&found, "stat-storm"), "{found:#?}");
    });
}

#[test]
fn a_mapping_handed_to_the_null_device_is_impossible_and_says_why() {
    each_observer(|observer| {
        let folder = folder();
        know_limits(&folder, FAST_CALL, SLOW);
        let line = "exec iotomy copy --mover mmap-write vmcore - > /dev/null";
        let found = findings(observer, &folder, line);
        assert!(has(&found, "mapped-untouched") && has(&found, "null-sink"), "{found:#?}");
        if observer != "bpf" {
            // So much slower that the rate may be a possible one.
            return;
        }
        assert_eq!(raised(&found), ["impossible-rate", "mapped-untouched"], "{found:#?}");
        let text = &found[0].text;
        assert!(text.contains("mapped and passed on unread"), "{text}");
        assert!(text.contains("/dev/null, which discards bytes without reading them"), "{text}");
    });
}

#[test]
fn notes_tell_what_the_time_does_not_hold() {
    each_observer(|observer| {
        let folder = folder();
        let note = |line: &str, id: &str| {
            let found = findings(observer, &folder, line);
            assert!(has(&found, id), "{id} of {line} by {observer}: {found:#?}");
        };
        note("cat f > /dev/null", "null-sink");
        note("head -c 64M vmcore > /dev/null", "holes");
        note("iotomy copy --mover splice f - | cat > /dev/null", "by-reference");
    });
}

#[test]
fn a_race_draws_no_ratio_from_what_cannot_be_true() {
    let folder = folder();
    know_limits(&folder, FAST_CALL, SLOW);
    let mut race =
        support::iotomy(&["race", "--runs", "3", "--output", "null", "--max-time", "300"]);
    race.args(["head -c 1M vmcore", &format!("{IOTOMY} copy --mover mmap-write vmcore -")]);
    race.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path().join("cache"));
    let output = race.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.trim_start().starts_with("IMPOSSIBLE  B: 64 GiB went through"), "{text}");
    assert!(text.contains("no ratio is computed"), "{text}");
    assert!(!text.contains("as fast as"), "{text}");
    assert!(!text.contains("× the time of A"), "{text}");
}

#[test]
fn limits_that_are_missed_are_measured_once_and_kept() {
    let folder = folder();
    let caches = tempfile::tempdir().unwrap();
    let kept = || std::fs::read_dir(caches.path().join("iotomy")).map_or(0, Iterator::count);
    let run = || {
        let mut trace = support::iotomy(&["trace", "--", IOTOMY, "copy", "--mover", "mmap-write"]);
        trace.args(["vmcore", "/dev/null"]).current_dir(folder.path());
        trace.env("XDG_CACHE_HOME", caches.path());
        String::from_utf8(trace.output().unwrap().stderr).unwrap()
    };
    assert_eq!(kept(), 0);
    run();
    assert_eq!(kept(), 1);
    let file = std::fs::read_dir(caches.path().join("iotomy")).unwrap().next().unwrap().unwrap();
    let before = std::fs::read(file.path()).unwrap();
    run();
    assert_eq!(std::fs::read(file.path()).unwrap(), before);
}

#[test]
fn threads_that_wait_for_each_other_do_not_wait_for_the_outside() {
    if !support::bpf() {
        return;
    }
    let folder = folder();
    // One of the three computes at any time; the others sleep in pipes for it.
    let line = "head -c 200M /dev/zero | md5sum | cat";
    let found = findings("bpf", &folder, line);
    assert!(!has(&found, "blocked-on"), "{found:#?}");
}

#[test]
fn what_a_file_of_sysfs_returns_is_no_request_and_it_has_no_holes() {
    let types = "/sys/kernel/btf/vmlinux";
    if !std::path::Path::new(types).exists() {
        return support::skip(
            Need::Machine,
            "no file of sysfs that is large enough: the kernel has no BTF",
        );
    }
    each_observer(|observer| {
        let folder = folder();
        let found = findings(observer, &folder, &format!("cat {types} > /dev/null"));
        let fired: Vec<&str> = found.iter().map(|found| found.id.as_str()).collect();
        assert!(!has(&found, "holes") && !has(&found, "small-requests"), "{fired:?}");
    });
}

#[test]
fn what_was_fetched_from_storage_is_counted_by_the_kernel() {
    if !support::bpf() {
        return;
    }
    let folder = folder();
    // Nothing of it is left in the cache, or what is left is told.
    let drop = "sync f; dd if=f iflag=nocache count=0 status=none; exec md5sum f";
    let mut tracing = Tracing::new("bpf", &[], &["sh", "-c", drop]);
    tracing.command.current_dir(folder.path());
    let record = tracing.run().record();
    let file = record.files.iter().find(|file| file.path.ends_with("/f") && file.read_bytes > 0);
    let file = file.unwrap();
    if file.file_system.as_deref() != Some("ext4") {
        return support::skip(
            Need::Machine,
            "the directory of tests is on no ext4, whose reads are counted",
        );
    }
    let fetched = record.processes.iter().map(|image| image.storage_read_bytes);
    let Some(fetched) = fetched.sum::<Option<u64>>() else {
        return support::skip(Need::Machine, "the kernel does not count reads from storage");
    };
    let cached = file.cached_bytes.unwrap();
    assert!(fetched + cached >= 64 * MIB as u64, "{fetched} fetched, {cached} cached");
}

#[test]
fn a_run_that_slept_is_told_on_what() {
    if !support::bpf() {
        return;
    }
    let record = Tracing::new("bpf", &[], &["sleep", "1"]).run().record();
    let queued: u64 = record.ledger.iter().map(|row| row.thread_ns - row.blocked_ns).sum();
    if queued > record.wall_ns / 3 {
        return support::skip(
            Need::Machine,
            "the machine is so busy that the run waited for CPUs as long as it slept",
        );
    }
    let found = record.findings.iter().find(|found| found.id == "blocked-on").unwrap();
    assert!(found.text.contains("clock_nanosleep"), "{}", found.text);
}
