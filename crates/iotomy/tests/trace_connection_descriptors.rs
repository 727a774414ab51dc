//! Connections with several descriptors, and many of them.

use crate::support;

use iotomy_record::{Connection, Role, TcpFigures, Trace};
use support::{bpf, each_observer, has, ptrace, traced};

/// The names of what the scripts use.
const NAMES: &str = r#"
import os, socket, struct, sys, threading
def at_once(s): s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close()
a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen(4096)
def pair():
    s = socket.create_connection(a.getsockname()); return s, a.accept()[0]
"#;

fn run(observer: &str, script: &str) -> Trace {
    let script = format!("{NAMES}{script}");
    let traced = traced(observer, &["--peers"], &["python3", "-c", &script]);
    assert_eq!(traced.code(), 0, "{}", traced.stderr());
    traced.whole_record()
}

/// The only row of TCP connections of a role. A `python3` that is a shell script which finds the
/// interpreter has more, to the name service.
fn of_role(record: &Trace, role: Role) -> &Connection {
    let is = |one: &&Connection| one.ends.protocol == "tcp" && one.ends.role == Some(role);
    let of_role: Vec<_> = record.connections.iter().filter(is).collect();
    let [row] = of_role[..] else { panic!("{:#?}", record.connections) };
    row
}

fn figures(row: &Connection) -> &TcpFigures {
    row.tcp.as_ref().unwrap_or_else(|| panic!("{row:?}"))
}

/// Runs a script that makes a connection and closes both ends, and checks that it is one.
fn makes_one(script: &str, check: impl Fn(&Connection, &Connection)) {
    if !has("python3") {
        return;
    }
    each_observer(|observer| {
        let record = run(observer, script);
        let [connects, accepts] = [Role::Connect, Role::Accept].map(|role| of_role(&record, role));
        for row in [connects, accepts] {
            assert_eq!(
                (row.opened, row.before, row.closed),
                (1, 0, Some(1)),
                "{observer}: {row:?}"
            );
            assert_eq!(figures(row).measured, 1, "{observer}: {row:?}");
        }
        check(connects, accepts);
    });
}

#[test]
fn a_connection_that_a_child_inherits_is_one_until_both_have_closed_it() {
    let script = r#"
s, c = pair()
if os.fork() == 0:
    c.send(b'x' * 10); os._exit(0)
os.wait(); c.send(b'y' * 5); s.recv(15, socket.MSG_WAITALL)
read, write = os.pipe()
if os.fork() == 0:
    s.close(); os.read(read, 1); c.send(b'z' * 3); os._exit(0)
c.close(); os.write(write, b'.'); s.recv(3, socket.MSG_WAITALL); os.wait(); at_once(s)
"#;
    makes_one(script, |connects, accepts| {
        assert_eq!(accepts.write_bytes, 5, "the children's are in their own rows");
        assert_eq!(
            (figures(accepts).segments, figures(connects).received_bytes),
            (3, 19),
            "a FIN, too"
        );
    });
}

#[test]
fn a_connection_goes_on_when_one_of_two_descriptors_is_closed() {
    let script = r#"
s, c = pair()
d = s.dup(); s.close(); d.send(b'abc'); c.recv(3)
os.dup2(c.fileno(), 100); c.close(); c = socket.socket(fileno=100); c.send(b'defg'); d.recv(4, socket.MSG_WAITALL)
at_once(d); os.dup2(0, 100)
"#;
    makes_one(script, |connects, accepts| {
        assert_eq!((figures(connects).segments, figures(connects).received_bytes), (1, 4));
        assert_eq!((connects.write_bytes, accepts.write_bytes), (3, 4));
        assert_eq!((figures(accepts).segments, figures(accepts).received_bytes), (1, 3));
    });
}

#[test]
fn a_connection_that_an_exec_closes_has_its_figures() {
    let script = "s, c = pair(); s.send(b'abc'); c.recv(3); os.execvp('true', ['true'])";
    makes_one(script, |connects, accepts| {
        assert_eq!((figures(connects).segments, figures(accepts).received_bytes >= 3), (1, true));
    });
}

