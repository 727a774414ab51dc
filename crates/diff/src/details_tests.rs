use iotomy_record::{
    Connection, DiffRow, DiffSideName, DiffVerdict, Difference, FileKind, FileUse, Group, Groups,
    Key, PathUse, Process, Role, Socket, TcpFigures, Thread, WholeCall,
};

use super::tests::{compared, row, source, trace};
use super::*;

fn cat() -> Trace {
    trace("cat", &[])
}

fn file(kind: FileKind, path: &str) -> FileUse {
    FileUse {
        pid: 7,
        exec: "cat".into(),
        kind,
        path: path.into(),
        read_calls: 1,
        read_bytes: 10,
        ..FileUse::default()
    }
}

fn with_files(paths: &[(FileKind, &str)]) -> Trace {
    Trace { files: paths.iter().map(|(kind, path)| file(*kind, path)).collect(), ..cat() }
}

fn ends(row: &DiffRow, measure: &str) -> (Option<f64>, Option<f64>) {
    let delta = row.measure(measure).unwrap();
    (delta.a, delta.b)
}

#[test]
fn files_are_matched_without_the_numbers_of_a_run() {
    let a = with_files(&[(FileKind::Pipe, "pipe:[12]"), (FileKind::File, "/proc/12/stat")]);
    let b = with_files(&[
        (FileKind::Pipe, "pipe:[99]"),
        (FileKind::File, "/proc/99/stat"),
        (FileKind::File, "/etc/passwd"),
    ]);
    let found = compared(a, b);
    assert_eq!(row(&found.files, "pipe:[…]").verdict, DiffVerdict::Equal);
    assert_eq!(row(&found.files, "/proc/PID/stat").verdict, DiffVerdict::Equal);
    assert_eq!(row(&found.files, "/etc/passwd").only_in, Some(DiffSideName::B));
}

#[test]
fn names_that_a_run_draws_are_one_row_that_says_how_many() {
    let named = |names: &[&str]| {
        with_files(&names.iter().map(|name| (FileKind::File, *name)).collect::<Vec<_>>())
    };
    let found = compared(
        named(&["/tmp/ccAb3dEf.s", "/tmp/ccXy9zQr.s", "/etc/passwd", "/srv/log.51234"]),
        named(&["/tmp/ccQq1wWe.s", "/etc/passwd"]),
    );
    let drawn = row(&found.files, "/tmp/….s");
    assert_eq!((drawn.names, drawn.only_in), (Some([2.0, 1.0]), None));
    assert_eq!(ends(drawn, "read_bytes"), (Some(20.0), Some(10.0)));
    // Two runs have it, or no other is like it: it is itself.
    assert_eq!(row(&found.files, "/etc/passwd").names, None);
    let alone = row(&found.files, "/srv/log.51234");
    assert_eq!((alone.names, alone.only_in), (None, Some(DiffSideName::A)));
    // A name that several runs of a side have is not drawn.
    let runs = |names: &[&str]| source(named(names));
    let found = diff(
        &[runs(&["/tmp/x123456"]), runs(&["/tmp/x123456"])],
        &[runs(&["/tmp/x234567"]), runs(&["/tmp/x345678"])],
    )
    .unwrap();
    assert_eq!(row(&found.files, "/tmp/x123456").only_in, Some(DiffSideName::A));
    assert_eq!(row(&found.files, "/tmp/…").names, Some([0.0, 1.0]));
}

fn tcp(inode: u32, local: &str, remote: &str) -> FileUse {
    let socket = Socket {
        protocol: "tcp".into(),
        local: Some(local.into()),
        remote: Some(remote.into()),
        ..Socket::default()
    };
    FileUse { socket: Some(socket), ..file(FileKind::Socket, &format!("socket:[{inode}]")) }
}

