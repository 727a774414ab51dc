use iotomy_record::{
    DiffRow, DiffSideName, DiffVerdict, Exchange, MissingFeature, Process, Role, Socket, Times,
};

use super::tests::{compared, source, trace};
use super::*;

/// So many answered requests, of so many µs each, a tenth of which was on a CPU and the rest blocked.
fn requests(ends: Socket, count: u64, us: u64) -> Exchange {
    let mut wall_times = Times::default();
    (0..count).for_each(|_| wall_times.add(us * 1_000));
    let wall_ns = count * us * 1_000;
    Exchange {
        pid: 7,
        exec: "cat".into(),
        ends,
        requests: count,
        wall_ns,
        max_ns: wall_times.max_ns,
        wall_times,
        on_cpu_ns: wall_ns / 10,
        other_ns: wall_ns - wall_ns / 10,
        ..Exchange::default()
    }
}

/// The ends of connections that a server accepted, and that a client made.
fn served(local: &str, host: &str) -> Socket {
    Socket {
        protocol: "tcp".into(),
        local: Some(local.into()),
        remote: Some(host.into()),
        role: Some(Role::Accept),
        ..Socket::default()
    }
}

fn asked(remote: &str) -> Socket {
    Socket {
        protocol: "tcp".into(),
        remote: Some(remote.into()),
        role: Some(Role::Connect),
        ..Socket::default()
    }
}

fn with_requests(requests: Vec<Exchange>) -> Trace {
    let mut run = Trace { requests, ..trace("cat", &[]) };
    run.view.requests = true;
    run
}

fn row<'d>(found: &'d Diff, name: &str, role: &str) -> &'d DiffRow {
    let is = |row: &&DiffRow| row.name == name && row.of == role;
    found.requests.iter().find(is).unwrap_or_else(|| panic!("{name}: {:#?}", found.requests))
}

fn ends(row: &DiffRow, measure: &str) -> (Option<f64>, Option<f64>) {
    let delta = row.measure(measure).unwrap_or_else(|| panic!("{measure}: {row:#?}"));
    (delta.a, delta.b)
}

#[test]
fn requests_are_compared_by_peer_and_role() {
    let here = || served("10.0.0.1:80", "10.0.0.2");
    let a = with_requests(vec![
        requests(here(), 200, 1_000),
        requests(asked("10.0.0.3:5432"), 200, 100),
        requests(asked("10.0.0.4:6379"), 50, 70),
    ]);
    let slow = Exchange { unanswered: 3, ..requests(here(), 300, 5_000) };
    // Of another process of the program, and the last of them.
    let more = Exchange { pid: 8, ..requests(here(), 100, 5_000) };
    let b = with_requests(vec![slow, more, requests(asked("10.0.0.3:5432"), 200, 100)]);
    let found = compared(a, b);
    assert!(found.left_out.is_empty(), "{:?}", found.left_out);
    let clients = row(&found, "tcp 10.0.0.2 (port 80 here)", "served");
    assert_eq!((clients.program.as_str(), clients.verdict), ("cat", DiffVerdict::Differs));
    assert_eq!(ends(clients, "requests"), (Some(200.0), Some(400.0)));
    assert_eq!(ends(clients, "unanswered"), (Some(0.0), Some(3.0)));
    assert_eq!(ends(clients, "wall_ns"), (Some(2e8), Some(2e9)));
    assert_eq!(ends(clients, "mean_ns"), (Some(1e6), Some(5e6)));
    assert_eq!(ends(clients, "wall_max_ns"), (Some(1e6), Some(5e6)));
    let (Some(before), Some(after)) = ends(clients, "wall_p99_ns") else { panic!("{clients:?}") };
    assert!((4.5..5.5).contains(&(after / before)), "{before} {after}");
    // The parts are of a request, however many there are.
    assert_eq!(ends(clients, "on_cpu_mean_ns"), (Some(1e5), Some(5e5)));
    assert_eq!(ends(clients, "other_mean_ns"), (Some(9e5), Some(4.5e6)));
    assert_eq!(ends(clients, "unread_mean_ns"), (Some(0.0), Some(0.0)));
    assert!(clients.measure("other_ns").is_none());
    assert_eq!(row(&found, "tcp 10.0.0.3:5432", "asked").verdict, DiffVerdict::Equal);
    let gone = row(&found, "tcp 10.0.0.4:6379", "asked");
    assert_eq!((gone.only_in, ends(gone, "mean_ns")), (Some(DiffSideName::A), (Some(7e4), None)));
    // Most time first.
    assert_eq!(found.requests[0].name, clients.name);
}

