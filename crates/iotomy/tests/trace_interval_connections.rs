//! `trace --interval --peers`: each interval has the connections of that interval, and all of them add
//! up to those of the watch.

use crate::support;

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use iotomy_record::store::{Record, parse_record};
use iotomy_record::{Connection, Role, TcpFigures, Trace};
use nix::sys::signal::Signal;
use support::{BackgroundProcess, bpf, doubled_until, has, iotomy, send, text};

/// In each step, of which there are as many as it is told, a connection that is made, used and ended, one that is refused, and 20 bytes
/// each way over one that lasts.
const STEPS: &str = r#"
import socket, sys, time
a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen(8)
dead = socket.socket(); dead.bind(('127.0.0.1', 0))
print(a.getsockname()[1], dead.getsockname()[1], flush=True)
lasting = socket.socket(); lasting.connect(a.getsockname()); served = a.accept()[0]
for n in range(int(sys.argv[1])):
    time.sleep(0.04)
    s = socket.socket(); s.connect(a.getsockname()); c = a.accept()[0]
    s.send(b'x' * 100); c.recv(100, socket.MSG_WAITALL); s.close(); c.close()
    socket.socket().connect_ex(dead.getsockname())
    lasting.send(b'y' * 20); served.recv(20, socket.MSG_WAITALL)
    served.send(b'z' * 20); lasting.recv(20, socket.MSG_WAITALL)
"#;

fn records(lines: &str) -> Vec<Trace> {
    let record = |line: &str| match parse_record(line.as_bytes()).unwrap() {
        Record::Trace(record) => *record,
        other => panic!("{other:?}"),
    };
    lines.lines().map(record).collect()
}

/// The records of the intervals of a command, what it printed first, and the reports.
fn intervals(words: &[&str]) -> (Vec<Trace>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines");
    let options = ["trace", "--observer", "bpf", "--peers", "-i", "0.1"];
    let output = iotomy(&[&options[..], &["--json", file.to_str().unwrap(), "--"], words].concat());
    let output = { output }.output().unwrap();
    let stderr = text(&output.stderr[..]);
    assert!(output.status.success(), "{stderr}");
    let records = records(&std::fs::read_to_string(file).unwrap());
    let printed = text(&output.stdout[..]);
    (records, printed.lines().next().unwrap_or_default().to_owned(), stderr)
}

/// The rows of a role and a peer in each interval that has some.
fn rows(records: &[Trace], role: Role, is: impl Fn(&Connection) -> bool) -> Vec<&Connection> {
    let rows = records.iter().flat_map(|record| &record.connections);
    rows.filter(|row| row.ends.role == Some(role) && is(row)).collect()
}

fn sum(rows: &[&Connection], part: fn(&Connection) -> u64) -> u64 {
    rows.iter().map(|row| part(row)).sum()
}

fn tcp(rows: &[&Connection], part: fn(&TcpFigures) -> u64) -> u64 {
    rows.iter().filter_map(|row| row.tcp.as_ref()).map(part).sum()
}

#[test]
fn connections_of_intervals_add_up_to_those_that_the_program_made() {
    if !bpf() || !has("python3") {
        return;
    }
    let to = |records: &[Trace], remote: &str| -> Vec<Connection> {
        let remote = format!("127.0.0.1:{remote}");
        let is = move |row: &Connection| row.ends.remote.as_deref() == Some(&remote);
        rows(records, Role::Connect, is).into_iter().cloned().collect()
    };
    // On a busy machine an interval may take as long as several.
    let has_several = |((records, ports, said), _): &((Vec<Trace>, String, String), u64)| {
        let (port, dead) = ports.split_once(' ').unwrap();
        let shown = [format!("tcp 127.0.0.1:{port} "), "ECONNREFUSED ".to_owned()];
        [port, dead].iter().all(|port| to(records, port).len() >= 2)
            && shown.iter().all(|part| said.matches(part).count() >= 2)
    };
    let ((records, ports, _), steps) = doubled_until(15, has_several, |steps| {
        (intervals(&["python3", "-c", STEPS, &steps.to_string()]), u64::from(steps))
    });
    let (port, dead) = ports.split_once(' ').unwrap();
    let (connects, refused) = (to(&records, port), to(&records, dead));
    let [connects, refused]: [Vec<&Connection>; 2] =
        [&connects, &refused].map(|rows| rows.iter().collect());
    assert_eq!(sum(&connects, |row| row.opened), steps + 1);
    assert_eq!(sum(&connects, |row| row.timed), steps + 1);
    assert_eq!(sum(&connects, |row| row.write_bytes), steps * (100 + 20));
    assert_eq!(sum(&connects, |row| row.read_bytes), steps * 20);
    // The one that lasts ends with its process.
    assert_eq!(sum(&connects, |row| row.closed.unwrap()), steps + 1);
    assert_eq!(sum(&connects, |row| row.before), 0);
    // A segment for each send, and a byte for the SYN and the FIN of each.
    assert_eq!(tcp(&connects, |tcp| tcp.segments), 2 * steps);
    assert_eq!(tcp(&connects, |tcp| tcp.retransmits), 0);
    assert!(tcp(&connects, |tcp| tcp.acked_bytes) >= steps * (100 + 20));
    let local = format!("127.0.0.1:{port}");
    let accepts = rows(&records, Role::Accept, |row| row.ends.local.as_deref() == Some(&local));
    let of_accepts = [sum(&accepts, |row| row.opened), sum(&accepts, |row| row.timed)];
    assert_eq!(of_accepts, [steps + 1; 2]);
    assert_eq!(sum(&accepts, |row| row.read_bytes), steps * (100 + 20));
    assert_eq!(tcp(&accepts, |tcp| tcp.segments), steps);
    assert_eq!(sum(&refused, |row| row.opened), 0);
    assert_eq!(sum(&refused, |row| row.errors["ECONNREFUSED"]), steps);
    // TCP's figures of a moment are of the connections that ended in an interval, and of those that are
    // open: never of more than there were, the one that lasts and one whose figures came in the interval behind
    // that of its connect.
    assert!(connects.iter().any(|row| row.tcp.is_some()));
    for (row, figures) in connects.iter().filter_map(|row| Some((row, row.tcp.as_ref()?))) {
        assert!((1..=row.opened + 2).contains(&figures.measured), "{row:?}");
        assert!(figures.rtts <= figures.measured && figures.rtt_us > 0, "{row:?}");
    }
    assert!(records.iter().all(|record| record.observer.lost_connections == 0));
}

