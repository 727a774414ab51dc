//! Findings about servers and their files, each with the nearest run that must not have it.

use iotomy_record::{Socket, Times};

use super::*;

fn has(run: &Trace, id: &str) -> bool {
    ids(&judged(run.clone())).contains(&id)
}

fn socket(remote: &str, reads: u64, writes: u64, bytes: u64) -> FileUse {
    let socket = Socket {
        protocol: "tcp".into(),
        local: Some("127.0.0.1:80".into()),
        remote: Some(remote.into()),
        ..Socket::default()
    };
    FileUse {
        read_calls: reads,
        write_calls: writes,
        write_bytes: bytes,
        socket: Some(socket),
        ..file(FileKind::Socket, &format!("socket:[{remote}{reads}{writes}]"))
    }
}

/// Waits of so many ms.
fn waits(name: &str, times: &[(u64, u64)]) -> Call {
    let mut wall_times = Times::default();
    for (ms, count) in times {
        (0..*count).for_each(|_| wall_times.add(ms * MS));
    }
    Call { wall_times, ..call(name, times.iter().map(|(_, count)| count).sum()) }
}

#[test]
fn a_message_in_two_writes_waits_for_a_delayed_acknowledgement() {
    let split = |reads, writes, bytes, delayed: u64| Trace {
        calls: vec![waits("epoll_wait", &[(44, delayed), (1, 50)])],
        files: vec![socket("127.0.0.1:4000", reads, writes, bytes)],
        ..trace()
    };
    let found = judged(split(100, 200, 200 * 50, 50));
    assert_eq!(ids(&found), ["split-message"]);
    assert!(found[0].1.contains("wrote 200 times to TCP connections, 50 B each, for 100 reads"));
    assert!(!has(&split(100, 200, 200 * 50, 49), "split-message"));
    // One write a message; large writes; few messages.
    assert!(!has(&split(100, 100, 100 * 50, 90), "split-message"));
    assert!(!has(&split(100, 200, 200 * 1_448, 90), "split-message"));
    assert!(!has(&split(31, 62, 62 * 50, 31), "split-message"));
    // A timer of 50 ms runs out more often than there are messages.
    assert!(!has(&split(100, 200, 200 * 50, 201), "split-message"));
}

#[test]
fn connections_for_a_request_each_are_not_those_that_are_used_again() {
    let connected = |sockets: u64, writes: u64, made: u64, refused: u64| {
        let begun = BTreeMap::from([("EINPROGRESS".to_owned(), made)]);
        let errors = made + refused;
        let connects = Call { errors, error_kinds: begun, ..call("connect", made + refused) };
        let each = (0..sockets).map(|n| FileUse {
            path: format!("socket:[{n}]"),
            ..socket("10.0.0.7:5432", 1, writes, 10)
        });
        Trace { calls: vec![connects], files: each.collect(), ..trace() }
    };
    let id = "connection-per-request";
    let found = judged(connected(100, 4, 100, 0));
    assert_eq!(ids(&found), [id]);
    assert!(
        found[0].1.contains("100 connections to tcp 10.0.0.7:5432, and wrote 4 times"),
        "{found:?}"
    );
    assert!(judged(connected(100, 1, 100, 0))[0].1.ends_with("and wrote once to each"));
    assert!(!has(&connected(99, 4, 99, 0), id));
    assert!(!has(&connected(100, 5, 100, 0), id));
    // They were made before, or refused.
    assert!(!has(&connected(100, 4, 99, 100), id));
}

#[test]
fn a_process_is_named_by_its_title_and_advised_by_its_program() {
    let logged = |title: &str, exec: &str| {
        let writes = Call { on_cpu_ns: Some(1_000_000), ..moved("write", 1_000, 85_000) };
        let log = sink(FileKind::File, "/var/log/a.log", 85_000, 1_000);
        let mut run = Trace { calls: vec![writes], files: vec![log], ..trace() };
        run.processes[0].title = title.into();
        run.processes[0].called = exec.into();
        let mut findings = crate::trace(&run, Some(&limits())).findings;
        findings.retain(|found| found.id == "small-appends");
        let [found] = &findings[..] else { panic!("{findings:?}") };
        (found.text.clone(), found.advice.clone())
    };
    let (text, advice) = logged("nginx: worker process", "nginx");
    assert!(text.starts_with("nginx: worker process wrote 1,000 times"), "{text}");
    // Without a title its program's name is its own, and the advice is the same.
    let (text, same) = logged("", "nginx");
    assert!(text.starts_with("nginx wrote 1,000 times"), "{text}");
    assert_eq!(advice, same);
    let (_, other) = logged("nginx: worker process", "");
    assert_ne!(advice, other);
}

