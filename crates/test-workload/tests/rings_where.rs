//! Truth of conditions on ring operations: which requests count, how they are grouped, and which ends the watch.
//!
//! Watches wait for children of this process, so the tests run one at a time.

use crate::harness;

use std::collections::BTreeSet;

use harness::command;
use harness::rings::{N, rings_by, rings_where};
use iotomy_observe::{Filter, Request};
use iotomy_record::Key;

#[test]
fn a_condition_chooses_requests_by_what_is_known_of_them() {
    let of_submitter = "call == \"ring:read\" && bytes == 100 && fd > 2 && path == \"*/#*\" && image == \"*workload*\" \
                        && pid == thread && threadname == \"*workload*\" && cgroup == \"/*\" && peer == \"\"";
    rings_where(of_submitter, "inline", |rings| {
        let read = rings.of("read");
        assert_eq!((read.submitted, read.completed, read.inline, read.in_flight), (N, N, N, 0));
        assert_eq!((read.bytes, read.errors, read.wall_times.total()), (100 * N, 0, N));
        assert_eq!((rings.sums.len(), rings.watched.calls.len()), (1, 0));
    });
    rings_where("group == \"%ring\" && bytes > 100", "inline", |rings| {
        assert_eq!(rings.sums.len(), 0);
    });
    // A worker has carried it out, and who submitted it counts.
    rings_where("path == \"*/#*\" && duration > 0 && pid == thread", "async", |rings| {
        let read = rings.of("read");
        assert_eq!((read.submitted, read.worker, read.forced_async), (N, N, N));
    });
    rings_where("errno == 0 && call == \"ring:*\"", "sqpoll", |rings| {
        assert_eq!((rings.of("nop").completed, rings.of("nop").sqpoll), (N, N));
    });
    rings_where("fd == -1 && path == \"*/#*\" && bytes == 200", "fixed", |rings| {
        let write = rings.of("write_fixed");
        assert_eq!((write.completed, write.bytes, write.registered_files), (N, 200 * N, N));
        assert_eq!(rings.sums.len(), 1);
    });
    rings_where("path == \"pipe:*\" && fd != -1", "polled", |rings| {
        assert_eq!((rings.of("read").completed, rings.of("read").polled), (N, N));
    });
}

#[test]
fn a_condition_chooses_requests_by_the_path_that_they_are_given() {
    rings_where("path == \"/dev/null\"", "opens", |rings| {
        let open = rings.of("openat");
        assert_eq!((open.submitted, open.errors, rings.sums.len()), (N, 0, 1));
    });
    rings_where("path == \"/dev/nowhere\" && fd == -1", "opens", |rings| {
        let open = rings.of("openat");
        assert_eq!((open.submitted, open.error_kinds["ENOENT"]), (2 * N, 2 * N));
    });
}

#[test]
fn a_condition_chooses_requests_by_their_results() {
    rings_where("errno == EBADF", "linked", |rings| {
        let read = rings.of("read");
        assert_eq!((read.submitted, read.error_kinds["EBADF"], rings.sums.len()), (N, N, 1));
    });
    rings_where("errno == ECANCELED", "linked", |rings| {
        let nop = rings.of("nop");
        assert_eq!((nop.submitted, nop.cancelled, nop.unlinked), (N, N, N));
        assert_eq!(rings.sums.len(), 1);
    });
    rings_where("errno == EFAULT", "refused", |rings| {
        assert_eq!(rings.of("timeout").error_kinds["EFAULT"], N);
    });
    // Each of many results by itself: the last one is an error.
    rings_where("call == \"ring:accept\" && errno == 0", "accept", |rings| {
        let accept = rings.of("accept");
        assert_eq!((accept.submitted, accept.completed, accept.multishot_completions), (0, 0, N));
    });
    rings_where("call == \"ring:accept\" && errno != 0", "accept", |rings| {
        let accept = rings.of("accept");
        assert_eq!((accept.submitted, accept.cancelled, accept.multishot_completions), (1, 1, 0));
    });
}