#[test]
fn connects_of_processes_that_ended_are_counted_once() {
    if !bpf() || !has("bash") || !has("python3") {
        return;
    }
    // Nobody listens at the port, and nobody else gets it.
    let script = "import socket, subprocess, sys, time\n\
                  dead = socket.socket(); dead.bind(('127.0.0.1', 0))\n\
                  connect = 'exec 3<>/dev/tcp/127.0.0.1/%d' % dead.getsockname()[1]\n\
                  for n in range(int(sys.argv[1])):\n    \
                  subprocess.run(['bash', '-c', connect], stderr=subprocess.DEVNULL)\n    \
                  time.sleep(0.15)";
    let is_refused = |row: &Connection| row.errors.contains_key("ECONNREFUSED");
    let has_several =
        |(records, _): &(Vec<Trace>, u64)| rows(records, Role::Connect, is_refused).len() >= 2;
    let (records, number) = doubled_until(3, has_several, |number| {
        let (records, _, _) = intervals(&["python3", "-c", script, &number.to_string()]);
        (records, u64::from(number))
    });
    let rows = rows(&records, Role::Connect, is_refused);
    assert_eq!(sum(&rows, |row| row.errors["ECONNREFUSED"]), number, "{rows:#?}");
    assert!(rows.iter().all(|row| row.exec == "bash"), "{rows:#?}");
}

/// Two ends of a connection; upon a line, a thousand bytes go each way, and the round-trip times that TCP
/// has of both ends are printed.
const TALKS: &str = r#"
import socket, struct, sys
a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen(1)
ends = socket.create_connection(a.getsockname()), a.accept()[0]
print('ready', flush=True)
for line in sys.stdin:
    for one, other in ends, ends[::-1]:
        one.send(b'x' * 1000); other.recv(1000, socket.MSG_WAITALL)
    def figure(one, at): return struct.unpack_from('I', one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232), 8 + 4 * at)[0]
    while any(figure(one, 4) for one in ends): pass
    print(*[figure(one, 15) for one in ends], flush=True)
"#;

#[test]
fn a_connection_that_lasts_is_met_once_and_has_its_round_trip_time_of_each_interval() {
    if !bpf() || !has("python3") {
        return;
    }
    let (mut subject, _) = BackgroundProcess::ready(&["python3", "-c", TALKS]);
    let pid = subject.pid().to_string();
    let options = ["trace", "--observer", "bpf", "--peers", "-i", "0.3", "-q", "--json", "-"];
    let mut command = iotomy(&[&options[..], &["-p", &pid]].concat());
    let mut watching = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(watching.stdout.take().unwrap());
    // The first interval is over when its line comes: what is said then is of a later one.
    let mut lines = String::new();
    let mut said = Vec::new();
    for _ in 0..3 {
        reader.read_line(&mut lines).unwrap();
        subject.say("\n");
        said.push(subject.line());
        // It is of the interval that ends next, or of the one behind that.
        reader.read_line(&mut lines).unwrap();
    }
    send(watching.id(), Signal::SIGINT);
    reader.read_to_string(&mut lines).unwrap();
    assert!(watching.wait().unwrap().success());
    let records = records(&lines);
    let all: Vec<&Connection> = records.iter().flat_map(|record| &record.connections).collect();
    let locals: std::collections::BTreeSet<_> = all.iter().map(|row| &row.ends.local).collect();
    assert_eq!(locals.len(), 2, "{all:#?}");
    for local in locals {
        let rows: Vec<&Connection> =
            all.iter().copied().filter(|row| row.ends.local == *local).collect();
        assert_eq!((sum(&rows, |row| row.before), sum(&rows, |row| row.opened)), (1, 0));
        assert_eq!(sum(&rows, |row| row.closed.unwrap()), 0);
        assert_eq!(sum(&rows, |row| row.read_bytes + row.write_bytes), 6_000);
        assert_eq!(tcp(&rows, |tcp| tcp.segments), 3, "{rows:#?}");
        assert_eq!(tcp(&rows, |tcp| tcp.acked_bytes), 3_000, "{rows:#?}");
        for row in &rows {
            let figures = row.tcp.as_ref().unwrap();
            assert_eq!((figures.measured, figures.rtts), (1, 1), "{figures:?}");
            assert_eq!((figures.min_rtt_us, figures.max_rtt_us), (figures.rtt_us, figures.rtt_us));
        }
        // The last that the program was told.
        let last = rows.last().unwrap().tcp.as_ref().unwrap().rtt_us;
        let words: Vec<u64> = said[2].split(' ').map(|word| word.parse().unwrap()).collect();
        assert!(words.contains(&last), "{last} of {said:?}");
    }
}
