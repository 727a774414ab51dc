//! The latency of requests over connections: served and asked, by peer, and what became of the time.

use crate::support;

use iotomy_record::{Exchange, Role, Trace};
use nix::sys::signal::Signal;
use support::{BackgroundProcess, Traced, Tracing, bpf, has, iotomy, root, until_watching};

/// What the scripts have in common: a server in a process of its own.
const COMMON: &str = r#"
import os, select, socket, struct, sys, threading, time
def listening(kind=socket.AF_INET, name=('127.0.0.1', 0)):
    l = socket.socket(kind); l.bind(name); l.listen(512)
    return l
def readable(s): select.select([s], [], [])
def exactly(s, n):
    got = b''
    while len(got) < n:
        more = s.recv(n - len(got)); assert more; got += more
    return got
def served_by(serve, *args):
    pid = os.fork()
    if pid == 0:
        serve(*args); os._exit(0)
    return pid
def ended(pid): assert os.waitpid(pid, 0)[1] == 0
"#;

/// Requests of every kind, each as many times as the test says.
const KINDS: &str = r#"
tcp = listening(); unix = listening(socket.AF_UNIX, 'here')
print('port', tcp.getsockname()[1], flush=True)
def serve():
    for count in (20, 5):
        c, _ = tcp.accept()
        for n in range(count): assert exactly(c, 3) == b'ask'; c.send(b'answer')
        assert not c.recv(1); c.close()
    # Requests that are alike in nothing: in pieces, with an answer in pieces, and one without a wait for its end.
    c, _ = tcp.accept()
    for n in range(4):
        exactly(c, 3); c.send(b'go on'); exactly(c, 5); c.send(b'an'); c.send(b'swer')
    c.close()
    # The next request is there before this one is answered.
    c, _ = tcp.accept()
    exactly(c, 1); readable(c); c.send(b'1'); exactly(c, 1); c.send(b'2')
    c.close()
    # No answer: once it is read, and once it is not.
    c, _ = tcp.accept(); exactly(c, 3); c.close()
    c, _ = tcp.accept(); readable(c); c.close()
    # The end of what is asked, before the answer.
    c, _ = tcp.accept(); exactly(c, 3); assert not c.recv(1); c.send(b'answer'); c.close()
    # A greeting is no answer.
    c, _ = tcp.accept(); c.send(b'hello'); exactly(c, 3); c.send(b'answer'); assert not c.recv(1); c.close()
    c, _ = unix.accept()
    for n in range(7): exactly(c, 3); c.send(b'answer')
    assert not c.recv(1); c.close()
    c, _ = unix.accept(); exactly(c, 3); c.close()
server = served_by(serve)
def connected(): return socket.create_connection(tcp.getsockname())
for count in (20, 5):
    s = connected()
    for n in range(count): s.send(b'ask'); exactly(s, 6)
    s.close()
s = connected()
for n in range(4): s.send(b'ask'); exactly(s, 5); s.send(b'a'); s.send(b'gain'); exactly(s, 6)
s.close()
s = connected(); s.send(b'1'); time.sleep(0.01); s.send(b'2'); exactly(s, 2); s.close()
s = connected(); s.send(b'ask')
assert not s.recv(1)
s.close()
s = connected(); s.send(b'ask')
try: s.recv(1)
except ConnectionResetError: pass
s.close()
s = connected(); s.send(b'ask'); s.shutdown(socket.SHUT_WR); exactly(s, 6); s.close()
s = connected(); exactly(s, 5); s.send(b'ask'); exactly(s, 6); s.close()
s = socket.socket(socket.AF_UNIX); s.connect('here')
for n in range(7): s.send(b'ask'); exactly(s, 6)
s.close()
s = socket.socket(socket.AF_UNIX); s.connect('here'); s.send(b'ask'); assert not s.recv(1); s.close()
ended(server)
"#;

fn tracing(options: &[&str], script: &str) -> Tracing {
    Tracing::new("bpf", options, &["python3", "-c", &format!("{COMMON}{script}")])
}