#[test]
fn what_a_condition_cannot_be_asked_of_is_lost_and_said() {
    rings_where("call == \"ring:read\" && bytes == 100", "overflow", |rings| {
        let read = rings.sums.get("read").map_or(0, |read| read.completed);
        assert_eq!(read + rings.watched.observer.lost_requests, N);
    });
    // What its name decides needs no result.
    rings_where("call == \"ring:read\"", "overflow", |rings| {
        let read = rings.of("read");
        assert_eq!((read.completed, read.overflows, read.bytes), (N, N - 4, 100 * N));
        assert_eq!(rings.watched.observer.lost_requests, 0);
    });
}

/// A group's values, requests and bytes.
type Group = (Vec<Key>, u64, u64);

#[test]
fn requests_are_grouped_by_variables_as_calls_are() {
    let by = |names: &[&str], condition: &str, way: &str, check: &dyn Fn(&[Group])| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let filter = Filter::new(condition).unwrap().grouped(&names).unwrap();
        let chosen = Request { filter, calls: Some(BTreeSet::new()), ..command("", &[]) };
        rings_by(&chosen, way, |rings| {
            let groups = rings.watched.by.as_ref().unwrap();
            assert_eq!(groups.lost_calls, 0);
            let rows = groups.rows.iter().map(|row| (row.key.clone(), row.calls, row.bytes));
            let mut rows: Vec<_> = rows.collect();
            rows.sort();
            check(&rows);
        });
    };
    let text = |text: &str| Key::Text(text.to_owned());
    by(&["call", "group", "bytes", "fd"], "1 == 1", "fixed", &|rows| {
        let key =
            |call: &str, low| vec![text(call), text("%ring"), Key::Number(low), Key::Number(-1)];
        let due =
            [(key("ring:read_fixed", 64), N, 100 * N), (key("ring:write_fixed", 128), N, 200 * N)];
        assert_eq!(rows, due);
    });
    by(&["errno", "call"], "group == \"%ring\"", "linked", &|rows| {
        let key = |error: &str, call: &str| vec![text(error), text(call)];
        let due = [(key("EBADF", "ring:read"), N, 0), (key("ECANCELED", "ring:nop"), N, 0)];
        assert_eq!(rows, due);
    });
    by(&["path"], "call == \"ring:read\"", "async", &|rows| {
        let [(key, calls, bytes)] = rows else { panic!("{rows:?}") };
        let Key::Text(path) = &key[0] else { panic!("{key:?}") };
        assert!(path.contains("/#"), "{path}");
        assert_eq!((*calls, *bytes), (N, 100 * N));
    });
    by(&["call", "errno"], "call == \"ring:accept\"", "accept", &|rows| {
        let calls: Vec<u64> = rows.iter().map(|(_, calls, _)| *calls).collect();
        assert_eq!(calls, [1, N], "{rows:?}");
    });
}

#[test]
fn a_request_ends_the_watch() {
    for (way, condition, operation) in [
        ("inline", "count() == 7", "read"),
        ("async", "sum(bytes) > 600", "read"),
        ("fixed", "call == \"ring:write_fixed\" && path == \"*/#*\"", "write_fixed"),
    ] {
        let filter = Filter::default().until(condition).unwrap();
        let chosen = Request { filter, calls: Some(BTreeSet::new()), ..command("", &[]) };
        assert!(chosen.can_be_ended());
        rings_by(&chosen, way, |rings| {
            let end = rings.watched.ended_by.as_ref().unwrap();
            assert_eq!(end.call.syscall, format!("ring:{operation}"));
            assert!(end.call.path.as_ref().is_some_and(|path| path.contains("/#")), "{end:?}");
            assert_eq!((end.call.on_cpu_ns, end.call.blocked_ns), (None, None));
            let fds = usize::from(way != "fixed");
            assert_eq!((end.call.arguments.len(), end.call.pid), (fds, end.call.tid));
            let row = rings.of(operation);
            let moved = end.call.bytes.unwrap();
            match way {
                "inline" => assert_eq!((end.count, row.completed, moved), (Some(7), 7, 100)),
                "async" => assert_eq!((end.sum_bytes, row.bytes, moved), (Some(700), 700, 100)),
                _ => assert_eq!((row.completed, moved), (1, 200)),
            }
        });
    }
}
