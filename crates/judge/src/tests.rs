//! Every rule at its edge: what it must say, and the run next to it of which it must not.

mod anatomy;
mod copy;
mod race;

use std::collections::BTreeMap;

use iotomy_record::{
    Anatomy, Attribution, Call, Comparison, Contender, CopyPart, CopyPlan, CopyRun, Dissected,
    Exit, FileKind, FileUse, Harness, Layer, LedgerRow, Limit, Limits, Machine, Metric,
    ObserverUse, Plan, Process, Race, RaceVerdict, Run, Sampling, Spread, Trace, Verdict, View,
};

use crate::FINDINGS;

const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;

fn machine() -> Machine {
    Machine {
        kernel: "6.1".into(),
        cpu: "a CPU".into(),
        cpus: 2,
        memory_bytes: 1 << 34,
        virtualization: "none".into(),
        mitigations: "none".into(),
        clock: "tsc".into(),
    }
}

/// Memory is read at 20 GB/s and copied at 10; a call takes 100 ns.
fn limits() -> Limits {
    let limit = |name: &str, unit: &str, value| Limit {
        name: name.into(),
        unit: unit.into(),
        value: Some(value),
        spread: Some(0.0),
        method: "by hand".into(),
        skipped: None,
        measured: None,
        volume: None,
    };
    Limits {
        schema: Limits::SCHEMA.into(),
        started: "2026-01-01T00:00:00.000Z".into(),
        machine: machine(),
        limits: vec![
            limit("memory-read-all", "bytes/s", 20e9),
            limit("memory-copy-all", "bytes/s", 10e9),
            limit("syscall", "ns", 100.0),
        ],
    }
}

/// A run of one program, `prog`, that did nothing in 100 ms.
fn trace() -> Trace {
    Trace {
        schema: Trace::SCHEMA.into(),
        started: "2026-01-01T00:00:00.000Z".into(),
        command: vec!["prog".into()],
        wall_ns: 100 * MS,
        exit: Some(Exit::Code(0)),
        machine: machine(),
        observer: ObserverUse {
            name: "bpf".into(),
            cost_ns_per_call: 200.0,
            lost_events: 0,
            incomplete_calls: 0,
            lost_files: 0,
            times_inflated: false,
            startup_ns: 0,
        },
        processes: vec![Process {
            pid: 1,
            exec: "prog".into(),
            minor_faults: 100,
            ..Process::default()
        }],
        calls: Vec::new(),
        files: Vec::new(),
        ledger: vec![LedgerRow {
            pid: 1,
            exec: "prog".into(),
            thread_ns: 100 * MS,
            ..LedgerRow::default()
        }],
        findings: Vec::new(),
        still_running: Vec::new(),
        view: View::default(),
    }
}

fn call(name: &str, calls: u64) -> Call {
    Call { pid: 1, exec: "prog".into(), syscall: name.into(), calls, ..Call::default() }
}

fn moved(name: &str, calls: u64, bytes: u64) -> Call {
    Call { bytes, ..call(name, calls) }
}

fn file(kind: FileKind, path: &str) -> FileUse {
    FileUse { pid: 1, exec: "prog".into(), kind, path: path.into(), ..FileUse::default() }
}

/// A source on ext4, all of it stored and cached.
fn source(bytes: u64, calls: u64) -> FileUse {
    FileUse {
        read_calls: calls,
        read_bytes: bytes,
        file_system: Some("ext4".into()),
        size_bytes: Some(bytes),
        allocated_bytes: Some(bytes),
        cached_bytes: Some(bytes),
        ..file(FileKind::File, "/data/f")
    }
}

fn sink(kind: FileKind, path: &str, bytes: u64, calls: u64) -> FileUse {
    FileUse { write_calls: calls, write_bytes: bytes, ..file(kind, path) }
}

/// What is found in a run with these calls and files.
fn found(calls: Vec<Call>, files: Vec<FileUse>) -> Vec<(String, String)> {
    judged(Trace { calls, files, ..trace() })
}

fn judged(trace: Trace) -> Vec<(String, String)> {
    let limits = limits();
    let findings = crate::trace(&trace, Some(&limits)).findings;
    findings.into_iter().map(|found| (found.id, found.text)).collect()
}

fn ids(found: &[(String, String)]) -> Vec<&str> {
    found.iter().map(|(id, _)| id.as_str()).collect()
}