fn finished(mut tracing: Tracing) -> Traced {
    let folder = tempfile::tempdir().unwrap();
    tracing.command.current_dir(folder.path());
    let traced = tracing.run();
    assert_eq!(traced.code(), 0, "{}", traced.stderr());
    traced
}

fn run(script: &str) -> Traced {
    finished(tracing(&["--requests"], script))
}

/// The sum of the rows of a protocol and a role. A shell script that finds the interpreter may ask the name service.
fn sum(record: &Trace, protocol: &str, role: Role) -> Exchange {
    let mut sum = Exchange::default();
    let is = |row: &&Exchange| {
        row.exec == "python3" && row.ends.protocol == protocol && row.ends.role == Some(role)
    };
    record.requests.iter().filter(is).for_each(|row| sum.merge(row));
    sum
}

fn counts(row: &Exchange) -> [u64; 5] {
    [row.requests, row.unanswered, row.in_flight, row.pipelined, row.moved]
}

fn port(traced: &Traced) -> u16 {
    let stdout = traced.stdout();
    stdout.lines().find_map(|line| line.strip_prefix("port ")).unwrap().trim().parse().unwrap()
}

#[test]
fn requests_are_those_that_were_made_on_both_ends() {
    if !bpf() || !has("python3") {
        return;
    }
    let traced = run(KINDS);
    let record = traced.whole_record();
    // Two in a keep-alive connection each for four with `go on`, and two of the pipelined one.
    assert_eq!(counts(&sum(&record, "tcp", Role::Accept)), [20 + 5 + 8 + 2 + 1 + 1, 2, 0, 1, 0]);
    // What is asked twice before an answer is one.
    assert_eq!(counts(&sum(&record, "tcp", Role::Connect)), [20 + 5 + 8 + 1 + 1 + 1, 2, 0, 0, 0]);
    assert_eq!(counts(&sum(&record, "unix", Role::Accept)), [7, 1, 0, 0, 0]);
    assert_eq!(counts(&sum(&record, "unix", Role::Connect)), [7, 1, 0, 0, 0]);
    let (address, path) = (format!("127.0.0.1:{}", port(&traced)), "here");
    for row in record.requests.iter().filter(|row| row.exec == "python3") {
        let end = match row.ends.role {
            Some(Role::Accept) => &row.ends.local,
            _ => &row.ends.remote,
        };
        let end = end.as_deref().unwrap();
        assert!(end == address || end == path, "{row:?}");
        assert_eq!(row.unseen_arrivals, 0, "{row:?}");
    }
    let text = traced.stderr();
    for part in [&*format!("tcp {address}"), "served", "asked", "without an answer"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page =
        iotomy(&["report", "--csv", "--part", "requests", "-o", "-"]).arg(traced.json()).output();
    let page = String::from_utf8(page.unwrap().stdout).unwrap();
    assert!(page.starts_with("peer,role,requests,p50_ns"), "{page}");
}

#[test]
fn peers_of_requests_have_the_names_that_the_system_knows() {
    let known = std::process::Command::new("getent").args(["hosts", "127.0.0.1"]).output();
    let known = known.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let Some(name) = known.unwrap_or_default().split_whitespace().nth(1).map(str::to_owned) else {
        return support::skip(support::Need::Machine, "getent knows no name of 127.0.0.1");
    };
    if !bpf() || !has("python3") {
        return;
    }
    // The other tables have no call on a socket, and so no address.
    let traced = finished(tracing(&["--requests", "--resolve", "--call", "getpid"], KINDS));
    let record = traced.record();
    assert!(record.connections.is_empty());
    assert!(record.files.iter().all(|file| file.socket.is_none()), "{:#?}", record.files);
    assert_eq!(record.host_names, [("127.0.0.1".to_owned(), name.clone())].into());
    let (port, text) = (port(&traced), traced.stderr());
    for peer in
        [format!("tcp 127.0.0.1:{port} {name}"), format!("127.0.0.1 {name} (port {port} here)")]
    {
        assert!(text.contains(&peer), "{peer}: {text}");
    }
    let refused = iotomy(&["trace", "--resolve", "--", "true"]).output().unwrap();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && text.contains("--requests"), "{text}");
}

