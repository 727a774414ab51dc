//! What came of connects and accepts, and TCP's own figures.

use crate::support;

use iotomy_record::{Connection, Key, Role, Trace};
use nix::sys::signal::Signal;
use support::{
    BackgroundProcess, Traced, Tracing, Watching, each_observer, has, traced, until_watching,
};

/// Connects in every way, and prints the ports.
const CONNECTS: &str = r#"
import errno, os, select, socket, struct
def tcp(family=socket.AF_INET): return socket.socket(family)
def at_once(s): s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close()
a = tcp(); a.bind(('127.0.0.1', 0)); a.listen(8)
print('port', a.getsockname()[1], flush=True)
for n in range(5):
    s = tcp(); s.connect(a.getsockname())
    if n % 2: s.connect_ex(a.getsockname())
    c, _ = a.accept(); c.send(b'x' * 100); s.recv(100, socket.MSG_WAITALL); at_once(s); c.close()
for n in range(2):
    s = tcp(); s.setblocking(False); assert s.connect_ex(a.getsockname()) == errno.EINPROGRESS
    select.select([], [s], []); assert s.connect_ex(a.getsockname()) in (0, errno.EISCONN)
    c, _ = a.accept(); at_once(s); c.close()
a.setblocking(False)
for n in range(4):
    try: a.accept()
    except BlockingIOError: pass
dead = tcp(); dead.bind(('127.0.0.1', 0)); nobody = dead.getsockname()
print('dead', nobody[1], flush=True)
for n in range(3): assert tcp().connect_ex(nobody) == errno.ECONNREFUSED
for n in range(2):
    s = tcp(); s.setblocking(False); assert s.connect_ex(nobody) == errno.EINPROGRESS
    select.select([], [s], [])
    assert (s.connect_ex(nobody) if n else s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)) == errno.ECONNREFUSED
for n in range(3): assert socket.socket(socket.AF_UNIX).connect_ex('/nowhere/x') == errno.ENOENT
for n in range(2): assert socket.socket(socket.AF_UNIX).connect_ex('\0iotomy-nobody') == errno.ECONNREFUSED
l = socket.socket(socket.AF_UNIX); l.bind('here'); l.listen(8)
for n in range(6):
    s = socket.socket(socket.AF_UNIX); s.connect('here'); c, _ = l.accept(); s.send(b'abc'); c.recv(3)
d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); d.connect(nobody)
try:
    m = tcp(socket.AF_INET6); assert m.connect_ex(('::ffff:127.0.0.1', nobody[1], 0, 0)) == errno.ECONNREFUSED
    b = tcp(socket.AF_INET6); b.bind(('::', 0)); b.listen(8); port = b.getsockname()[1]
    six = tcp(socket.AF_INET6); six.connect(('::1', port)); b.accept()[0].close(); at_once(six)
    four = tcp(); four.connect(('127.0.0.1', port)); b.accept()[0].close(); at_once(four)
    print('six', port, flush=True)
except OSError:
    print('six 0', flush=True)
"#;

/// Runs a program in a folder of its own.
fn run(observer: &str, options: &[&str], script: &str) -> Traced {
    let folder = tempfile::tempdir().unwrap();
    let mut tracing = Tracing::new(observer, options, &["python3", "-c", script]);
    tracing.command.current_dir(folder.path());
    let traced = tracing.run();
    assert_eq!(traced.code(), 0, "{}", traced.stderr());
    traced
}

/// The number that the program printed behind a word.
fn number(traced: &Traced, word: &str) -> u16 {
    let stdout = traced.stdout();
    let line = stdout.lines().find_map(|line| line.strip_prefix(word)).unwrap();
    line.trim().parse().unwrap()
}

