//! The table of peers, of a fixed record.

use iotomy_record::*;

use super::{as_record, records, rendered};
use crate::Style;

fn socket(protocol: &str, role: Option<Role>, local: &str, remote: &str) -> Socket {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (local, remote) = (some(local), some(remote));
    Socket { protocol: protocol.into(), role, local, remote, ..Socket::default() }
}

/// Reads and writes of a socket, in calls and bytes.
fn file(inode: u32, socket: Socket, n: [u64; 4]) -> FileUse {
    FileUse {
        pid: 812,
        exec: "postgres".into(),
        kind: FileKind::Socket,
        path: format!("socket:[{inode}]"),
        read_calls: n[0],
        read_bytes: n[1],
        write_calls: n[2],
        write_bytes: n[3],
        socket: Some(socket),
        ..FileUse::default()
    }
}

fn connections(ends: Socket, opened: u64, each_us: u64) -> Connection {
    let (pid, exec) = (812, "postgres".to_owned());
    let connect_ns = opened * each_us * 1000;
    Connection { pid, exec, ends, opened, timed: opened, connect_ns, ..Connection::default() }
}

fn failing(row: Connection, errors: &[(&str, u64)]) -> Connection {
    let errors = errors.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    Connection { errors, ..row }
}

fn with_tcp(row: Connection, rtt_us: u64, retransmits: u64) -> Connection {
    let measured = row.opened + row.before;
    let tcp = TcpFigures {
        measured,
        rtts: measured,
        rtt_us: measured * rtt_us,
        rttvar_us: measured * rtt_us / 2,
        min_rtt_us: rtt_us,
        max_rtt_us: rtt_us,
        segments: 100 * measured,
        retransmits,
        acked_bytes: 1000,
        received_bytes: 2000,
        ..TcpFigures::default()
    };
    Connection { closed: Some(measured - 1), tcp: Some(tcp), ..row }
}

/// A server with clients of two kinds, that is a client of another and of a name server, and whose
/// monitor refuses.
fn server() -> Trace {
    let mut record = records::attached();
    record.view.peers = true;
    record.host_names = [("10.0.0.9".to_owned(), "replica.example".to_owned())].into();
    let (connect, accept) = (Some(Role::Connect), Some(Role::Accept));
    let client = |port: u32| {
        let remote = format!("10.0.0.{}:{port}", 20 + port % 2);
        socket("tcp", accept, "10.0.0.1:5432", &remote)
    };
    record.files = vec![
        file(1, client(40_001), [300, 30_000, 310, 4 << 20]),
        file(2, client(40_003), [10, 1_000, 11, 9_000]),
        file(3, client(40_002), [1, 100, 1, 500]),
        file(4, socket("tcp", connect, "10.0.0.1:50000", "10.0.0.9:5433"), [7, 700, 900, 9 << 20]),
        file(5, socket("tcp", None, "10.0.0.1:50001", "10.0.0.7:389"), [2, 300, 2, 200]),
        file(6, socket("unix", accept, "/run/postgresql/.s.PGSQL.5432", ""), [5, 500, 5, 900]),
    ];
    let accepted = |remote: &str| socket("tcp", accept, "10.0.0.1:5432", remote);
    let ldap = socket("tcp", None, "10.0.0.1:50001", "10.0.0.7:389");
    let before = Connection { before: 1, ..connections(ldap, 0, 0) };
    let replica = socket("tcp", connect, "", "10.0.0.9:5433");
    let replica = failing(with_tcp(connections(replica, 3, 640), 610, 17), &[("ETIMEDOUT", 1)]);
    record.connections = vec![
        with_tcp(connections(accepted("10.0.0.21"), 2, 38), 95, 0),
        with_tcp(connections(accepted("10.0.0.20"), 1, 1_204), 12_300, 2),
        failing(connections(accepted(""), 0, 0), &[("EAGAIN", 1_201), ("EMFILE", 12)]),
        Connection { unfinished: 2, ..replica },
        with_tcp(before, 480, 0),
        failing(
            connections(socket("tcp", connect, "", "10.0.0.8:9187"), 0, 0),
            &[("ECONNREFUSED", 60)],
        ),
        connections(socket("unix", accept, "/run/postgresql/.s.PGSQL.5432", ""), 4, 0),
        failing(
            connections(socket("unix", connect, "", "/run/systemd/notify"), 1, 21),
            &[("ENOENT", 1)],
        ),
    ];
    // Of a UNIX socket, an accept has no time.
    record.connections[6].timed = 0;
    record
}