/// Each answer comes 50 ms after its request, and each takes another way there.
const DELAYS: &str = r#"
direct, proxy, backend = listening(), listening(), listening()
print('port', direct.getsockname()[1], proxy.getsockname()[1], backend.getsockname()[1], flush=True)
def slow(l):
    c, _ = l.accept()
    while c.recv(3): time.sleep(0.05); c.send(b'answer')
    c.close()
def passes_on():
    c, _ = proxy.accept(); s = socket.create_connection(backend.getsockname())
    n = 0
    while c.recv(3):
        s.send(b'ask')
        if n % 2: readable(s)
        exactly(s, 6); c.send(b'answer'); n += 1
    s.close(); c.close()
servers = [served_by(slow, direct), served_by(slow, backend), served_by(passes_on)]
for l in (direct, proxy):
    s = socket.create_connection(l.getsockname())
    for n in range(6): s.send(b'ask'); exactly(s, 6)
    s.close()
for one in servers: ended(one)
"#;

const SLEEP: u64 = 50_000_000;

/// Whether a thread was blocked for this as long as it was to wait each time: but for when it came to that late.
fn is_blocked(row: &Exchange, blocked_ns: u64, times: u64) -> bool {
    blocked_ns > 0 && blocked_ns + row.on_cpu_ns + row.runnable_ns >= times * SLEEP
}

#[test]
fn a_delay_is_in_the_part_that_it_is_of() {
    if !bpf() || !has("python3") {
        return;
    }
    let traced = run(DELAYS);
    let record = traced.whole_record();
    let stdout = traced.stdout();
    let ports: Vec<&str> =
        stdout.lines().find_map(|line| line.strip_prefix("port ")).unwrap().split(' ').collect();
    let row = |role: Role, port: usize| {
        let end = format!("127.0.0.1:{}", ports[port]);
        let is = |row: &&Exchange| {
            let of_role = match role {
                Role::Accept => &row.ends.local,
                Role::Connect => &row.ends.remote,
            };
            row.ends.role == Some(role) && of_role.as_deref() == Some(&*end)
        };
        let found: Vec<_> = record.requests.iter().filter(is).collect();
        assert_eq!(found.len(), 1, "{role:?} {end}: {:#?}", record.requests);
        assert_eq!(counts(found[0]), [6, 0, 0, 0, 0]);
        let row = found[0];
        assert!(row.wall_times.quantile(0.001) >= SLEEP / 100 * 97, "{row:?}");
        assert!(row.wall_ns >= 6 * SLEEP && row.max_ns >= SLEEP, "{row:?}");
        row.clone()
    };
    for slept in [row(Role::Accept, 0), row(Role::Accept, 2)] {
        assert!(is_blocked(&slept, slept.other_ns, 6) && slept.peer_ns == 0, "{slept:?}");
    }
    // The proxy waits by turns in the read itself, and for events.
    let ends =
        [row(Role::Accept, 1), row(Role::Connect, 0), row(Role::Connect, 1), row(Role::Connect, 2)];
    for waited in ends {
        assert!(is_blocked(&waited, waited.peer_ns, 6), "{waited:?}");
        let is_asked = waited.ends.role == Some(Role::Connect);
        assert!(!is_asked || waited.unread_ns == 0, "{waited:?}");
    }
}

/// A lock that is let go 50 ms after its thread was seen to wait for it.
const LOCKS: &str = r#"
l = listening(); lock = threading.Lock(); asks = threading.Event()
def lets_go(tid):
    for n in range(4):
        asks.wait(); asks.clear()
        while not open('/proc/self/task/%d/syscall' % tid).read().startswith('202 '): time.sleep(0.001)
        time.sleep(0.05); lock.release()