/// The only row of these ends.
fn row<'r>(record: &'r Trace, protocol: &str, role: Role, remote: &str) -> &'r Connection {
    let is = |one: &&Connection| {
        one.ends.protocol == protocol
            && one.ends.role == Some(role)
            && one.ends.remote.as_deref().unwrap_or_default() == remote
    };
    let found: Vec<_> = record.connections.iter().filter(is).collect();
    assert_eq!(found.len(), 1, "{protocol} {role:?} {remote}: {:#?}", record.connections);
    found[0]
}

fn errors(row: &Connection) -> Vec<(&str, u64)> {
    row.errors.iter().map(|(name, count)| (name.as_str(), *count)).collect()
}

#[test]
fn connects_and_accepts_are_those_that_the_program_made() {
    if has("python3") {
        each_observer(connects_and_accepts);
    }
}

fn connects_and_accepts(observer: &str) {
    let traced = run(observer, &["--peers"], CONNECTS);
    let record = traced.whole_record();
    let (port, dead, six) =
        (number(&traced, "port"), number(&traced, "dead"), number(&traced, "six"));
    let (server, nobody) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{dead}"));

    let connects = row(&record, "tcp", Role::Connect, &server);
    assert_eq!((connects.opened, connects.timed, connects.closed), (7, 7, Some(7)));
    assert_eq!((connects.read_bytes, errors(connects)), (500, vec![]));
    let figures = connects.tcp.as_ref().unwrap();
    assert_eq!(figures.measured, 7, "{figures:?}");
    assert!(connects.connect_ns >= connects.max_ns && connects.max_ns > 0, "{connects:?}");

    let of_port = |one: &&Connection| {
        let local = one.ends.local.as_deref().unwrap_or_default();
        one.ends.role == Some(Role::Accept) && local == server
    };
    let accepted = record.connections.iter().filter(of_port);
    let accepted: Vec<_> = accepted.map(|one| (one.ends.remote.as_deref(), one)).collect();
    let [(None, fails), (Some("127.0.0.1"), accepts)] = accepted[..] else {
        let [(Some("127.0.0.1"), _), (None, _)] = accepted[..] else { panic!("{accepted:#?}") };
        return assert_eq!(errors(accepted[1].1), [("EAGAIN", 4)]);
    };
    // Only one of them sees when a connection is made that is accepted later.
    let timed = if observer == "bpf" { 7 } else { 0 };
    assert_eq!((accepts.opened, accepts.timed, accepts.write_bytes), (7, timed, 500));
    assert_eq!(accepts.tcp.as_ref().map(|tcp| (tcp.measured, tcp.segments)), Some((7, 5)));
    assert_eq!((fails.opened, errors(fails)), (0, vec![("EAGAIN", 4)]));

    let refused = row(&record, "tcp", Role::Connect, &nobody);
    let mapped = u64::from(six > 0);
    assert_eq!((refused.opened, errors(refused)), (0, vec![("ECONNREFUSED", 5 + mapped)]));
    let absent = row(&record, "unix", Role::Connect, "/nowhere/x");
    assert_eq!((absent.opened, errors(absent)), (0, vec![("ENOENT", 3)]));
    let nameless = row(&record, "unix", Role::Connect, "@iotomy-nobody");
    assert_eq!(errors(nameless), [("ECONNREFUSED", 2)]);
    let unix = row(&record, "unix", Role::Connect, "here");
    assert_eq!((unix.opened, unix.write_bytes, unix.closed), (6, 18, None));
    assert_eq!(unix.ends.peer_pid, Some(unix.pid));
    let unix = row(&record, "unix", Role::Accept, "");
    assert_eq!((unix.ends.local.as_deref(), unix.opened, unix.read_bytes), (Some("here"), 6, 18));
    assert_eq!(row(&record, "udp", Role::Connect, &nobody).opened, 1);
    if six > 0 {
        assert_eq!(row(&record, "tcp", Role::Connect, &format!("[::1]:{six}")).opened, 1);
        assert_eq!(row(&record, "tcp", Role::Connect, &format!("127.0.0.1:{six}")).opened, 1);
        assert_eq!(row(&record, "tcp", Role::Accept, "::1").opened, 1);
    }
    let text = traced.stderr();
    let refused = format!("ECONNREFUSED {}", 5 + mapped);
    for part in [&*format!("tcp {nobody} "), &refused, &format!("tcp (port {port} here)")] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let is_told = text.contains("does not see when connections are made that a program accepts");
    assert_eq!(is_told, observer == "ptrace", "{text}");
}