#[test]
fn a_run_that_did_nothing_raises_nothing() {
    assert_eq!(judged(trace()), []);
}

#[test]
fn ids_are_unique_and_in_the_order_of_gravity() {
    let rank = |verdict| match verdict {
        Verdict::Impossible => 0,
        Verdict::Suspect => 1,
        Verdict::Advice => 2,
        Verdict::Note => 3,
    };
    let ranks: Vec<u8> = FINDINGS.iter().map(|declared| rank(declared.verdict)).collect();
    assert!(ranks.is_sorted(), "{ranks:?}");
    let mut ids: Vec<&str> = FINDINGS.iter().map(|declared| declared.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), FINDINGS.len());
}

#[test]
fn no_file_reads_faster_than_memory() {
    // 2,300 MB in 100 ms are 23 GB/s; a tenth above the limit of 20 is let pass.
    let read = |mega: u64| found(vec![], vec![source(mega * 1_000_000, 100)]);
    assert_eq!(ids(&read(2_150)), ["page-cache"]);
    let found = read(2_300);
    assert_eq!(ids(&found), ["impossible-rate", "page-cache"]);
    assert!(found[0].1.contains("23 GB/s"), "{found:?}");
    assert!(found[0].1.contains("Why is not known"), "{found:?}");
}

#[test]
fn a_small_file_read_over_and_over_may_beat_memory() {
    let again = FileUse { size_bytes: Some(MIB), ..source(4_000 * MIB, 4_000) };
    assert!(!ids(&found(vec![], vec![again])).contains(&"impossible-rate"));
}

#[test]
fn a_mapping_handed_to_the_null_device_is_impossible_for_a_known_cause() {
    let mapped = FileUse {
        map_calls: 128,
        mapped_bytes: 4_000 * MIB,
        read_calls: 0,
        read_bytes: 0,
        ..source(4_000 * MIB, 0)
    };
    let null = sink(FileKind::Char, "/dev/null", 4_000 * MIB, 128);
    let found = found(vec![moved("write", 128, 4_000 * MIB)], vec![mapped, null]);
    assert_eq!(ids(&found), ["impossible-rate", "mapped-untouched", "null-sink"]);
    assert!(found[0].1.contains("without being read"), "{found:?}");
    assert!(found[0].1.contains("/dev/null, which looks at none"), "{found:?}");
    assert!(found[1].1.contains("1,600 of 1,024,000 pages"), "{found:?}");
}

#[test]
fn a_mapping_whose_pages_were_touched_was_read() {
    let mapped =
        FileUse { map_calls: 1, mapped_bytes: 4 * MIB, read_bytes: 0, ..source(4 * MIB, 0) };
    let target = sink(FileKind::File, "/data/g", 4 * MIB, 1);
    let mut run = Trace { files: vec![mapped, target], ..trace() };
    run.processes[0].minor_faults = 10;
    assert!(ids(&judged(run.clone())).contains(&"mapped-untouched"));
    run.processes[0].minor_faults = 40;
    assert!(!ids(&judged(run.clone())).contains(&"mapped-untouched"));
    // What a loader maps is touched as it is called.
    run.processes[0].minor_faults = 10;
    run.files[0].path = "/usr/lib/libpython3.11.so.1.0".into();
    assert!(!ids(&judged(run)).contains(&"mapped-untouched"));
}

#[test]
fn without_limits_nothing_is_called_impossible_and_what_is_missing_is_said() {
    let run = Trace { files: vec![source(9_000 * MIB, 100)], ..trace() };
    let judgement = crate::trace(&run, None);
    assert!(judgement.findings.iter().all(|found| found.verdict != Verdict::Impossible));
    assert!(judgement.missing.contains("memory-copy-all"), "{:?}", judgement.missing);
    let slow = Trace { files: vec![source(50 * MIB, 100)], ..trace() };
    assert!(crate::trace(&slow, None).missing.is_empty());
}

#[test]
fn holes_are_told_from_what_is_stored_and_only_where_files_do_not_shrink() {
    let sparse = |on: &str, stored| FileUse {
        allocated_bytes: Some(stored),
        file_system: Some(on.into()),
        ..source(64 * MIB, 64)
    };
    let has = |file| ids(&found(vec![], vec![file])).contains(&"holes");
    assert!(has(sparse("ext4", 0)));
    assert!(!has(sparse("ext4", 60 * MIB)));
    assert!(!has(sparse("zfs", 0)));
}