def serve():
    threading.Thread(target=lets_go, args=[threading.get_native_id()], daemon=True).start()
    c, _ = l.accept(); lock.acquire()
    while c.recv(3): asks.set(); lock.acquire(); c.send(b'answer')
server = served_by(serve)
s = socket.create_connection(l.getsockname())
for n in range(4): s.send(b'ask'); exactly(s, 6)
s.close(); ended(server)
"#;

#[test]
fn a_wait_for_a_lock_is_one() {
    if !bpf() || !has("python3") {
        return;
    }
    let served = sum(&run(LOCKS).whole_record(), "tcp", Role::Accept);
    assert_eq!(counts(&served), [4, 0, 0, 0, 0]);
    assert!(is_blocked(&served, served.lock_ns, 4), "{served:?}");
}

/// A process each, and a thread that reads with another one that answers.
const HANDED_OVER: &str = r#"
forks, threads = listening(), listening()
print('port', threads.getsockname()[1], flush=True)
def serve_by_processes():
    for n in range(3):
        c, _ = forks.accept()
        def answers():
            while c.recv(3): c.send(b'answer')
        one = served_by(answers); c.close(); ended(one)
def serve_by_threads():
    c, _ = threads.accept(); turns = [threading.Semaphore(0), threading.Semaphore(0)]
    def answers():
        for n in range(8): turns[0].acquire(); time.sleep(0.05); c.send(b'answer'); turns[1].release()
    one = threading.Thread(target=answers); one.start()
    for n in range(8): exactly(c, 3); turns[0].release(); turns[1].acquire()
    one.join(); assert not c.recv(1); c.close()
servers = [served_by(serve_by_processes), served_by(serve_by_threads)]
def asks(l, count):
    s = socket.create_connection(l.getsockname())
    for n in range(count): s.send(b'ask'); exactly(s, 6)
    s.close()
for n in range(3): asks(forks, 5)
asks(threads, 8)
for one in servers: ended(one)
"#;

#[test]
fn requests_that_are_handed_over_count_for_who_reads_them() {
    if !bpf() || !has("python3") {
        return;
    }
    let traced = finished(tracing(&["--requests", "--each"], HANDED_OVER));
    let record = traced.whole_record();
    let local = format!("127.0.0.1:{}", port(&traced));
    let served = record.requests.iter().filter(|row| row.ends.role == Some(Role::Accept));
    let (handed, forked): (Vec<_>, Vec<_>) =
        served.partition(|row| row.ends.local.as_deref() == Some(&*local));
    let [handed] = handed[..] else { panic!("{handed:#?}") };
    assert_eq!(counts(handed), [8, 0, 0, 0, 8]);
    assert!(handed.elsewhere_ns >= 8 * SLEEP, "{handed:?}");
    let each: Vec<_> = forked.iter().map(|row| counts(row)).collect();
    assert_eq!(each, [[5, 0, 0, 0, 0]; 3], "{forked:#?}");
    assert!(traced.stderr().contains("8 moved between threads"), "{}", traced.stderr());
}

/// Connections that are older than the watch, and one whose end has been said.
const BEFORE: &str = r#"
l = listening(); one = socket.create_connection(l.getsockname()); served, _ = l.accept()
for n in range(3): one.send(b'ask'); exactly(served, 3); served.send(b'answer'); exactly(one, 6)
half = socket.create_connection(l.getsockname()); other, _ = l.accept()
half.send(b'ask'); exactly(other, 3); half.shutdown(socket.SHUT_WR); assert not other.recv(1)
u = listening(socket.AF_UNIX, '\0iotomy-test-%d' % os.getpid())
c = socket.socket(socket.AF_UNIX); c.connect(u.getsockname()); s, _ = u.accept()
print('ready', flush=True); sys.stdin.readline()
for n in range(4): one.send(b'ask'); exactly(served, 3); served.send(b'answer'); exactly(one, 6)
for n in range(2): c.send(b'ask'); exactly(s, 3); s.send(b'answer'); exactly(c, 6)
other.send(b'answer'); exactly(half, 6)
one.send(b'ask'); readable(served)
print('done', flush=True); sys.stdin.readline()
"#;