/// A queue with room for one: the second connect is not answered before that one is accepted.
const WAITS: &str = r#"
import errno, select, socket
a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen(0)
print('port', a.getsockname()[1], flush=True)
first = socket.socket(); first.connect(a.getsockname())
second, third = [socket.socket() for n in range(2)]
for s in second, third:
    s.setblocking(False); assert s.connect_ex(a.getsockname()) == errno.EINPROGRESS
third.close()
assert not select.select([], [second], [], 0.2)[1]
a.accept(); select.select([], [second], []); assert not second.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
second.send(b'abc'); print('rest', a.accept()[0].recv(3), flush=True)
"#;

#[test]
fn a_connect_that_does_not_wait_takes_until_it_is_made() {
    if has("python3") {
        each_observer(connect_without_waiting);
    }
}

fn connect_without_waiting(observer: &str) {
    let traced = run(observer, &["--peers"], WAITS);
    let record = traced.whole_record();
    let server = format!("127.0.0.1:{}", number(&traced, "port"));
    let connects = row(&record, "tcp", Role::Connect, &server);
    assert_eq!((connects.opened, connects.unfinished, errors(connects)), (2, 1, vec![]));
    assert!(connects.max_ns > 200_000_000, "{connects:?}");
    // Its first segment was sent again.
    assert!(connects.tcp.as_ref().unwrap().retransmits > 0, "{connects:?}");
    assert!(traced.stderr().contains("1 unfinished"), "{}", traced.stderr());
}

#[test]
fn connects_that_are_not_counted_calls_are_not_counted() {
    if has("python3") {
        each_observer(connects_left_out);
    }
}

fn connects_left_out(observer: &str) {
    let traced = run(observer, &["--peers", "--call", "sendto,recvfrom"], CONNECTS);
    let record = traced.record();
    let server = format!("127.0.0.1:{}", number(&traced, "port"));
    // Bytes moved through five of its connections.
    let connects = row(&record, "tcp", Role::Connect, &server);
    assert_eq!((connects.opened, connects.before, connects.read_bytes), (0, 5, 500));
    assert!(record.connections.iter().all(|one| one.opened == 0 && one.errors.is_empty()));
}

#[test]
fn connections_without_room_are_counted_as_lost() {
    if !has("python3") {
        return;
    }
    let script = "import socket\nfor n in range(1, 401): socket.socket(socket.AF_INET, \
                  socket.SOCK_DGRAM).connect(('127.0.0.1', n))";
    each_observer(|observer| {
        let options = ["--peers", "--max-rows", "128"];
        let traced = traced(observer, &options, &["python3", "-c", script]);
        let record = traced.record();
        let opened: u64 = record.connections.iter().map(|one| one.opened).sum();
        assert_eq!(opened + record.observer.lost_connections, 400, "{:#?}", record.connections);
        assert!(opened <= 128);
        assert!(traced.stderr().contains("did not fit: raise --max-rows"), "{}", traced.stderr());
    });
}

#[test]
fn remote_addresses_have_the_names_that_the_system_knows() {
    let known = std::process::Command::new("getent").args(["hosts", "127.0.0.1"]).output();
    let known = known.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let Some(name) = known.unwrap_or_default().split_whitespace().nth(1).map(str::to_owned) else {
        return support::skip(support::Need::Machine, "getent knows no name of 127.0.0.1");
    };
    if !has("python3") {
        return;
    }
    each_observer(|observer| {
        let traced = run(observer, &["--peers", "--resolve"], WAITS);
        assert_eq!(traced.record().host_names, [("127.0.0.1".to_owned(), name.clone())].into());
        let port = number(&traced, "port");
        let text = traced.stderr();
        for peer in
            [format!("tcp 127.0.0.1:{port} {name}"), format!("127.0.0.1 {name} (port {port} here)")]
        {
            assert!(text.contains(&peer), "{peer}: {text}");
        }
    });
}