#[test]
fn what_was_cached_and_what_was_not_is_said_of_files_on_devices() {
    let cached = |on: &str, bytes| FileUse {
        cached_bytes: bytes,
        file_system: Some(on.into()),
        ..source(64 * MIB, 64)
    };
    let text = |file| found(vec![], vec![file]).first().map(|found| found.1.clone());
    assert!(text(cached("ext4", Some(64 * MIB))).unwrap().contains("no device was read"));
    assert!(text(cached("ext4", Some(MIB))).unwrap().contains("read came from the device"));
    assert_eq!(text(cached("ext4", Some(50 * MIB))), None);
    assert_eq!(text(cached("tmpfs", Some(64 * MIB))), None);
    assert_eq!(text(cached("ext4", None)), None);
    // What is not stored comes from no device.
    let sparse = FileUse { allocated_bytes: Some(0), ..cached("ext4", Some(0)) };
    assert!(text(sparse).unwrap().contains("has holes"));
}

#[test]
fn what_is_in_memory_only_is_still_dirty() {
    let written =
        |dirty| FileUse { dirty_bytes: dirty, ..sink(FileKind::File, "/data/g", 64 * MIB, 64) };
    let text = |dirty| found(vec![], vec![written(dirty)]).first().map(|found| found.1.clone());
    assert!(text(Some(64 * MIB)).unwrap().contains("no sync was called"));
    assert_eq!(text(Some(MIB)), None);
    assert_eq!(text(None), None);
}

#[test]
fn references_passed_on_are_no_copies() {
    assert_eq!(ids(&found(vec![moved("splice", 16, 16 * MIB)], vec![])), ["by-reference"]);
    assert_eq!(found(vec![moved("splice", 16, MIB / 2)], vec![]), []);
}

#[test]
fn errors_are_no_work() {
    let failing = |calls, errors| Call {
        errors,
        error_kinds: BTreeMap::from([("EBADF".to_owned(), errors)]),
        ..call("write", calls)
    };
    let found_ = found(vec![failing(2_000, 1_500)], vec![]);
    assert_eq!(ids(&found_), ["errors-as-work"]);
    assert!(found_[0].1.contains("EBADF"), "{found_:?}");
    assert_eq!(found(vec![failing(2_000, 900)], vec![]), []);
    assert_eq!(found(vec![failing(500, 500)], vec![]), []);
    // Whoever reads until there is no more does nothing in vain.
    let drained = Call {
        errors: 1_500,
        error_kinds: BTreeMap::from([("EAGAIN".to_owned(), 1_500)]),
        ..call("read", 2_000)
    };
    assert_eq!(found(vec![drained], vec![]), []);
}

#[test]
fn small_requests_are_told_where_larger_ones_would_save_something() {
    // 64 MiB by 512 bytes: 131,072 calls of 100 ns are 13 of 100 ms.
    let reads = |size: u64| vec![source(64 * MIB, 64 * MIB / size)];
    let found_ = found(vec![], reads(512));
    assert_eq!(ids(&found_), ["small-requests", "page-cache"]);
    assert!(found_[0].1.contains("13.1 ms"), "{found_:?}");
    assert_eq!(ids(&found(vec![], reads(65_536))), ["page-cache"]);
    // 8,192 calls of 100 ns are 0.8 of 100 ms.
    assert_eq!(ids(&found(vec![], reads(8_192))), ["page-cache"]);
    // Whoever seeks between reads does not read in sequence.
    assert_eq!(ids(&found(vec![call("lseek", 100_000)], reads(512))), ["page-cache"]);
    // On a busy machine they are worth as much: of 2 s the program had a CPU for 100 ms.
    let mut busy = Trace { files: reads(512), wall_ns: 2_000 * MS, ..trace() };
    assert_eq!(ids(&judged(busy.clone())), ["page-cache"]);
    busy.ledger[0].thread_ns = 2_000 * MS;
    busy.ledger[0].runnable_ns = 1_900 * MS;
    assert_eq!(ids(&judged(busy)), ["small-requests", "page-cache"]);
}