#[test]
fn peers_are_matched_whatever_ports_they_got() {
    // Each run alone could call the connection by either end.
    let a = Trace { files: vec![tcp(1, "10.0.0.1:80", "10.0.0.2:40001")], ..cat() };
    let b = Trace {
        files: vec![
            tcp(2, "10.0.0.1:80", "10.0.0.2:40002"),
            tcp(3, "10.0.0.1:80", "10.0.0.2:40003"),
            tcp(4, "10.0.0.1:40004", "10.0.0.3:5432"),
        ],
        ..cat()
    };
    let found = compared(a.clone(), b);
    let clients = row(&found.peers, "tcp 10.0.0.2 (port 80 here)");
    assert_eq!(ends(clients, "connections"), (Some(1.0), Some(2.0)));
    assert_eq!(ends(clients, "read_bytes"), (Some(10.0), Some(20.0)));
    assert_eq!(row(&found.peers, "tcp 10.0.0.3:5432").only_in, Some(DiffSideName::B));
    // Ends of which neither is known to stay are put together.
    let other = |port: u32| Trace {
        files: vec![tcp(port, &format!("127.0.0.1:{port}"), &format!("127.0.0.1:{}", port + 1))],
        ..cat()
    };
    let found = compared(other(50_001), other(50_003));
    assert_eq!(found.peers.len(), 1);
    assert_eq!(
        (&*found.peers[0].name, found.peers[0].names),
        ("tcp 127.0.0.1:…", Some([1.0, 1.0]))
    );
    // The process at the other end of a UNIX socket has another id, and may have ended.
    let unix = |pid: u32, peer: Option<&str>| {
        let socket = Socket {
            protocol: "unix".into(),
            remote: Some("/run/db".into()),
            peer_pid: Some(pid),
            peer: peer.map(str::to_owned),
            ..Socket::default()
        };
        let file = FileUse { socket: Some(socket), ..file(FileKind::Socket, "socket:[5]") };
        Trace { files: vec![file], ..cat() }
    };
    let found = compared(unix(5, Some("db")), unix(6, None));
    assert_eq!(row(&found.peers, "unix to /run/db").verdict, DiffVerdict::Equal);
}

/// Connects to an address, each of which took so many µs.
fn connects(remote: &str, opened: u64, each_us: u64, errors: &[(&str, u64)]) -> Connection {
    let figures = TcpFigures { rtts: opened, rtt_us: opened * 80, ..TcpFigures::default() };
    Connection {
        pid: 7,
        exec: "cat".into(),
        ends: Socket {
            protocol: "tcp".into(),
            remote: Some(remote.into()),
            role: Some(Role::Connect),
            ..Socket::default()
        },
        opened,
        closed: Some(opened / 2),
        timed: opened,
        connect_ns: opened * each_us * 1000,
        errors: errors.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        tcp: Some(TcpFigures { retransmits: opened * 2, ..figures }),
        ..Connection::default()
    }
}

fn connected(connections: Vec<Connection>) -> Trace {
    let files = vec![tcp(1, "10.0.0.1:40004", "10.0.0.3:5432")];
    Trace { files, connections, ..cat() }
}

#[test]
fn connections_are_compared_by_peer() {
    let db = "10.0.0.3:5432";
    let other = Connection { pid: 8, ..connects(db, 2, 90, &[]) };
    let a = connected(vec![connects(db, 4, 45, &[]), other]);
    let refused = connects("10.0.0.8:9187", 0, 0, &[("ECONNREFUSED", 3)]);
    let b = connected(vec![connects(db, 1, 1_200, &[("ETIMEDOUT", 2)]), refused]);
    let found = compared(a, b);
    let row_of = |name: &str| row(&found.peers, name);
    let db = row_of("tcp 10.0.0.3:5432");
    assert_eq!(ends(db, "connections"), (Some(1.0), Some(1.0)));
    assert_eq!(ends(db, "opened"), (Some(6.0), Some(1.0)));
    assert_eq!(ends(db, "closed"), (Some(3.0), Some(0.0)));
    assert_eq!(ends(db, "retransmits"), (Some(12.0), Some(2.0)));
    assert_eq!(ends(db, "connect_mean_ns"), (Some(60_000.0), Some(1_200_000.0)));
    assert_eq!(ends(db, "rtt_mean_ns"), (Some(80_000.0), Some(80_000.0)));
    assert_eq!((ends(db, "errors"), db.verdict), ((Some(0.0), Some(2.0)), DiffVerdict::Differs));
    assert_eq!(db.error_kinds, [("ETIMEDOUT".to_owned(), [0.0, 2.0])].into());
    let refused = row_of("tcp 10.0.0.8:9187");
    assert_eq!(refused.only_in, Some(DiffSideName::B));
    assert_eq!(ends(refused, "errors"), (Some(0.0), Some(3.0)));
    assert_eq!(ends(refused, "connect_mean_ns"), (None, None));
    assert!(found.left_out.is_empty(), "{:?}", found.left_out);
}