golden!(peers, rendered(&server()));
golden!(peers_in_an_interval, {
    let mut record = server();
    record.interval = Some(Interval { number: 3, start_ns: 2_000_000_000, is_last: false });
    record.observer.lost_connections = 7;
    record.calls.truncate(1);
    crate::interval(&record, &Style::default())
});
golden!(peers_as_csv, {
    let record = as_record(server());
    let sources = [crate::Source { name: "run.json", record: &record, bytes: b"{}" }];
    crate::csv(&sources, Some("peers")).unwrap()
});

/// Three workers at one port, of which one is asleep, and one at another.
fn workers() -> Trace {
    let mut record = server();
    let accepted = |pid: u32, local: &str, opened: u64, eagain: u64| {
        let ends = socket("tcp", Some(Role::Accept), local, "10.0.0.21");
        let row = Connection { pid, ..connections(ends.clone(), opened, 20) };
        let traffic = [2 * opened, 100 * opened, opened, 5_000 * opened];
        let file = FileUse { pid, ..file(pid, ends, traffic) };
        (if eagain > 0 { failing(row, &[("EAGAIN", eagain)]) } else { row }, file)
    };
    let rows = [
        accepted(812, "10.0.0.1:80", 300, 12),
        accepted(813, "10.0.0.1:80", 100, 0),
        accepted(814, "10.0.0.1:80", 0, 410),
        accepted(815, "10.0.0.1:443", 9, 0),
    ];
    (record.connections, record.files) = rows.into_iter().unzip();
    record
}

golden!(listeners, rendered(&workers()));

/// The same, whose replica reads slowly, and whose clients wait.
fn limited() -> Trace {
    let mut record = server();
    let replica = record.connections[3].tcp.as_mut().unwrap();
    let windows = TcpFigures {
        cwnd_segments: Some(30),
        min_cwnd_segments: 8,
        max_cwnd_segments: 12,
        snd_wnd_bytes: Some(3 * 4096),
        rcv_wnd_bytes: Some(3 * 65_536),
        busy_ns: Some(4_200_000_000),
        rwnd_limited_ns: Some(3_906_000_000),
        sndbuf_limited_ns: Some(41_000_000),
        ..TcpFigures::default()
    };
    replica.merge(&windows);
    let waited = &mut record.connections[2];
    (waited.max_queued, waited.queue_limit, waited.dropped) = (129, 128, Some(1_040));
    record
}

golden!(peers_that_are_limited, rendered(&limited()));
golden!(peers_that_are_limited_as_csv, {
    let record = as_record(limited());
    let sources = [crate::Source { name: "run.json", record: &record, bytes: b"{}" }];
    crate::csv(&sources, Some("peers")).unwrap()
});

#[test]
fn a_listener_of_several_processes_has_the_most_that_any_found_in_its_queue() {
    let mut record = workers();
    for (row, queued) in record.connections.iter_mut().zip([3, 40, 0, 2]) {
        (row.max_queued, row.queue_limit) = (queued, 511);
    }
    let text = rendered(&record);
    assert!(text.contains("\n  tcp port 80: up to 40 in the queue (limit 511)\n"), "{text}");
}

#[test]
fn a_listener_of_one_process_has_no_table() {
    assert!(!rendered(&server()).contains("listener"));
    let mut record = workers();
    record.connections.retain(|one| one.pid != 812 && one.pid != 814);
    assert!(!rendered(&record).contains("listener"));
    // Two that listen at a port of two addresses.
    let mut record = workers();
    record.connections.truncate(2);
    record.connections[0].ends.local = Some("127.0.0.1:80".to_owned());
    assert!(!rendered(&record).contains("listener"));
}

#[test]
fn identical_processes_at_a_listener_are_counted_and_none_is_the_busiest() {
    let mut record = workers();
    let root = record.processes[0].clone();
    record.processes.push(Process { pid: 813, instances: 8, title: String::new(), ..root });
    let text = rendered(&record);
    assert!(text.contains("tcp port 80: 400 connections of 10 processes\n"), "{text}");
}

#[test]
fn peers_that_refuse_are_shown_beyond_the_usual_rows() {
    let mut record = server();
    for port in 0..40 {
        let socket = socket("tcp", Some(Role::Connect), "", &format!("10.1.0.1:{}", 8_000 + port));
        record.files.push(file(100 + port, socket, [10, 10_000, 10, 10_000]));
    }
    let text = rendered(&record);
    assert!(text.contains("10.0.0.8:9187") && text.contains("ECONNREFUSED 60"), "{text}");
    assert!(!text.contains("10.0.0.7:389"), "{text}");
    record.view.top = Some(2);
    assert!(!rendered(&record).contains("ECONNREFUSED"), "two rows were asked for");
}

#[test]
fn an_interval_without_peers_has_no_table_of_them() {
    let mut record = records::interval();
    record.view.peers = true;
    assert!(!crate::interval(&record, &Style::default()).contains("peer"));
}
