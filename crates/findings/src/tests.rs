//! Every rule at its limit: a run that causes the finding, and the nearest one that must not.

mod anatomy;
mod copy;
mod memory;
mod pipelines;
mod race;
mod ring_bytes;
mod rings;
mod services;
mod waits;

use std::collections::BTreeMap;

use iotomy_record::{
    Anatomy, Attribution, Call, Comparison, CopyPart, CopyPlan, CopyRun, DissectedCall, Exit,
    FileKind, FileUse, Layer, LedgerRow, Limit, Limits, Machine, Metric, ObserverUse, PathUse,
    Process, Race, RaceCommand, RaceVerdict, Run, Sampling, Spread, Trace, Verdict, View,
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
        name: String::new(),
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
            limit("exec", "ns", 1e6),
        ],
    }
}

/// A run of one program, `prog`, that computed for 100 ms and did nothing else.
fn trace() -> Trace {
    Trace {
        schema: Trace::SCHEMA.into(),
        started: "2026-01-01T00:00:00.000Z".into(),
        command: vec!["prog".into()],
        wall_ns: 100 * MS,
        exit: Some(Exit::Code(0)),
        machine: machine(),
        observer: ObserverUse {
            missing: Vec::new(),
            name: "bpf".into(),
            cost_ns_per_call: 200.0,
            cost_ns_low: 0.0,
            cost_ns_high: 0.0,
            lost_events: 0,
            incomplete_calls: 0,
            lost_files: 0,
            lost_paths: 0,
            lost_connections: 0,
            lost_exchanges: 0,
            unclear_connections: 0,
            sees_rings: None,
            lost_requests: 0,
            divided_by_zero: 0,
            end_divided_by_zero: 0,
            calls_left_out: None,
            cost_left_out_ns_low: 0.0,
            cost_left_out_ns_high: 0.0,
            calls_passed: 0,
            unwatched_ns_low: 0.0,
            unwatched_ns_high: 0.0,
            times_inflated: false,
            fallback: None,
            untraced_tasks: 0,
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
        paths: Vec::new(),
        connections: Vec::new(),
        requests: Vec::new(),
        ring_operations: Vec::new(),
        slowest: Vec::new(),
        ended_by: None,
        by: None,
        ledger: vec![LedgerRow {
            pid: 1,
            exec: "prog".into(),
            thread_ns: 100 * MS,
            user_ns: 100 * MS,
            ..LedgerRow::default()
        }],
        interval: None,
        ring: None,
        sample: None,
        cpu_capacity: None,
        threads: Vec::new(),
        findings: Vec::new(),
        still_running: Vec::new(),
        unwatched_children: Vec::new(),
        host_names: BTreeMap::new(),
        targets: Vec::new(),
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
    let file_system = (kind == FileKind::File).then(|| "ext4".into());
    FileUse { write_calls: calls, write_bytes: bytes, file_system, ..file(kind, path) }
}

/// The findings for a run with these calls and files.
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
fn a_watch_without_a_command_has_no_advice_for_a_command() {
    let mapped =
        FileUse { map_calls: 1, mapped_bytes: 400 * MIB, read_bytes: 0, ..source(400 * MIB, 0) };
    let target = sink(FileKind::File, "/data/g", 400 * MIB, 1);
    let mut run = Trace { files: vec![mapped, target], ..trace() };
    run.processes[0].minor_faults = 10;
    let advice = |run: &Trace| {
        let findings = crate::trace(run, None).findings;
        findings.into_iter().find(|found| found.id == "mapped-untouched").unwrap().advice
    };
    assert!(advice(&run).is_some());
    run.command.clear();
    assert_eq!(advice(&run), None);
}

#[test]
fn references_passed_on_are_no_copies() {
    let spliced = found(vec![moved("splice", 16, 16 * MIB)], vec![]);
    assert_eq!(ids(&spliced), ["by-reference"]);
    assert!(spliced[0].1.starts_with("splice moved 16 MiB in total, by references to pages"));
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
    // A refused copy that another call then made was made.
    let copied =
        vec![failing(1_500, 1_500), moved("read", 1_500, MIB), moved("sendto", 1_500, MIB)];
    assert_eq!(found(copied, vec![]), []);
    // Reading until nothing is left is not in vain.
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
    // The return value of a read of a pipe, a small file or a procfs file is not the size that was
    // requested.
    let of = |kind, path, on: &str| FileUse {
        kind,
        file_system: Some(on.into()),
        ..FileUse { path: String::from(path), ..reads(512).remove(0) }
    };
    let ids_of = |file| ids(&found(vec![], vec![file])).join(" ");
    assert_eq!(ids_of(of(FileKind::Pipe, "pipe:[7]", "pipefs")), "");
    assert_eq!(ids_of(of(FileKind::File, "/proc/kallsyms", "proc")), "");
    assert_eq!(ids_of(of(FileKind::File, "/sys/devices/x", "sysfs")), "");
    let again = FileUse { size_bytes: Some(2_000), ..of(FileKind::File, "/etc/passwd", "ext4") };
    assert!(!ids_of(again).contains("small-requests"));
    assert_eq!(ids_of(of(FileKind::Char, "/dev/zero", "devtmpfs")), "small-requests");
    // Those of a copy are named both, the writes first; much fewer ones are not.
    let copied = |writes| {
        let to = FileUse { path: "/data/to".into(), ..sink(FileKind::File, "", 64 * MIB, writes) };
        let mut found = found(vec![], [reads(512), vec![to]].concat());
        found.retain(|(id, _)| id == "small-requests");
        found.remove(0).1
    };
    let both = copied(131_072);
    assert!(both.starts_with("131,072 writes of 512 B in sequence, to /data/to "), "{both}");
    assert!(both.contains("; 131,072 reads of 512 B from "), "{both}");
    assert!(both.ends_with(" cost about as much"), "{both}");
    assert!(!copied(65_536).contains("writes"));
    // A relay of small pieces, or a signal through a pipe, has small writes.
    let pipe = sink(FileKind::Pipe, "pipe:[8]", 64 * MIB, 131_072);
    assert_eq!(ids(&found(vec![], vec![pipe.clone()])), ["small-requests"]);
    let proc = of(FileKind::File, "/proc/kallsyms", "proc");
    assert_eq!(found(vec![], vec![pipe.clone(), proc]), []);
    let own = FileUse { read_calls: 131_072, read_bytes: 64 * MIB, ..pipe };
    assert_eq!(found(vec![], vec![own]), []);
    // A limit measured on a busy machine may exceed the time of the calls.
    let cheap = Call { on_cpu_ns: Some(131_072 * 5), ..moved("read", 131_072, 64 * MIB) };
    assert_eq!(ids(&found(vec![cheap], reads(512))), ["page-cache"]);
    // A program that seeks between reads does not read in sequence.
    assert_eq!(ids(&found(vec![call("lseek", 100_000)], reads(512))), ["page-cache"]);
    // On a busy machine they are worth as much: of 2 s the program had a CPU for 100 ms.
    let mut busy = Trace { files: reads(512), wall_ns: 2_000 * MS, ..trace() };
    busy.ledger[0].user_ns = 2_000 * MS;
    assert_eq!(ids(&judged(busy.clone())), ["page-cache"]);
    busy.ledger[0].user_ns = 100 * MS;
    busy.ledger[0].thread_ns = 2_000 * MS;
    busy.ledger[0].runnable_ns = 1_900 * MS;
    assert_eq!(ids(&judged(busy)), ["small-requests", "page-cache", "cpu-saturation"]);
}

#[test]
fn findings_name_a_program_as_its_user_does() {
    let named = |calls: Vec<Call>, files: Vec<FileUse>, paths: Vec<PathUse>| {
        let mut run = Trace { calls, files, paths, ..trace() };
        run.processes[0].called = "redis-server".into();
        run.ledger[0].stopped_ns = 90 * MS;
        judged(run)
    };
    let waits = Call { ready: Some(4_000), ..call("epoll_wait", 4_000) };
    let path = PathUse {
        pid: 1,
        exec: "prog".into(),
        syscall: "openat".into(),
        path: Some("/etc/x".into()),
        calls: 100_000,
        wall_ns: 90 * MS,
        ..PathUse::default()
    };
    let small = named(vec![], vec![source(64 * MIB, 131_072)], vec![]);
    let again = named(vec![call("epoll_ctl", 9_000), waits], vec![], vec![]);
    let opened = named(vec![], vec![], vec![path]);
    for (found, id) in
        [(&small, "small-requests"), (&again, "ctl-per-event"), (&opened, "opened-again")]
    {
        let text = found.iter().find(|(of, _)| of == id).map(|(_, text)| text.as_str());
        assert!(text.is_some_and(|text| text.contains("redis-server")), "{id}: {found:?}");
        assert!(found.iter().all(|(_, text)| !text.contains("prog ")), "{found:?}");
    }
}

#[test]
fn images_of_one_name_in_one_process_are_judged_apart() {
    let image =
        |image, minor_faults| Process { image, minor_faults, ..trace().processes.swap_remove(0) };
    let file = |image, file| FileUse { image, ..file };
    // The second touched its mapping; the first had no reason to.
    let mapped =
        FileUse { map_calls: 1, mapped_bytes: 400 * MIB, read_bytes: 0, ..source(400 * MIB, 0) };
    let files = vec![file(2, mapped), file(2, sink(FileKind::File, "/data/g", 400 * MIB, 1))];
    let mut run = Trace { processes: vec![image(1, 10), image(2, 100_000)], files, ..trace() };
    assert!(!ids(&judged(run.clone())).contains(&"mapped-untouched"));
    run.processes.swap(0, 1);
    (run.processes[0].image, run.processes[1].image) = (1, 2);
    assert!(ids(&judged(run)).contains(&"mapped-untouched"));
    // One reads, the other writes: no bytes were carried.
    let call = |image, call| Call { image, ..call };
    let carried = |writer| Trace {
        processes: vec![image(1, 10), image(2, 10)],
        calls: vec![
            call(1, moved("read", 513, 64 * MIB)),
            call(writer, moved("write", 512, 64 * MIB)),
        ],
        files: vec![
            file(1, source(64 * MIB, 512)),
            file(writer, sink(FileKind::Pipe, "pipe:[7]", 64 * MIB, 512)),
        ],
        ledger: vec![],
        ..trace()
    };
    assert!(ids(&judged(carried(1))).contains(&"relay"));
    assert!(!ids(&judged(carried(2))).contains(&"relay"));
}

#[test]
fn a_relay_is_shown_the_line_that_does_without() {
    let relayed = |from: &str, written| {
        let mut from_file = source(64 * MIB, 512);
        from_file.path = from.to_owned();
        let calls = vec![moved("read", 513, 64 * MIB), moved("write", 512, written)];
        let to = sink(FileKind::Pipe, "pipe:[7]", written, 512);
        let mut run = Trace { calls, files: vec![from_file, to], ..trace() };
        run.ledger[0].user_ns = MS;
        run.ledger[0].calls_on_cpu_ns = 99 * MS;
        run
    };
    let copy =
        |from: &str, written| crate::trace(&relayed(from, written), Some(&limits())).findings;
    let advice = |from, written| {
        copy(from, written).into_iter().find(|found| found.id == "relay").and_then(|f| f.advice)
    };
    assert_eq!(advice("/data/f", 64 * MIB).as_deref(), Some("iotomy copy /data/f -"));
    assert_eq!(advice("/a b/it's", 64 * MIB).as_deref(), Some("iotomy copy '/a b/it'\\''s' -"));
    assert_eq!(advice("/data/f", 32 * MIB), None);
    assert_eq!(advice("/data/\u{1b}[2J", 64 * MIB), None);
    // tee carries the bytes for its other target.
    let mut twice = relayed("/data/f", 64 * MIB);
    twice.files.push(sink(FileKind::File, "/data/g", 64 * MIB, 512));
    assert!(!ids(&judged(twice)).contains(&"relay"));
    // Reading each byte takes time.
    let mut looked_at = relayed("/data/f", 64 * MIB);
    looked_at.ledger[0].user_ns = 60 * MS;
    assert!(!ids(&judged(looked_at)).contains(&"relay"));
}

#[test]
fn waiting_calls_are_judged_by_what_they_asked_and_found() {
    let poll =
        |asked, ready| Call { asked: Some(asked), ready: Some(ready), ..call("poll", 1_000) };
    assert_eq!(ids(&found(vec![poll(1_000_000, 1_000)], vec![])), ["few-ready"]);
    assert_eq!(found(vec![poll(1_000_000, 500_000)], vec![]), []);
    assert_eq!(found(vec![poll(8_000, 100)], vec![]), []);
    // How many descriptors a select names is not in its highest number.
    let select = Call { asked: Some(1_000_000), ready: Some(1_000), ..call("select", 1_000) };
    assert_eq!(found(vec![select], vec![]), []);
    let wait = Call { ready: Some(10_000), ..call("epoll_wait", 10_000) };
    assert_eq!(
        ids(&found(vec![call("epoll_ctl", 10_000), wait.clone()], vec![])),
        ["ctl-per-event"]
    );
    assert_eq!(found(vec![call("epoll_ctl", 2_000), wait.clone()], vec![]), []);
    // A registration that is refused registers nothing (EPERM of a regular file).
    let refused = Call { errors: 10_000, ..call("epoll_ctl", 10_000) };
    assert_eq!(found(vec![refused, wait.clone()], vec![]), []);
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
    let wait = |ready| Call { ready: Some(ready), ..call("epoll_wait", ready) };
    let woken = vec![accept(1, 150), accept(2, 150), wait(300)];
    assert_eq!(ids(&found(woken, vec![])), ["herd"]);
    // Polling without being woken is no herd.
    assert_eq!(found(vec![accept(1, 150), accept(2, 150), wait(20)], vec![]), []);
    // Each its own connections, and once more to know that there is no other.
    assert_eq!(found(vec![accept(1, 100), accept(2, 100)], vec![]), []);
    assert_eq!(found(vec![accept(1, 100), accept(2, 100), wait(200)], vec![]), []);
    // Half of all, but more than the connections in some of the processes.
    assert_eq!(ids(&found(vec![accept(1, 95), accept(2, 105), wait(200)], vec![])), ["herd"]);
    assert_eq!(found(vec![accept(1, 96), accept(2, 104), wait(200)], vec![]), []);
    assert_eq!(found(vec![accept(1, 150)], vec![]), []);
    assert_eq!(found(vec![accept(1, 60), accept(2, 60)], vec![]), []);
}

#[test]
fn syncs_and_stats_are_held_against_what_they_are_for() {
    let written = |writes| vec![sink(FileKind::File, "/data/log", writes * 4096, writes)];
    let synced = |syncs, ns| {
        let sync = Call { blocked_ns: Some(ns), ..call("fsync", syncs) };
        found(vec![sync, call("write", 100)], written(100))
    };
    assert_eq!(ids(&synced(100, 2 * MS)), ["sync-per-write"]);
    // One for several writes, too, where the run waits for it: a database without transactions.
    assert_eq!(ids(&synced(40, 10 * MS)), ["sync-per-write"]);
    assert_eq!(synced(40, 9 * MS), []);
    assert_eq!(synced(31, 50 * MS), []);
    // A sync of a file in memory waits for nothing; a ring's writes are no calls.
    assert_eq!(synced(100, MS / 2), []);
    let sync = |syncs| Call { blocked_ns: Some(50 * MS), ..call("fsync", syncs) };
    let ring = vec![sync(100), call("write", 100), call("io_uring_enter", 100)];
    assert_eq!(found(ring, written(100)), []);
    // Each of many files is to be on the device, and its name.
    let files: Vec<FileUse> =
        (0..60).map(|n| sink(FileKind::File, &format!("/data/{n}"), 4096, 1)).collect();
    assert_eq!(found(vec![sync(120), call("write", 60)], files.clone()), []);
    assert_eq!(ids(&found(vec![sync(121), call("write", 60)], files)), ["sync-per-write"]);
    let asking = |asked| found(vec![call("newfstatat", asked), call("openat", 2_000)], vec![]);
    assert_eq!(ids(&asking(3_000)), ["stat-storm"]);
    assert_eq!(asking(1_500), []);
    // A walk looks up each entry of its directories once.
    let walk =
        |bytes| found(vec![call("newfstatat", 3_000), moved("getdents64", 20, bytes)], vec![]);
    assert_eq!(walk(3_000 * 32), []);
    assert_eq!(ids(&walk(3_000 * 4)), ["stat-storm"]);
}

#[test]
fn the_share_of_syncs_is_of_the_run_however_many_threads_wait_beside() {
    let text = |blocked_ns, thread_ns| {
        let sync = Call { blocked_ns: Some(blocked_ns), ..call("fsync", 100) };
        let files = vec![sink(FileKind::File, "/data/log", 100 * 4096, 100)];
        let mut run = Trace { calls: vec![sync, call("write", 100)], files, ..trace() };
        run.ledger[0].thread_ns = thread_ns;
        let found = judged(run);
        found.into_iter().find(|(id, _)| id == "sync-per-write").unwrap().1
    };
    let alone = text(16 * MS, 100 * MS);
    assert!(alone.ends_with("blocked in them for 16 ms, 16.0 % of the run's time"), "{alone}");
    assert_eq!(text(16 * MS, 400 * MS), alone, "three shells wait");
    let several = text(250 * MS, 400 * MS);
    assert!(
        several.ends_with("blocked in them for 250 ms in all, in a run of 100 ms"),
        "{several}"
    );
}

#[test]
fn a_storm_of_stats_has_the_paths_that_were_given() {
    let mut run = Trace { calls: vec![call("newfstatat", 3_000)], ..trace() };
    let Call { pid, exec, syscall, .. } = run.calls[0].clone();
    let asked = |path: &str, calls| PathUse {
        path: Some(path.into()),
        calls,
        pid,
        exec: exec.clone(),
        syscall: syscall.clone(),
        ..PathUse::default()
    };
    let advice = |run: &Trace| crate::trace(run, None).findings.remove(0);
    assert!(advice(&run).advice.unwrap().contains("--paths"));
    run.paths = vec![asked("/a", 500), asked("/b", 2_000), asked("/c", 300), asked("/d", 200)];
    // Of another image, and by another call.
    run.paths.push(PathUse { pid: pid + 1, ..asked("/e", 9_000) });
    run.paths.push(PathUse { syscall: "openat".into(), ..asked("/f", 9_000) });
    let found = advice(&run);
    let named = "most often of /b (2,000 times), /a (500 times), /c (300 times)";
    assert!(found.text.ends_with(named), "{}", found.text);
    assert_eq!(
        found.evidence["paths"],
        serde_json::json!([["/b", 2_000], ["/a", 500], ["/c", 300]])
    );
    assert_eq!(found.advice, None);
}

#[test]
fn the_catalogue_has_every_finding_as_it_is_declared() {
    let sections = FINDINGS.iter().flat_map(|declared| {
        let verdict = format!("{:?}", declared.verdict).to_lowercase();
        let summary = format!("*{verdict}*: {}.", declared.summary);
        [format!("## {}", declared.id), summary, declared.description.to_owned()]
    });
    let lines = sections.collect::<Vec<_>>().join("\n\n");
    iotomy_test_requirements::guide::check("docs/findings.md", "findings", &[lines]);
}