#[test]
fn who_asks_is_known_of_connections_from_before_the_watch() {
    if !bpf() || !has("python3") {
        return;
    }
    let script = format!("{COMMON}{BEFORE}");
    let (mut server, ready) = BackgroundProcess::ready(&["python3", "-c", &script]);
    assert_eq!(ready, "ready");
    let pid = server.pid();
    let watching = Tracing::new("bpf", &["--requests", "-p", &pid.to_string()], &[]).start();
    until_watching(&watching, "bpf", pid);
    server.say("go\n");
    assert_eq!(server.line(), "done");
    watching.signal(Signal::SIGINT);
    let traced = watching.end();
    server.end();
    let record = traced.record();
    let all = |protocol: &str, role: Role| {
        let mut all = Exchange::default();
        let is = |row: &&Exchange| row.ends.protocol == protocol && row.ends.role == Some(role);
        record.requests.iter().filter(is).for_each(|row| all.merge(row));
        all
    };
    assert_eq!(counts(&all("tcp", Role::Accept)), [4, 0, 1, 0, 0], "{:#?}", record.requests);
    assert_eq!(counts(&all("tcp", Role::Connect)), [4, 0, 1, 0, 0], "{:#?}", record.requests);
    assert_eq!(counts(&all("unix", Role::Accept)), [2, 0, 0, 0, 0]);
    assert_eq!(counts(&all("unix", Role::Connect)), [2, 0, 0, 0, 0]);
    assert_eq!(record.observer.unclear_connections, 1, "{:#?}", record.requests);
    assert!(traced.stderr().contains("which end asks is not known of 1 connection"));
}

/// A server whose threads wait in reads when the watch begins.
const IN_READS: &str = r#"
tcp = listening(); unix = listening(socket.AF_UNIX, '\0iotomy-test-%d' % os.getpid())
ends = [socket.create_connection(tcp.getsockname()), socket.socket(socket.AF_UNIX)]
ends[1].connect(unix.getsockname())
tids = []
def serve(l):
    c, _ = l.accept(); tids.append(threading.get_native_id())
    while c.recv(3): c.send(b'answer')
threads = [threading.Thread(target=serve, args=[l]) for l in (tcp, unix)]
for t in threads: t.start()
def is_in_read(tid): return open('/proc/self/task/%d/syscall' % tid).read().startswith('45 ')
while len(tids) < 2 or not all(is_in_read(tid) for tid in tids): time.sleep(0.001)
print('ready', flush=True); sys.stdin.readline()
for n in range(3):
    for e in ends: e.send(b'ask'); exactly(e, 6)
for e in ends: e.shutdown(socket.SHUT_WR)
for t in threads: t.join()
print('done', flush=True); sys.stdin.readline()
"#;

#[test]
fn a_request_whose_read_was_under_way_when_the_watch_began_is_counted() {
    if !bpf() || !has("python3") {
        return;
    }
    let script = format!("{COMMON}{IN_READS}");
    let (mut server, ready) = BackgroundProcess::ready(&["python3", "-c", &script]);
    assert_eq!(ready, "ready");
    let pid = server.pid();
    let watching = Tracing::new("bpf", &["--requests", "-p", &pid.to_string()], &[]).start();
    until_watching(&watching, "bpf", pid);
    server.say("go\n");
    assert_eq!(server.line(), "done");
    watching.signal(Signal::SIGINT);
    let traced = watching.end();
    server.end();
    for protocol in ["tcp", "unix"] {
        let served = sum(&traced.record(), protocol, Role::Accept);
        assert_eq!(counts(&served), [3, 0, 0, 0, 0], "{protocol}: {served:?}");
        assert_eq!(served.unseen_arrivals, 1, "{protocol}: {served:?}");
        let asked = sum(&traced.record(), protocol, Role::Connect);
        assert_eq!(counts(&asked), [3, 0, 0, 0, 0], "{protocol}: {asked:?}");
    }
}

