//! The last stretch of a watch (`--ring`).

use crate::support;

use std::path::Path;
use std::process::Output;

use iotomy_record::Trace;
use iotomy_record::store::{Record, parse_record};
use support::{Need, bpf, doubled_until, each_observer, has, iotomy, skip, text};

/// 100 calls, a long rest, and 50 others.
const TWO_PARTS: &str = "for (1..100) { rmdir '/nope' } select undef, undef, undef, shift; \
                         for (1..50) { chdir '/nope' } exit 3";

fn record(path: &Path) -> Trace {
    match parse_record(&std::fs::read(path).unwrap()).unwrap() {
        Record::Trace(record) => *record,
        other => panic!("{other:?}"),
    }
}

fn calls(record: &Trace, name: &str) -> u64 {
    record.calls.iter().filter(|row| row.syscall == name).map(|row| row.calls).sum()
}

#[test]
fn the_record_is_of_the_last_stretch() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ring.json");
        let json = file.to_str().unwrap();
        let words = ["trace", "--observer", observer, "--ring", "1", "--json", json];
        // Where snapshots were late, it begins long before the stretch that was asked for.
        let is_of_the_second = |(record, _): &(Trace, Output)| calls(record, "rmdir") == 0;
        let (record, output) = doubled_until(4, is_of_the_second, |seconds| {
            let command = ["--", "perl", "-e", TWO_PARTS, &seconds.to_string()];
            let output = iotomy(&[&words[..], &command].concat()).output().unwrap();
            assert_eq!(output.status.code(), Some(3));
            let record = record(&file);
            let ring = record.ring.unwrap();
            assert!(ring.start_ns + record.wall_ns >= u64::from(seconds) * 1_000_000_000);
            (record, output)
        });
        let ring = record.ring.unwrap();
        assert_eq!(ring.asked_ns, 1_000_000_000);
        assert!(record.wall_ns >= ring.asked_ns, "{} of {ring:?}", record.wall_ns);
        assert_eq!(calls(&record, "chdir"), 50);
        for call in &record.calls {
            assert_eq!(call.wall_times.total(), call.calls, "{call:?}");
        }
        let stderr = text(&output.stderr[..]);
        assert!(stderr.contains("the last ") && stderr.contains("chdir"), "{stderr}");
        assert!(!stderr.contains("rmdir"), "{stderr}");
    });
}

#[test]
fn what_came_before_the_call_that_ended_the_watch_is_kept() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ring.json");
        let json = file.to_str().unwrap();
        let script = "for (1..40) { rmdir '/nope'; select undef, undef, undef, 0.02 } \
                      for (1..7) { chdir '/nope' } rmdir '/etc/hostname/x'; \
                      for (1..9) { chdir '/nope' }";
        let words = ["trace", "--observer", observer, "--ring", "60", "--json", json];
        let rest = ["--until", "errno == ENOTDIR", "--", "perl", "-e", script];
        let output = iotomy(&[&words[..], &rest].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        let record = record(&file);
        // The watch was shorter than the stretch: it is all there, and nothing after the call.
        assert_eq!(record.ring.unwrap().start_ns, 0);
        assert_eq!((calls(&record, "rmdir"), calls(&record, "chdir")), (41, 7));
        let end = record.ended_by.unwrap();
        assert_eq!(end.call.path.as_deref(), Some("/etc/hostname/x"));
        assert!(end.call.start_ns + end.call.wall_ns <= record.wall_ns, "{end:?}");
    });
}

