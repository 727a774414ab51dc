//! Truth of connections that are made by rings: as those that are made by calls.
//!
//! Watches wait for children of this process, so the tests run one at a time.

use crate::harness;

use harness::command;
use harness::rings::{N, Rings, rings_by};
use iotomy_observe::Request;
use iotomy_record::{Connection, Role};

fn connections(way: &str, check: impl Fn(&Rings)) {
    rings_by(&Request { peers: true, ..command("", &[]) }, way, |rings| {
        assert_eq!(rings.watched.observer.lost_connections, 0);
        check(rings);
    });
}

/// The only row of this role that is, or is not, of refused connections.
fn row(rings: &Rings, role: Role, is_refused: bool) -> &Connection {
    let all = &rings.watched.connections;
    let found = |one: &&Connection| {
        one.ends.role == Some(role) && one.errors.contains_key("ECONNREFUSED") == is_refused
    };
    let mut found = all.iter().filter(found);
    let row = found.next().unwrap_or_else(|| panic!("no {role:?} in {all:#?}"));
    assert!(found.next().is_none(), "{all:#?}");
    row
}

#[test]
fn what_a_ring_connects_and_accepts_is_as_what_calls_do() {
    for way in ["connects", "connects-async", "connects-multishot"] {
        connections(way, |rings| {
            let (ours, theirs) =
                (row(rings, Role::Connect, false), row(rings, Role::Accept, false));
            for one in [ours, theirs] {
                assert_eq!((&*one.ends.protocol, one.opened, one.before), ("tcp", N, 0), "{way}");
                assert_eq!((one.timed, one.unfinished), (N, 0), "{one:?}");
                assert!(one.errors.is_empty() && one.connect_ns > 0, "{one:?}");
                assert!(one.connect_ns >= one.max_ns && one.tcp.is_some());
            }
            assert_eq!((ours.write_calls, ours.write_bytes, ours.read_bytes), (N, 100 * N, 0));
            assert_eq!((theirs.read_calls, theirs.read_bytes, theirs.write_bytes), (N, 100 * N, 0));
        });
    }
}

#[test]
fn who_refuses_a_rings_connects_is_told() {
    connections("connects-refused", |rings| {
        let refused = row(rings, Role::Connect, true);
        assert_eq!((refused.opened, refused.errors["ECONNREFUSED"]), (0, N));
        assert_eq!(rings.of("connect").error_kinds["ECONNREFUSED"], N);
        assert!(refused.ends.remote.as_ref().is_some_and(|to| to.starts_with("127.0.0.1:")));
    });
}