/// The calls of a group by its values.
fn calls(record: &Trace, key: &[&str]) -> u64 {
    let groups = record.by.as_ref().unwrap();
    let key: Vec<Key> = key.iter().map(|one| Key::Text((*one).to_owned())).collect();
    groups.rows.iter().find(|row| row.key == key).map_or(0, |row| row.calls)
}

#[test]
fn calls_are_grouped_by_peer_also_by_one_that_refuses() {
    if has("python3") {
        each_observer(groups_by_peer);
    }
}

fn groups_by_peer(observer: &str) {
    let traced = run(observer, &["--by", "peer,call,errno"], CONNECTS);
    let record = traced.whole_record();
    let server = format!("tcp 127.0.0.1:{}", number(&traced, "port"));
    let nobody = format!("tcp 127.0.0.1:{}", number(&traced, "dead"));
    let six = u64::from(number(&traced, "six") > 0);
    let (refused, listening) = (4 + six, 1 + six);
    for (peer, call, errno, expected) in [
        // Five that wait, and one more of one that is asked twice; two that do not wait.
        (&*server, "connect", "EINPROGRESS", 2),
        (&server, "connect", "EISCONN", 2),
        (&server, "recvfrom", "ok", 5),
        (&nobody, "connect", "ECONNREFUSED", refused),
        (&nobody, "connect", "EINPROGRESS", 2),
        ("unix /nowhere/x", "connect", "ENOENT", 3),
        ("unix @iotomy-nobody", "connect", "ECONNREFUSED", 2),
        ("unix here", "connect", "ok", 6),
        ("unix here", "sendto", "ok", 6),
        // The accepted ends: their own path, since the others have none.
        ("unix here", "recvfrom", "ok", 6),
        ("", "listen", "ok", listening),
        ("", "accept4", "EAGAIN", 4),
    ] {
        let found = calls(&record, &[peer, call, errno]);
        assert_eq!(found, expected, "{peer} {call} {errno}: {:#?}", record.by);
    }
}

#[test]
fn a_condition_on_the_peer_leaves_other_calls_out() {
    if has("python3") {
        each_observer(condition_on_the_peer);
    }
}

fn condition_on_the_peer(observer: &str) {
    let traced =
        run(observer, &["--where", "peer == \"tcp 127.*\" && call == \"sendto\""], CONNECTS);
    let record = traced.record();
    assert!(record.calls.iter().all(|call| call.syscall == "sendto"), "{:?}", record.calls);
    assert_eq!(record.calls.iter().map(|call| call.calls).sum::<u64>(), 5);
    let traced = run(observer, &["--where", "peer == \"\" && group == \"%net\""], CONNECTS);
    let calls = |name| {
        let of = traced.record();
        of.calls.iter().filter(|call| call.syscall == name).map(|call| call.calls).sum::<u64>()
    };
    assert_eq!((calls("connect"), calls("sendto"), calls("accept4")), (0, 0, 4));
}

#[test]
fn addresses_of_peers_are_written_as_usual() {
    if has("python3") {
        each_observer(addresses_of_peers);
    }
}