#[test]
fn requests_are_the_same_without_what_may_be_refused() {
    if !bpf() || !root() || !has("python3") {
        return;
    }
    for refused in [
        "section=tp_btf/tcp_destroy_sock:EPERM",
        "map=9:EINVAL",
        "map=29:EINVAL",
        "map=29:EPERM,section=tp_btf/sk_data_ready:EPERM",
    ] {
        let mut tracing = tracing(&["--requests"], KINDS);
        tracing.command.env("IOTOMY_REFUSE", refused);
        let record = finished(tracing).record();
        for (protocol, role, expected) in [
            ("tcp", Role::Accept, [37, 2, 0, 1, 0]),
            ("tcp", Role::Connect, [36, 2, 0, 0, 0]),
            ("unix", Role::Accept, [7, 1, 0, 0, 0]),
            ("unix", Role::Connect, [7, 1, 0, 0, 0]),
        ] {
            let found = counts(&sum(&record, protocol, role));
            assert_eq!(found, expected, "{refused}: {protocol} {role:?}");
        }
    }
    let mut tracing = tracing(&["--requests"], KINDS);
    tracing.command.env("IOTOMY_REFUSE", "program=exchange_enter:EPERM");
    let traced = finished(tracing);
    let record = traced.record();
    assert!(record.requests.is_empty(), "{:#?}", record.requests);
    let missing = &record.observer.missing;
    assert!(missing.iter().any(|one| one.feature == "requests"), "{missing:?}");
    let stderr = traced.stderr();
    assert!(stderr.contains("the kernel refused requests ("), "{stderr}");
    assert!(!stderr.contains("no counted request went"), "{stderr}");
}

#[test]
fn without_the_tracepoint_of_arrivals_requests_begin_with_their_first_read() {
    if !bpf() || !has("python3") {
        return;
    }
    let mut tracing = tracing(&["--requests"], KINDS);
    tracing.command.env("IOTOMY_REFUSE", "section=tp_btf/sk_data_ready:EPERM");
    let traced = finished(tracing);
    let record = traced.whole_record();
    for (protocol, requests) in [("tcp", 37), ("unix", 7)] {
        let served = sum(&record, protocol, Role::Accept);
        assert_eq!((served.requests, served.unseen_arrivals), (requests, requests), "{served:?}");
        assert_eq!(served.unread_ns, 0, "{served:?}");
    }
    assert_eq!(sum(&record, "tcp", Role::Accept).pipelined, 1);
    let missing = &record.observer.missing;
    assert!(missing.iter().any(|one| one.feature == "sk_data_ready"), "{missing:?}");
    assert!(traced.stderr().contains("the kernel refused sk_data_ready (EPERM)"));
}

#[test]
fn requests_without_room_are_counted_as_lost() {
    if !bpf() || !has("python3") {
        return;
    }
    const MANY: &str = r#"
u = listening(socket.AF_UNIX, 'here'); ends = []
for n in range(300):
    c = socket.socket(socket.AF_UNIX); c.connect('here'); s, _ = u.accept(); ends += [c, s]
    c.send(b'ask'); exactly(s, 3); s.send(b'answer'); exactly(c, 6)
"#;
    let traced = finished(tracing(&["--requests", "--max-rows", "128"], MANY));
    let record = traced.record();
    let counted: u64 = record.requests.iter().map(|row| row.requests).sum();
    assert!((1..=128).contains(&counted), "{:#?}", record.requests);
    // Each end of the others was met three times in vain: as it was made, by a write and by a read.
    assert_eq!(record.observer.lost_exchanges, 3 * (600 - counted), "{counted}");
    assert!(traced.stderr().contains("did not fit, or calls on such"), "{}", traced.stderr());
}