#[test]
fn other_errors_of_as_many_connects_are_a_difference() {
    let run = |error: &str| connected(vec![connects("10.0.0.3:5432", 1, 45, &[(error, 2)])]);
    let found = compared(run("ECONNREFUSED"), run("ETIMEDOUT"));
    assert_eq!(row(&found.peers, "tcp 10.0.0.3:5432").verdict, DiffVerdict::Differs);
}

#[test]
fn connects_without_an_outcome_are_a_difference() {
    let run = |unfinished: u64| {
        let row = connects("10.0.0.3:5432", 1, 45, &[]);
        connected(vec![Connection { unfinished, ..row }])
    };
    let found = compared(run(0), run(2));
    let row = row(&found.peers, "tcp 10.0.0.3:5432");
    assert_eq!(ends(row, "unfinished"), (Some(0.0), Some(2.0)));
    assert_eq!(row.verdict, DiffVerdict::Differs);
}

#[test]
fn the_time_of_connects_is_judged_among_runs_and_not_of_one() {
    let run = |each_us: u64| connected(vec![connects("10.0.0.3:5432", 4, each_us, &[])]);
    let found = compared(run(45), run(450));
    assert_eq!(row(&found.peers, "tcp 10.0.0.3:5432").verdict, DiffVerdict::TimesDiffer);
    let runs = |around: u64| (0..6).map(|at| source(run(around + at))).collect::<Vec<_>>();
    let found = diff(&runs(45), &runs(450)).unwrap();
    let row = row(&found.peers, "tcp 10.0.0.3:5432");
    assert_eq!(row.verdict, DiffVerdict::BeyondNoise);
    assert_eq!(row.measure("connect_mean_ns").unwrap().beyond_noise, Some(true));
    assert_eq!(row.measure("opened").unwrap().beyond_noise, Some(false));
}

#[test]
fn connections_that_one_side_did_not_count_are_not_compared() {
    let refused = connects("10.0.0.8:9187", 0, 0, &[("ECONNREFUSED", 3)]);
    let counted = connected(vec![connects("10.0.0.3:5432", 4, 45, &[("ETIMEDOUT", 1)]), refused]);
    // A live view may show peers without counting connections.
    let mut plain = connected(Vec::new());
    plain.view.peers = true;
    let found = compared(counted, plain);
    assert_eq!(found.peers.len(), 1, "{:?}", found.peers);
    let db = row(&found.peers, "tcp 10.0.0.3:5432");
    assert_eq!(db.verdict, DiffVerdict::Equal);
    assert!(db.measure("opened").is_none() && db.error_kinds.is_empty());
    let said: Vec<String> =
        found.left_out.iter().map(|one| format!("{}: {}", one.table, one.why)).collect();
    assert_eq!(said, ["connections: B was traced without --peers"]);
}

#[test]
fn pipes_are_matched_by_the_programs_at_their_ends() {
    let run = |inode: u32, pid: u32| {
        let path = format!("pipe:[{inode}]");
        let reader = FileUse { pid, exec: "wc".into(), ..file(FileKind::Pipe, &path) };
        let writer = FileUse {
            read_calls: 0,
            read_bytes: 0,
            write_calls: 2,
            write_bytes: 10,
            ..file(FileKind::Pipe, &path)
        };
        Trace { files: vec![reader, writer], ..cat() }
    };
    let found = compared(run(1, 100), run(2, 200));
    let pipe = row(&found.peers, "pipe from cat to wc");
    assert_eq!(pipe.verdict, DiffVerdict::Equal);
    assert_eq!(ends(pipe, "connections"), (Some(1.0), Some(1.0)));
}