fn addresses_of_peers(observer: &str) {
    let script = "import socket, sys\ntry: s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n\
                  except OSError: sys.exit(9)\nfor a in sys.argv[1:]:\n try: s.sendto(b'x', (a, 9))\n \
                  except OSError: pass";
    let addresses = [
        "::1",
        "2001:db8::1",
        "2001:db8:0:1:1:1:1:1",
        "1:0:0:2::3",
        "::ffff:127.0.0.1",
        "fe80::",
        "1:2:3:4:5:6:7:8",
        "::1:0:0:0",
        "abcd:ef01:2345:6789:abcd:ef01:2345:0",
    ];
    let words = [&["python3", "-c", script][..], &addresses].concat();
    let traced = traced(observer, &["--by", "peer", "--call", "sendto"], &words);
    if traced.code() == 9 {
        return support::skip(support::Need::Machine, "there is no IPv6");
    }
    let record = traced.record();
    for address in addresses {
        let address: std::net::Ipv6Addr = address.parse().unwrap();
        let peer = format!("udp {}", std::net::SocketAddr::new(address.to_canonical(), 9));
        assert_eq!(calls(&record, &[&peer]), 1, "{peer}: {:#?}", record.by);
    }
}

#[test]
fn without_peers_there_are_no_connections() {
    if !has("python3") {
        return;
    }
    each_observer(|observer| {
        let traced = run(observer, &[], CONNECTS);
        let record = traced.record();
        assert!(record.connections.is_empty() && !traced.stderr().contains("ECONNREFUSED 5"));
    });
}

/// Two ends of a connection; upon a line they talk, and TCP's figures of both are printed as the
/// kernel gives them to the program.
const TALKS: &str = r#"
import socket, struct, sys
a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen(1)
ends = socket.create_connection(a.getsockname()), a.accept()[0]
print('ready', flush=True)
for line in sys.stdin:
    for n in range(20):
        for one, other in ends, ends[::-1]:
            one.send(b'x' * 1000); other.recv(1000, socket.MSG_WAITALL)
    def figure(one, at): return struct.unpack_from('I', one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232), 8 + 4 * at)[0]
    while any(figure(one, 4) for one in ends): pass
    for one in ends:
        rtt, var = figure(one, 15), figure(one, 16)
        print(one.getsockname()[1], one.getpeername()[1], rtt, var, flush=True)
"#;

fn watching(observer: &str, options: &[&str], pid: u32) -> Watching {
    let pid_text = pid.to_string();
    let watching = Tracing::new(observer, &[&["-p", &pid_text], options].concat(), &[]).start();
    until_watching(&watching, observer, pid);
    watching
}

#[test]
fn a_connection_from_before_the_watch_has_the_figures_that_its_program_sees() {
    if has("python3") {
        each_observer(figures_of_a_connection_from_before);
    }
}

fn figures_of_a_connection_from_before(observer: &str) {
    let (mut subject, _) = BackgroundProcess::ready(&["python3", "-c", TALKS]);
    // What was before the watch is not counted.
    subject.say("\n");
    let _ = [subject.line(), subject.line()];
    let watching = watching(observer, &["--peers"], subject.pid());
    subject.say("\n");
    let said = [subject.line(), subject.line()];
    watching.signal(Signal::SIGINT);
    let traced = watching.end();
    let record = traced.record();
    for line in said {
        let words: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let [local, remote, rtt_us, rttvar_us] = words[..] else { panic!("{line}") };
        let (local, remote) = (format!("127.0.0.1:{local}"), format!("127.0.0.1:{remote}"));
        let is = |one: &&Connection| one.ends.local.as_deref() == Some(&local);
        let row = record.connections.iter().find(is).unwrap();
        assert_eq!((row.ends.role, row.ends.remote.as_deref()), (None, Some(&*remote)));
        assert_eq!((row.opened, row.before, row.closed), (0, 1, Some(0)));
        assert_eq!((row.read_bytes, row.write_bytes), (20_000, 20_000));
        let figures = row.tcp.as_ref().unwrap();
        assert_eq!((figures.rtt_us, figures.rttvar_us), (rtt_us, rttvar_us), "{figures:?}");
        assert_eq!((figures.measured, figures.rtts, figures.retransmits), (1, 1, 0));
        // All but the segment after which the watch met the connection.
        assert_eq!(figures.segments, 20, "{figures:?}");
        assert_eq!(figures.acked_bytes, 20_000, "{figures:?}");
    }
}