#[test]
fn connections_that_end_with_their_process_or_in_a_row_have_their_figures() {
    // A thread that is joined may still be in its last calls.
    let by_exit = "s, c = pair(); t = threading.Thread(target=lambda: s.send(b'abc')); t.start(); t.join(); c.recv(3)\n\
                   while len(os.listdir('/proc/self/task')) > 1: pass\n\
                   os._exit(0)";
    let in_a_row = "s, c = pair(); s.send(b'abc'); c.recv(3); os.closerange(a.fileno() + 1, 1000)";
    for script in [by_exit, in_a_row] {
        makes_one(script, |connects, accepts| {
            assert_eq!(
                (figures(connects).segments, figures(accepts).received_bytes >= 3),
                (1, true)
            );
        });
    }
}

#[test]
fn a_connect_that_failed_is_told_by_the_call_that_fetches_its_error() {
    if !has("python3") {
        return;
    }
    let script = r#"
import errno, select
dead = socket.socket(); dead.bind(('127.0.0.1', 0))
for n in range(3):
    s = socket.socket(); s.setblocking(False); assert s.connect_ex(dead.getsockname()) == errno.EINPROGRESS
    select.select([], [s], [])
    try: s.send(b'x') if n else s.recv(1)
    except ConnectionRefusedError: pass
    else: sys.exit(1)
"#;
    each_observer(|observer| {
        let record = run(observer, script);
        let row = of_role(&record, Role::Connect);
        assert_eq!((row.opened, row.unfinished), (0, 0), "{observer}: {row:?}");
        assert_eq!(row.errors, [("ECONNREFUSED".to_owned(), 3)].into());
    });
}

/// Holds so many connections open, and talks through each.
const MANY: &str = r#"
import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
pairs = [pair() for n in range(int(sys.argv[1]))]
for s, c in pairs: s.send(b'abc'); c.recv(3)
"#;

#[test]
fn every_connection_costs_as_much_as_one_of_few() {
    if !bpf() || !ptrace() || !has("python3") {
        return;
    }
    let script = format!("{NAMES}{MANY}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inner.json");
    // The calls of iotomy itself, by name.
    let requests = |count: u64| {
        let file = file.to_str().unwrap();
        let inner = ["trace", "-q", "--observer", "ptrace", "--peers", "--json", file];
        let count_text = count.to_string();
        let words =
            [&[support::IOTOMY], &inner[..], &["python3", "-c", &script, &count_text]].concat();
        let traced = traced("bpf", &[], &words);
        assert_eq!(traced.code(), 0, "{}", traced.stderr());
        let record = iotomy_record::store::load_trace(file).unwrap();
        let row = of_role(&record, Role::Connect);
        assert_eq!((row.opened, row.closed, row.write_bytes), (count, Some(count), 3 * count));
        assert_eq!(figures(row).measured, count);
        let watcher = traced.record();
        move |call: &str| {
            let is = |row: &&iotomy_record::Call| row.exec == "iotomy" && row.syscall == call;
            watcher.calls.iter().filter(is).map(|row| row.calls).sum::<u64>()
        }
    };
    let [few, many] = [200, 2000].map(requests);
    // A look behind a connect or an accept, one before the first use, one before the end: of both ends.
    for (call, most) in
        [("pidfd_getfd", 8), ("readlink", 20), ("getsockopt", 20), ("getdents64", 1)]
    {
        let [of_few, of_many] = [few(call), many(call)];
        let more = of_many.saturating_sub(of_few);
        assert!(
            more <= most * 1800,
            "{call}: {of_few} calls of 200, {of_many} of 2000 connections"
        );
    }
    assert!(many("pidfd_getfd") >= 4000);
    assert_eq!(few("sendto") + many("sendto"), 0, "no netlink");
}