/// A process for each connection, many one after another, and one that serves all of them at last.
const MANY_PROCESSES: &str = r#"
unix = listening(socket.AF_UNIX, 'here'); tcp = listening()
def answers(c, count):
    for n in range(count): exactly(c, 3); c.send(b'answer')
    assert not c.recv(1)
def serve():
    for n in range(300):
        c, _ = unix.accept()
        one = served_by(answers, c, 3); c.close(); ended(one)
    for n in range(5): c, _ = tcp.accept(); answers(c, 4); c.close()
server = served_by(serve)
def asks(s, count):
    for n in range(count): s.send(b'ask'); exactly(s, 6)
    s.close()
for n in range(300): s = socket.socket(socket.AF_UNIX); s.connect('here'); asks(s, 3)
for n in range(5): asks(socket.create_connection(tcp.getsockname()), 4)
ended(server)
"#;

/// Of all records of intervals, a protocol and a role.
fn sum_of(records: &[Trace], protocol: &str, role: Role) -> Exchange {
    let mut all = Exchange::default();
    records.iter().for_each(|record| all.merge(&sum(record, protocol, role)));
    all
}

#[test]
fn requests_of_intervals_add_up_to_those_that_were_made() {
    if !bpf() || !has("python3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{COMMON}{MANY_PROCESSES}");
    let words = ["trace", "--observer", "bpf", "--requests", "-i", "0.1", "--json", "-", "--"];
    let mut run = iotomy(&words);
    run.args(["python3", "-c", &script]).current_dir(folder.path());
    let output = run.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let record = |line: &str| serde_json::from_str::<Trace>(line).unwrap();
    let records: Vec<Trace> = lines.lines().map(record).collect();
    assert!(records.len() > 1, "{}", records.len());
    for (protocol, role, requests) in [
        ("unix", Role::Accept, 900),
        ("unix", Role::Connect, 900),
        ("tcp", Role::Accept, 20),
        ("tcp", Role::Connect, 20),
    ] {
        let all = sum_of(&records, protocol, role);
        assert_eq!(counts(&all), [requests, 0, 0, 0, 0], "{protocol} {role:?}");
        assert_eq!(all.wall_times.total(), requests, "{protocol} {role:?}");
    }
    let lost: u64 = records.iter().map(|record| record.observer.lost_exchanges).sum();
    assert_eq!(lost, 0);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("peer of requests") && text.contains("p99.9"), "{text}");
}

#[test]
fn the_last_stretch_has_its_requests() {
    if !bpf() || !has("python3") {
        return;
    }
    let traced = finished(tracing(&["--requests", "--ring", "600"], KINDS));
    // What holds in a record of a whole watch does not in that of a stretch.
    let record = iotomy_record::store::load_trace(traced.json()).unwrap();
    assert!(record.ring.is_some());
    for (protocol, role, expected) in [
        ("tcp", Role::Accept, [37, 2, 0, 1, 0]),
        ("tcp", Role::Connect, [36, 2, 0, 0, 0]),
        ("unix", Role::Accept, [7, 1, 0, 0, 0]),
        ("unix", Role::Connect, [7, 1, 0, 0, 0]),
    ] {
        let found = counts(&sum(&record, protocol, role));
        assert_eq!(found, expected, "{protocol} {role:?}");
    }
}

#[test]
fn requests_are_refused_where_they_cannot_be_timed() {
    let refused = |options: &[&str]| {
        let run = iotomy(&["trace", "--requests"]).args(options).args(["--", "true"]).output();
        let run = run.unwrap();
        assert!(!run.status.success(), "{options:?}: {run:?}");
        String::from_utf8(run.stderr).unwrap()
    };
    let stderr = refused(&["--observer", "ptrace"]);
    assert!(stderr.contains("--requests") && stderr.contains("use the observer bpf"), "{stderr}");
}