#[test]
fn requests_are_matched_whatever_ports_and_processes_they_were_of() {
    let run = |pid: u32, port: u32, us: u64| {
        let here = served(&format!("127.0.0.1:{port}"), "127.0.0.1");
        let unix = Socket {
            protocol: "unix".into(),
            local: Some("/run/app.sock".into()),
            peer_pid: Some(pid + 1),
            peer: Some("app".into()),
            role: Some(Role::Accept),
            ..Socket::default()
        };
        let ends = [here, asked(&format!("127.0.0.1:{port}")), unix];
        let rows = ends.map(|ends| Exchange { pid, ..requests(ends, 10, us) });
        let process = Process { pid, exec: "cat".into(), ..Process::default() };
        Trace { processes: vec![process], ..with_requests(rows.into()) }
    };
    let found = compared(run(100, 40_001, 10), run(200, 50_003, 90));
    assert_eq!(found.requests.len(), 3, "{:#?}", found.requests);
    for (name, role, names) in [
        ("tcp 127.0.0.1 (port … here)", "served", Some([1.0, 1.0])),
        ("tcp 127.0.0.1:…", "asked", Some([1.0, 1.0])),
        ("unix /run/app.sock", "served", None),
    ] {
        let row = row(&found, name, role);
        assert_eq!((row.only_in, row.names), (None, names), "{name}");
        assert_eq!(ends(row, "mean_ns"), (Some(1e4), Some(9e4)), "{name}");
    }
}

#[test]
fn latency_is_beyond_noise_where_it_is_so_in_every_run() {
    let side = |us: u64, count: u64| -> Vec<Source> {
        let runs = (0..6).map(|run| {
            let ends = served("10.0.0.1:80", "10.0.0.2");
            source(with_requests(vec![requests(ends, count + run, us + 10 * run)]))
        });
        runs.collect()
    };
    let name = "tcp 10.0.0.2 (port 80 here)";
    let found = diff(&side(1_000, 100), &side(2_000, 100)).unwrap();
    let slower = row(&found, name, "served");
    assert_eq!(slower.verdict, DiffVerdict::BeyondNoise);
    let beyond = |measure: &str| slower.measure(measure).unwrap().beyond_noise;
    for measure in ["mean_ns", "wall_p50_ns", "wall_p99_ns", "on_cpu_mean_ns", "other_mean_ns"] {
        assert_eq!(beyond(measure), Some(true), "{measure}");
    }
    for measure in ["requests", "unanswered", "disk_mean_ns"] {
        assert_eq!(beyond(measure), Some(false), "{measure}");
    }
    // A longer run has more requests, and each takes as long.
    let found = diff(&side(1_000, 100), &side(1_000, 1_000)).unwrap();
    let longer = row(&found, name, "served");
    assert_eq!(longer.measure("requests").unwrap().beyond_noise, Some(true));
    assert_eq!(longer.measure("other_mean_ns").unwrap().beyond_noise, Some(false));
    let found = diff(&side(1_000, 100), &side(1_000, 100)).unwrap();
    assert!(found.judged && !found.is_beyond_noise());
}

#[test]
fn requests_of_a_watch_are_counted_per_second_and_their_latency_is_not() {
    let watch = |seconds: u64, count: u64| {
        let rows = vec![requests(asked("10.0.0.3:5432"), count, 100)];
        let wall_ns = seconds * 1_000_000_000;
        Trace { wall_ns, exit: None, command: Vec::new(), ..with_requests(rows) }
    };
    let found = compared(watch(2, 200), watch(5, 500));
    let row = row(&found, "tcp 10.0.0.3:5432", "asked");
    assert_eq!(row.verdict, DiffVerdict::Equal);
    assert_eq!(ends(row, "requests"), (Some(100.0), Some(100.0)));
    assert_eq!(ends(row, "other_mean_ns"), (Some(9e4), Some(9e4)));
}

#[test]
fn runs_whose_requests_were_not_timed_are_not_compared_with_others() {
    let with = || with_requests(vec![requests(asked("10.0.0.3:5432"), 1, 100)]);
    let mut lacking = with_requests(Vec::new());
    let [feature, reason, lost] = ["requests", "ENOENT", "requests"].map(str::to_owned);
    lacking.observer.missing = vec![MissingFeature { feature, reason, lost }];
    for without in [trace("cat", &[]), lacking] {
        let found = compared(with(), without);
        assert!(found.requests.is_empty());
        let [left_out] = &found.left_out[..] else { panic!("{:?}", found.left_out) };
        assert_eq!(left_out.table, "requests");
        assert_eq!(left_out.why, "B was traced without timing requests (--requests)");
    }
    // That there were none is known.
    let found = compared(with(), with_requests(Vec::new()));
    let row = row(&found, "tcp 10.0.0.3:5432", "asked");
    assert_eq!((row.only_in, ends(row, "mean_ns").1), (Some(DiffSideName::A), None));
    assert!(compared(trace("cat", &[]), trace("cat", &[])).left_out.is_empty());
}

#[test]
fn requests_that_found_no_room_are_said() {
    let mut full = with_requests(Vec::new());
    full.observer.lost_exchanges = 4;
    let found = compared(with_requests(Vec::new()), full);
    assert_eq!((found.a.lost, found.b.lost), (0, 4));
}