fn asked(path: &str, error: Option<&str>, wall_ns: u64) -> PathUse {
    PathUse {
        pid: 7,
        exec: "cat".into(),
        syscall: "openat".into(),
        path: Some(path.into()),
        error: error.map(str::to_owned),
        calls: 1,
        wall_ns,
        ..PathUse::default()
    }
}

#[test]
fn paths_are_compared_by_call_and_outcome() {
    let a = Trace { paths: vec![asked("/a", None, 500), asked("/b", None, 500)], ..cat() };
    let b =
        Trace { paths: vec![asked("/a", Some("ENOENT"), 500), asked("/b", None, 90_000)], ..cat() };
    let found = compared(a, b);
    let outcome = |of: &str| found.paths.iter().find(|row| row.of == of && row.name == "/a");
    assert_eq!(outcome("openat ok").unwrap().only_in, Some(DiffSideName::A));
    assert_eq!(outcome("openat ENOENT").unwrap().only_in, Some(DiffSideName::B));
    // One call of a path takes another time in every run.
    assert_eq!(row(&found.paths, "/b").verdict, DiffVerdict::TimesDiffer);
    assert!(!DiffVerdict::TimesDiffer.is_shown());
}

fn grouped(by: &[&str], rows: &[(&[Key], u64, u64)]) -> Trace {
    let group = |(key, calls, max): &(&[Key], u64, u64)| Group {
        key: key.to_vec(),
        calls: *calls,
        wall_ns: calls * 1_000,
        max_ns: *max,
        ..Group::default()
    };
    let by = by.iter().map(|by| (*by).to_owned()).collect();
    Trace {
        by: Some(Groups { by, rows: rows.iter().map(group).collect(), lost_calls: 2 }),
        ..cat()
    }
}

#[test]
fn groups_are_compared_by_their_values() {
    let text = |text: &str| Key::Text(text.into());
    let values = |pid: i64| [text("read"), Key::Number(512), Key::Number(pid)];
    let by = ["call", "bytes", "pid"];
    let one = grouped(&by, &[(&values(70), 4, 5_000), (&values(71), 1, 9_000)]);
    let other = grouped(&by, &[(&values(90), 8, 7_000)]);
    let found = compared(one.clone(), other.clone());
    assert_eq!((found.by.len(), found.a.lost), (3, 2));
    // A command's processes have other ids in every run.
    let read = row(&found.groups, "read, 512…1023, …");
    assert_eq!(ends(read, "calls"), (Some(5.0), Some(8.0)));
    assert_eq!(ends(read, "mean_ns"), (Some(1_000.0), Some(1_000.0)));
    assert_eq!(ends(read, "wall_max_ns"), (Some(9_000.0), Some(7_000.0)));
    assert_eq!(read.names, Some([2.0, 1.0]));
    // Those of running processes stay.
    let running = |one: &Trace| Trace { command: Vec::new(), ..one.clone() };
    let found = compared(running(&one), running(&one));
    assert_eq!(row(&found.groups, "read, 512…1023, 71").verdict, DiffVerdict::Equal);
    let found = compared(one, grouped(&["call"], &[(&[text("read")], 4, 1)]));
    assert!(found.groups.is_empty() && found.by.is_empty());
    assert_eq!(found.left_out[0].why, "one run was grouped by call,bytes,pid, another by call");
}

#[test]
fn threads_are_compared_by_program_and_name() {
    let thread = |tid: u32, name: &str, on_cpu_ns: u64| Thread {
        pid: 7,
        exec: "cat".into(),
        tid,
        name: name.into(),
        on_cpu_ns,
        blocked_ns: Some(1_000),
        ..Thread::default()
    };
    let named = [thread(7, "cat", 10), thread(8, "worker", 20), thread(9, "", 5)];
    let a = Trace { threads: named.to_vec(), ..cat() };
    let b = Trace { threads: vec![thread(17, "worker", 90), thread(18, "worker", 30)], ..cat() };
    let found = compared(a, b);
    let worker = row(&found.threads, "worker");
    assert_eq!(ends(worker, "threads"), (Some(1.0), Some(2.0)));
    assert_eq!(ends(worker, "on_cpu_ns"), (Some(20.0), Some(120.0)));
    assert_eq!(ends(worker, "blocked_ns"), (Some(1_000.0), Some(2_000.0)));
    assert_eq!(row(&found.threads, "cat").only_in, Some(DiffSideName::A));
    assert_eq!(row(&found.threads, "(no name)").only_in, Some(DiffSideName::A));
}