#[test]
fn a_relay_is_shown_the_line_that_does_without() {
    let copy = |from: &str, written| {
        let mut from_file = source(64 * MIB, 512);
        from_file.path = from.to_owned();
        let calls = vec![moved("read", 513, 64 * MIB), moved("write", 512, written)];
        let to = sink(FileKind::Pipe, "pipe:[7]", written, 512);
        let run = Trace { calls, files: vec![from_file, to], ..trace() };
        crate::trace(&run, Some(&limits())).findings
    };
    let advice = |from, written| {
        copy(from, written).into_iter().find(|found| found.id == "relay").and_then(|f| f.advice)
    };
    assert_eq!(advice("/data/f", 64 * MIB).as_deref(), Some("iotomy copy /data/f -"));
    assert_eq!(advice("/a b/it's", 64 * MIB).as_deref(), Some("iotomy copy '/a b/it'\\''s' -"));
    assert_eq!(advice("/data/f", 32 * MIB), None);
    assert_eq!(advice("/data/\u{1b}[2J", 64 * MIB), None);
}

#[test]
fn waiting_calls_are_judged_by_what_they_asked_and_found() {
    let poll =
        |asked, ready| Call { asked: Some(asked), ready: Some(ready), ..call("poll", 1_000) };
    assert_eq!(ids(&found(vec![poll(1_000_000, 1_000)], vec![])), ["few-ready"]);
    assert_eq!(found(vec![poll(1_000_000, 500_000)], vec![]), []);
    assert_eq!(found(vec![poll(8_000, 100)], vec![]), []);
    let wait = Call { ready: Some(10_000), ..call("epoll_wait", 10_000) };
    assert_eq!(
        ids(&found(vec![call("epoll_ctl", 10_000), wait.clone()], vec![])),
        ["ctl-per-event"]
    );
    assert_eq!(found(vec![call("epoll_ctl", 2_000), wait.clone()], vec![]), []);
    // A connection is added once, and removed once.
    let accepted = vec![call("epoll_ctl", 10_000), call("accept4", 4_900), wait];
    assert_eq!(found(accepted, vec![]), []);
}

#[test]
fn accepts_that_found_nothing_in_several_processes_are_a_herd() {
    let accept = |pid, vain| Call {
        pid,
        errors: vain,
        error_kinds: BTreeMap::from([("EAGAIN".to_owned(), vain)]),
        ..call("accept4", 200)
    };
    assert_eq!(ids(&found(vec![accept(1, 150), accept(2, 150)], vec![])), ["herd"]);
    // Each its own connections, and once more to know that there is no other.
    assert_eq!(found(vec![accept(1, 100), accept(2, 100)], vec![]), []);
    assert_eq!(found(vec![accept(1, 150)], vec![]), []);
    assert_eq!(found(vec![accept(1, 60), accept(2, 60)], vec![]), []);
}

#[test]
fn syncs_and_stats_are_held_against_what_they_are_for() {
    let synced = |syncs| found(vec![call("fsync", syncs), call("write", 100)], vec![]);
    assert_eq!(ids(&synced(100)), ["sync-per-write"]);
    assert_eq!(synced(40), []);
    let asking = |asked| found(vec![call("newfstatat", asked), call("openat", 2_000)], vec![]);
    assert_eq!(ids(&asking(3_000)), ["stat-storm"]);
    assert_eq!(asking(1_500), []);
}

#[test]
fn a_run_that_slept_is_told_on_what_but_not_of_its_children() {
    let slept = |name: &str, ms: u64| {
        found(vec![Call { blocked_ns: Some(ms * MS), ..call(name, 1) }], vec![])
    };
    let found_ = slept("clock_nanosleep", 90);
    assert_eq!(ids(&found_), ["blocked-on"]);
    assert!(found_[0].1.contains("90.0 %") && found_[0].1.contains("clock_nanosleep 90 ms"));
    assert_eq!(slept("clock_nanosleep", 40), []);
    assert_eq!(slept("wait4", 90), []);
}

#[test]
fn the_catalogue_has_every_finding_as_it_is_declared() {
    let guide = include_str!("../../../docs/findings.md");
    let mut at = 0;
    for declared in FINDINGS {
        let verdict = format!("{:?}", declared.verdict).to_lowercase();
        let (id, summary, description) = (declared.id, declared.summary, declared.description);
        let section = format!("## {id}\n\n*{verdict}*: {summary}.\n\n{description}\n");
        let found = guide[at..].find(&section);
        assert!(found.is_some(), "docs/findings.md has not, or not in its place:\n{section}");
        at += found.unwrap();
    }
    assert_eq!(guide.matches("\n## ").count(), FINDINGS.len());
}
