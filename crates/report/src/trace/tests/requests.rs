//! The table of requests.

use iotomy_record::{Exchange, Role, Socket, Times};

use super::*;

fn ends(protocol: &str, role: Role, local: &str, remote: &str) -> Socket {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Socket {
        protocol: protocol.into(),
        local: some(local),
        remote: some(remote),
        role: Some(role),
        ..Socket::default()
    }
}

/// Requests that took so many µs each, half of it blocked for something else.
fn requests(pid: u32, ends: Socket, us: &[u64]) -> Exchange {
    let mut wall_times = Times::default();
    us.iter().for_each(|us| wall_times.add(us * 1_000));
    let wall_ns: u64 = us.iter().map(|us| us * 1_000).sum();
    Exchange {
        pid,
        exec: "postgres".into(),
        ends,
        requests: us.len() as u64,
        wall_ns,
        max_ns: wall_times.max_ns,
        wall_times,
        unread_ns: wall_ns / 10,
        on_cpu_ns: wall_ns / 5,
        runnable_ns: wall_ns / 5,
        other_ns: wall_ns / 2,
        ..Exchange::default()
    }
}

fn served() -> Trace {
    let mut record = records::attached();
    record.view.requests = true;
    let clients = ends("tcp", Role::Accept, "10.0.0.1:5432", "10.0.0.20");
    let others = ends("tcp", Role::Accept, "10.0.0.1:5432", "10.0.0.21");
    let socket = ends("unix", Role::Accept, "/run/postgresql/.s.PGSQL.5432", "");
    let replica = ends("tcp", Role::Connect, "", "10.0.0.9:5433");
    let us: Vec<u64> = (0..400).map(|n| 200 + n * n / 20).collect();
    record.requests = vec![
        requests(4_242, clients.clone(), &us),
        Exchange { unanswered: 2, unseen_arrivals: 1, ..requests(4_243, clients, &us[..90]) },
        Exchange {
            pipelined: 7,
            moved: 3,
            elsewhere_ns: 2_000_000,
            ..requests(4_242, others, &us[..50])
        },
        Exchange { in_flight: 1, ..requests(4_242, socket, &[]) },
        Exchange { peer_ns: 0, ..requests(4_242, replica, &[90, 1_500]) },
    ];
    record.observer.lost_exchanges = 5;
    record.observer.unclear_connections = 1;
    record
}

golden!(requests_of_connections, rendered(&served()));
golden!(requests_on_a_wide_terminal, trace(&served(), &Style { width: 200, ..Style::default() }));
golden!(requests_as_csv, {
    let record = as_record(served());
    let sources = [crate::Source { name: "run.json", record: &record, bytes: b"{}" }];
    crate::csv(&sources, Some("requests")).unwrap()
});

#[test]
fn requests_are_sorted_by_their_numbers() {
    let mut record = served();
    record.view.sort = SortKey::named("pipelined").unwrap();
    let text = rendered(&record);
    let table = text.lines().skip_while(|line| !line.starts_with("  peer of requests"));
    assert!(table.take(4).any(|line| line.contains("10.0.0.21")), "{text}");
}

#[test]
fn where_no_request_was_timed_that_is_said() {
    let mut record = records::attached();
    assert!(!rendered(&record).contains("request"));
    record.view.requests = true;
    assert!(rendered(&record).contains("no counted request"));
}