#[test]
fn the_slowest_calls_of_the_stretch_are_kept_whole() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ring.json");
        let json = file.to_str().unwrap();
        // Over many snapshots, each of which takes those that came since the one before.
        let script = "for (1..15) { rmdir '/etc/hostname/x'; select undef, undef, undef, 0.1 }";
        let words = ["trace", "--observer", observer, "--ring", "1", "--slowest", "5"];
        let rest = ["--json", json, "--", "perl", "-e", script];
        let output = iotomy(&[&words[..], &rest].concat()).output().unwrap();
        let stderr = text(&output.stderr[..]);
        assert!(output.status.success() && stderr.contains("slowest call"), "{stderr}");
        let record = record(&file);
        let calls = &record.slowest;
        assert!((2..=5).contains(&calls.len()), "{calls:?}");
        assert!(calls.is_sorted_by_key(|call| std::cmp::Reverse(call.wall_ns)), "{calls:?}");
        let mut starts: Vec<u64> = calls.iter().map(|call| call.start_ns).collect();
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts.len(), calls.len(), "each once: {calls:?}");
        let ring = record.ring.unwrap();
        for call in calls {
            assert_eq!((&*call.exec, &*call.syscall), ("perl", "pselect6"), "{call:?}");
            assert!(call.start_ns + call.wall_ns > ring.start_ns, "{call:?} {ring:?}");
        }
    });
}

#[test]
fn processes_that_ended_are_in_the_stretch_in_which_they_did() {
    if !bpf() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ring.json");
    let json = file.to_str().unwrap();
    // More than are collected at a time, so that images are forgotten meanwhile.
    let of_last = |seconds: &str, number: u32| {
        let script = format!(
            "i=0; while [ $i -lt {number} ]; do rmdir /nope/nope 2> /dev/null; i=$((i + 1)); done"
        );
        let words = ["trace", "--observer", "bpf", "--ring", seconds, "--json", json, "--"];
        let output = iotomy(&[&words[..], &["sh", "-c", &script]].concat()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr[..]));
        record(&file)
    };
    // As long as the ring is, snapshots are a minute apart: this one tells that none is lost.
    assert_eq!(calls(&of_last("600", 600), "rmdir"), 600);
    let is_a_part =
        |(record, number): &(Trace, u32)| (1..u64::from(*number)).contains(&calls(record, "rmdir"));
    let (record, _) = doubled_until(600, is_a_part, |number| {
        let record = of_last("1", number);
        assert!(calls(&record, "rmdir") <= u64::from(number));
        (record, number)
    });
    let unknown = record.calls.iter().filter(|call| call.exec == "?").count();
    assert_eq!(unknown, 0, "{:?}", record.calls);
}

#[test]
fn what_is_of_the_whole_watch_is_refused() {
    for option in [&["-i", "1"][..], &["--live"], &["--paths"], &["--threads"], &["--files"]] {
        let words = [&["trace", "--ring", "5"], option, &["true"]].concat();
        let output = iotomy(&words).output().unwrap();
        let stderr = text(&output.stderr[..]);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(
            stderr.contains("--ring") && stderr.contains(option[0].trim_matches('-')),
            "{stderr}"
        );
    }
}

#[test]
fn the_ring_operations_of_the_stretch_are_kept() {
    if !bpf() || !has("fio") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, json) = (format!("--filename={}", path("data")), path("ring.json"));
    let fio =
        ["fio", "--name=a", "--ioengine=io_uring", "--size=1M", "--bs=16k", "--rw=read", &file];
    let words = ["trace", "--observer", "bpf", "--ring", "1000", "--json", &json, "--"];
    let output = iotomy(&[&words[..], &fio].concat()).output().unwrap();
    let stderr = text(&output.stderr[..]);
    if output.status.code() != Some(0) {
        return skip(Need::IoUring, &format!("fio: {stderr}"));
    }
    let record = record(Path::new(&json));
    if record.observer.sees_rings != Some(true) {
        return skip(Need::IoUring, "this kernel does not have io_uring's tracepoints");
    }
    let reads = record.ring_operations.iter().filter(|row| row.op == "read");
    let sums = reads.fold((0, 0, 0), |sum, row| {
        (sum.0 + row.completed, sum.1 + row.bytes, sum.2 + row.in_flight)
    });
    assert_eq!((sums, record.observer.lost_requests), ((64, 1 << 20, 0), 0), "{record:?}");
    assert!(stderr.contains("ring operation ") && !stderr.contains("not watched"), "{stderr}");
}