#[test]
fn a_table_that_some_runs_lack_is_said_and_is_no_difference() {
    let mut complete = with_files(&[(FileKind::Socket, "socket:[1]")]);
    complete.files = vec![tcp(1, "10.0.0.1:80", "10.0.0.2:40001")];
    complete.paths = vec![asked("/a", None, 500)];
    complete.view.threads = true;
    let plain = with_files(&[(FileKind::Socket, "socket:[1]")]);
    let found = compared(complete.clone(), plain.clone());
    assert!(found.paths.is_empty() && found.threads.is_empty() && found.peers.is_empty());
    let said: Vec<String> =
        found.left_out.iter().map(|one| format!("{}: {}", one.table, one.why)).collect();
    assert_eq!(
        said,
        [
            "peers: B was traced by an observer that does not know what sockets are connected to",
            "paths: B was traced without --paths",
            "threads: B was traced without --threads",
        ]
    );
    let both = || [source(complete.clone()), source(plain.clone())];
    let found = diff(&both(), &[source(plain.clone()), source(plain.clone())]).unwrap();
    assert_eq!(
        found.left_out[1].why,
        "1 of 2 runs of A and all runs of B were traced without --paths"
    );
    assert!(compared(plain.clone(), plain).left_out.is_empty());
    // Of the whole machine, files are counted on request.
    let mut machine = cat();
    machine.view.machine = true;
    let found = compared(complete, machine);
    assert!(found.files.is_empty());
    assert_eq!(found.left_out[0].why, "B was traced without --files");
    assert!(found.left_out.iter().all(|one| one.table != "peers"));
}

#[test]
fn other_errors_of_as_many_calls_are_a_difference() {
    let (a, mut b) = (trace("cat", &[("openat", 4, 2, 10)]), trace("cat", &[("openat", 4, 2, 10)]));
    b.calls[0].error_kinds = [("EACCES".to_owned(), 2)].into();
    assert_eq!(row(&compared(a, b).calls, "openat").verdict, DiffVerdict::Differs);
}

#[test]
fn the_slowest_calls_of_either_side_are_kept() {
    let slow = |wall_ns: u64| WholeCall { wall_ns, ..WholeCall::default() };
    let run = |times: &[u64]| {
        source(Trace { slowest: times.iter().map(|ns| slow(*ns)).collect(), ..cat() })
    };
    let found = diff(&[run(&[9, 4]), run(&[8, 1])], &[run(&[2])]).unwrap();
    let times = |calls: &[WholeCall]| calls.iter().map(|call| call.wall_ns).collect::<Vec<_>>();
    assert_eq!(times(&found.slowest.a), [9, 8, 4]);
    assert_eq!(times(&found.slowest.b), [2]);
}

#[test]
fn the_program_of_a_slow_call_is_named_as_its_user_does() {
    let attached = || {
        let mut trace = cat();
        trace.processes[0].called = "redis-server".into();
        let Process { pid, exec, image, .. } = trace.processes[0].clone();
        trace.slowest = vec![WholeCall { pid, exec, image, ..WholeCall::default() }];
        source(trace)
    };
    let found = diff(&[attached()], &[attached()]).unwrap();
    assert_eq!(found.slowest.a[0].exec, "redis-server");
}

#[test]
fn a_long_command_is_cut_and_its_end_is_compared() {
    let run = |end: &str| {
        let mut trace = cat();
        trace.command = vec!["cat".into(), "x".repeat(100_000) + end, "a b".into()];
        source(trace)
    };
    let found = diff(&[run("1")], &[run("2")]).unwrap();
    assert!(found.a.subject.ends_with("xx…") && found.a.subject.len() < 5_000);
    let differs = |found: &Diff| found.conditions.iter().any(|one| one.what == Difference::COMMAND);
    assert!(differs(&found) && !differs(&diff(&[run("1")], &[run("1")]).unwrap()));
}