#[test]
fn a_path_that_is_opened_over_and_over_is_named() {
    let opened = |path: &str, calls, ns, error: Option<&str>| PathUse {
        pid: 1,
        exec: "prog".into(),
        syscall: "openat".into(),
        path: Some(path.into()),
        error: error.map(str::to_owned),
        calls,
        wall_ns: ns,
        ..PathUse::default()
    };
    let run = |paths: &[PathUse]| Trace { paths: paths.to_vec(), ..trace() };
    let found = judged(run(&[opened("/a", 79_735, 2 * MS, None), opened("/b", 10, 1, None)]));
    assert_eq!(ids(&found), ["opened-again"]);
    assert!(found[0].1.starts_with("prog opened /a 79,735 times"), "{found:?}");
    assert!(!has(&run(&[opened("/a", 999, 2 * MS, None)]), "opened-again"));
    assert!(!has(&run(&[opened("/a", 1_000, MS - 1, None)]), "opened-again"));
    assert!(!has(&run(&[opened("/a", 1_000, 2 * MS, Some("ENOENT"))]), "opened-again"));
}

#[test]
fn without_paths_many_opens_and_few_files_are_told() {
    let run = |opens: u64, reads: u64, lists: u64| {
        let calls = vec![
            Call { wall_ns: 2 * MS, ..call("openat", opens) },
            moved("read", reads, reads * 100),
            call("getdents64", lists),
        ];
        let config = FileUse { read_calls: reads, read_bytes: reads * 100, ..source(100, 0) };
        Trace { calls, files: vec![config], ..trace() }
    };
    let id = "few-files-opened";
    assert!(has(&run(2_000, 4_000, 0), id));
    assert!(!has(&run(999, 2_000, 0), id));
    // Of opens that were not followed by a read, the file is not known; a walk opens each.
    assert!(!has(&run(2_000, 1_799, 0), id));
    assert!(!has(&run(2_000, 4_000, 21), id));
    let mut with_paths = run(2_000, 4_000, 0);
    with_paths.paths.push(PathUse { pid: 1, exec: "prog".into(), ..PathUse::default() });
    assert!(!has(&with_paths, id));
}

#[test]
fn lines_that_are_written_one_by_one_are_held_against_the_cpu_time_of_the_program() {
    let logged = |lines: u64, bytes: u64, each_ns: u64| {
        let writes = Call { on_cpu_ns: Some(lines * each_ns), ..moved("write", lines, bytes) };
        // A line a message: as small as these.
        let messages = FileUse { write_calls: 0, ..socket("10.0.0.1:9", lines, 0, 0) };
        let log = sink(FileKind::File, "/var/log/a.log", bytes, lines);
        Trace { calls: vec![writes], files: vec![messages, log], ..trace() }
    };
    let id = "small-appends";
    let found = judged(logged(1_000, 85_000, 1_000));
    assert_eq!(ids(&found), [id]);
    assert!(found[0].1.contains("wrote 1,000 times to /var/log/a.log, 85 B each"), "{found:?}");
    assert!(!has(&logged(999, 85_000, 1_002), id));
    assert!(!has(&logged(1_000, 85_000, 999), id));
    assert!(!has(&logged(1_000, 512_000, 1_000), id));
}

#[test]
fn a_server_that_carries_files_to_sockets_is_a_relay() {
    let served = |sent: u64, user_ns: u64| {
        let calls = vec![moved("read", 1_024, 64 * MIB), moved("sendto", 1_024, sent)];
        let sockets = (0..4).map(|n| socket(&format!("10.0.0.1:{n}"), 1, 256, sent / 4));
        let mut files: Vec<FileUse> = sockets.collect();
        files.push(FileUse { path: "/srv/one".into(), ..source(32 * MIB, 512) });
        files.push(FileUse { path: "/srv/two".into(), ..source(32 * MIB, 512) });
        let mut run = Trace { calls, files, ..trace() };
        run.ledger[0].user_ns = user_ns;
        run
    };
    let found = judged(served(65 * MIB, MS));
    let relay = found.iter().find(|(id, _)| id == "relay").unwrap();
    assert!(relay.1.contains("read 64 MiB from 2 files and wrote 65 MiB to sockets"), "{found:?}");
    assert!(!has(&served(57 * MIB, MS), "relay"));
    assert!(!has(&served(71 * MIB, MS), "relay"));
    assert!(!has(&served(65 * MIB, 60 * MS), "relay"), "it looked at each byte");
}
