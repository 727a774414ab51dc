use std::time::Duration;

use iotomy_record::{Process, Role};

use super::*;
use crate::tally::Tally;

/// Of an image that a tally has room for, at this moment.
fn of(now: Instant) -> Use {
    let image = Tally::with_room(1, 0).begin(Process::default());
    let descriptor = Descriptor { process: u32::MAX, thread: u32::MAX, fd: 3 };
    Use { image, counted: true, descriptor, now }
}

fn name(role: Option<Role>) -> SocketName {
    let (local_port, remote_port) = (80, 4000);
    SocketName {
        family: 2,
        kind: 1,
        protocol: 6,
        local_port,
        remote_port,
        role,
        ..SocketName::default()
    }
}

fn connecting(connections: &mut Connections, inode: u64, of: Use, state: u8) {
    let info = TcpInfo { state, ..TcpInfo::default() };
    connections.add_connecting(of, inode, name(Some(Role::Connect)), of.now, info);
}

/// The only row, when no process is left.
fn row(connections: Connections, of: Use) -> Connection {
    let mut book = connections.end(&Sockets::new(), &[], of.now);
    let mut rows = book.rows(&of.image, (1, "x"), []);
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

const SYN_SENT: u8 = 2;

#[test]
fn a_connect_has_its_outcome_when_tcp_has() {
    let began = Instant::now();
    let mut connections = Connections::with_room(9);
    for inode in 1..=4 {
        connecting(&mut connections, inode, of(began), SYN_SENT);
    }
    assert!(connections.awaits_any() && connections.awaits(1));
    let later = began + Duration::from_nanos(700);
    let info = |state, acked_bytes| TcpInfo { state, acked_bytes, ..TcpInfo::default() };
    connections.update(1, info(SYN_SENT, 0), later);
    connections.update(1, info(TCP_ESTABLISHED, 1), later);
    // Made and reset before it was looked at; refused, told by an error; refused, and the program did not ask.
    connections.update(2, info(TCP_CLOSE, 1), later);
    connections.update(3, info(TCP_CLOSE, 0), later);
    connections.end_connect(3, 111);
    connections.update(4, info(TCP_CLOSE, 0), later);
    // It has an outcome already.
    connections.end_connect(1, 111);
    assert!(connections.awaits(4) && !connections.awaits(1) && !connections.has(3));
    let row = row(connections, of(later));
    assert_eq!((row.opened, row.timed, row.connect_ns, row.max_ns), (2, 2, 1400, 700));
    assert_eq!((row.unfinished, row.closed), (1, Some(2)));
    assert_eq!(row.errors, [("ECONNREFUSED".to_owned(), 1)].into());
    assert_eq!(row.tcp.unwrap().measured, 2);
}

#[test]
fn a_connect_that_is_repeated_is_counted_once() {
    let now = Instant::now();
    let mut connections = Connections::with_room(9);
    let info = |state| Some(TcpInfo { state, ..TcpInfo::default() });
    // Not counted, until one is that repeats it.
    connecting(&mut connections, 1, Use { counted: false, ..of(now) }, SYN_SENT);
    connections.connect_again(of(now), 1, Err(EALREADY), info(SYN_SENT));
    connections.connect_again(of(now), 1, Ok(0), info(TCP_ESTABLISHED));
    connections.connect_again(of(now), 1, Err(EISCONN), info(TCP_ESTABLISHED));
    connecting(&mut connections, 2, of(now), SYN_SENT);
    connections.connect_again(of(now), 2, Err(111), info(TCP_CLOSE));
    // Connected to nothing.
    connecting(&mut connections, 3, of(now), TCP_ESTABLISHED);
    connections.connect_again(of(now), 3, Ok(0), info(TCP_CLOSE));
    assert!(!connections.has(2) && !connections.has(3) && !connections.awaits_any());
    let row = row(connections, of(now));
    assert_eq!((row.opened, row.closed, row.unfinished), (2, Some(2), 0));
    assert_eq!(row.errors, [("ECONNREFUSED".to_owned(), 1)].into());
}

#[test]
fn figures_are_those_since_a_connection_was_met() {
    let now = Instant::now();
    let mut connections = Connections::with_room(9);
    let at_first = TcpInfo {
        state: TCP_ESTABLISHED,
        segments: u32::MAX,
        acked_bytes: 10,
        ..TcpInfo::default()
    };
    connections.add_met(of(now), 1, &name(None), at_first);
    let listens = TcpInfo { state: 10, ..TcpInfo::default() };
    connections.add_met(of(now), 2, &name(None), listens);
    assert!(connections.has(1) && !connections.has(2));
    let last = TcpInfo { rtt_us: 20, rttvar_us: 5, segments: 1, acked_bytes: 14, ..at_first };
    connections.update(1, last, now);
    assert!(connections.add_use(of(now), 1).is_some() && connections.add_use(of(now), 2).is_none());
    let row = row(connections, of(now));
    assert_eq!((row.opened, row.before, row.closed), (0, 1, Some(1)));
    let tcp = row.tcp.unwrap();
    assert_eq!((tcp.segments, tcp.acked_bytes, tcp.rtts, tcp.rtt_us), (2, 4, 1, 20));
    assert_eq!((tcp.rttvar_us, tcp.min_rtt_us, tcp.max_rtt_us), (5, 20, 20));
}

#[test]
fn closed_connections_make_room_and_others_are_lost() {
    let now = Instant::now();
    let mut connections = Connections::with_room(2);
    let accepted = |connections: &mut Connections, inode| {
        connections.add_opened(of(now), &name(Some(Role::Accept)), None);
        connections.add_accepted(of(now), inode, name(Some(Role::Accept)));
    };
    for inode in 1..=3 {
        accepted(&mut connections, inode);
    }
    assert_eq!((connections.book.lost, connections.is_sweep_due()), (1, true));
    assert_eq!(connections.of_process(u32::MAX).len(), 2);
    connections.sweep(&[]);
    assert!(connections.is_empty() && connections.of_process(u32::MAX).is_empty());
    assert!(!connections.is_sweep_due());
    accepted(&mut connections, 4);
    assert!(connections.has(4));
    let row = row(connections, of(now));
    assert_eq!((row.opened, row.closed, row.timed), (4, Some(3), 0));
}
