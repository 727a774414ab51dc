//! What is at the other end of sockets and pipes.

use crate::support;

use std::collections::BTreeSet;

use iotomy_record::{Connection, FileKind, FileUse, Role, Socket, Trace};
use iotomy_sys::launch::{Command, Setup};
use support::{IOTOMY, Tracing, bare, each_observer, has, iotomy, traced};

const PIDFD_GETFD: u32 = 438;
const EPERM: u32 = 1;

/// Talks to itself by every kind of socket, and prints the addresses.
const TALK: &str = r#"
import os, socket, threading
a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen(4)
def serve():
    for n in range(3):
        c, _ = a.accept(); c.send(b'x' * 100); c.recv(9); c.close()
t = threading.Thread(target=serve); t.start()
for n in range(3):
    s = socket.create_connection(a.getsockname()); s.recv(100, socket.MSG_WAITALL)
    print('tcp', s.getsockname()[1], flush=True); s.send(b'12345678'); s.close()
t.join()
print('port', a.getsockname()[1], flush=True)
l = socket.socket(socket.AF_UNIX); l.bind('here'); l.listen(1)
if os.fork() == 0:
    c = socket.socket(socket.AF_UNIX); c.connect('here'); c.send(b'hello'); c.recv(2); os._exit(0)
c, _ = l.accept(); c.recv(10); c.send(b'zz'); os.wait()
n = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); n.bind('\0iotomy-test-%d' % os.getpid()); n.connect('\0iotomy-test-%d' % os.getpid()); n.send(b'abc'); n.recv(9)
try:
    u = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); u.connect(('::1', 9)); u.send(b'hi'); print('udp6', u.getsockname()[1])
except OSError:
    pass
"#;

fn sockets(record: &Trace) -> Vec<(&FileUse, &Socket)> {
    record.files.iter().filter_map(|file| Some((file, file.socket.as_ref()?))).collect()
}

#[test]
fn sockets_have_the_addresses_that_the_program_sees() {
    if has("python3") {
        each_observer(addresses_of_sockets);
    }
}

fn addresses_of_sockets(observer: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut tracing = Tracing::new(observer, &["--peers"], &["python3", "-c", TALK]);
    tracing.command.current_dir(folder.path());
    let traced = tracing.run();
    assert_eq!(traced.code(), 0, "{}", traced.stderr());
    let stdout = traced.stdout();
    let numbers = |what: &str| -> Vec<u16> {
        let lines = stdout.lines().filter_map(|line| line.strip_prefix(what));
        lines.map(|number| number.trim().parse().unwrap()).collect()
    };
    let record = traced.record();
    let sockets = sockets(&record);
    let server = format!("127.0.0.1:{}", numbers("port")[0]);
    let of_tcp = |local: &str, remote: &str| {
        let is = |(_, socket): &&(&FileUse, &Socket)| {
            socket.protocol == "tcp"
                && socket.local.as_deref() == Some(local)
                && socket.remote.as_deref() == Some(remote)
        };
        let found = sockets.iter().find(is);
        found.unwrap_or_else(|| panic!("{local} to {remote}: {sockets:#?}")).0
    };
    let clients = numbers("tcp");
    assert_eq!(clients.len(), 3);
    for client in clients {
        let client = format!("127.0.0.1:{client}");
        let (there, back) = (of_tcp(&client, &server), of_tcp(&server, &client));
        assert_eq!((there.read_bytes, there.write_bytes), (100, 8), "{there:?}");
        assert_eq!((back.read_bytes, back.write_bytes), (8, 100), "{back:?}");
    }
    let unix = |is: &dyn Fn(&Socket) -> bool| {
        let found = sockets.iter().find(|(_, socket)| socket.protocol == "unix" && is(socket));
        found.copied().unwrap_or_else(|| panic!("{sockets:#?}"))
    };
    let (listened, of_server) = unix(&|socket| socket.local.as_deref() == Some("here"));
    let (connected, of_client) = unix(&|socket| socket.remote.as_deref() == Some("here"));
    assert_eq!((listened.read_bytes, listened.write_bytes), (5, 2));
    assert_eq!((connected.read_bytes, connected.write_bytes), (2, 5));
    assert_eq!(of_server.peer_pid, Some(connected.pid));
    assert_eq!(of_client.peer_pid, Some(listened.pid));
    assert_eq!(of_client.peer.as_deref(), Some(listened.exec.as_str()));
    let is_datagram = |(_, socket): &&(&FileUse, &Socket)| socket.protocol == "unix-datagram";
    let (_, datagram) = sockets.iter().find(is_datagram).unwrap();
    let name = format!("@iotomy-test-{}", listened.pid);
    assert_eq!(datagram.local.as_deref(), Some(name.as_str()));
    assert_eq!(datagram.remote.as_deref(), Some(name.as_str()));
    if let [port] = *numbers("udp6") {
        let (file, udp) = sockets.iter().find(|(_, socket)| socket.protocol == "udp").unwrap();
        assert_eq!(udp.local, Some(format!("[::1]:{port}")));
        assert_eq!((udp.remote.as_deref(), file.write_bytes), (Some("[::1]:9"), 2));
    }
    let text = traced.stderr();
    // Three connections of one host to one port here.
    let (_, port) = server.rsplit_once(':').unwrap();
    assert!(text.contains(&format!("tcp 127.0.0.1 (port {port} here)")), "{text}");
    assert!(text.contains(&format!("tcp {server}  ")), "{text}");
    assert!(text.contains("unix to here of "), "{text}");
}

/// Connects to itself by names that are no UTF-8 and have signs for terminals in them.
const STRANGE: &str = r#"
import socket
for name in (b'p\xfe\x07', b'\0n\xff\x1b[2J\0x'):
    l = socket.socket(socket.AF_UNIX); l.bind(name); l.listen(1)
    c = socket.socket(socket.AF_UNIX); c.connect(name); a, _ = l.accept()
    c.send(b'hello'); a.recv(5)
"#;

#[test]
fn names_of_sockets_that_are_no_text_are_kept_and_shown_as_escapes() {
    if !has("python3") {
        return;
    }
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let mut tracing = Tracing::new(observer, &["--peers"], &["python3", "-c", STRANGE]);
        tracing.command.current_dir(folder.path());
        let traced = tracing.run();
        let record = traced.record();
        let expected = ["@n\\xff\u{1b}[2J\0x", "p\\xfe\u{7}"].map(String::from);
        let sockets = sockets(&record).into_iter();
        let names = sockets.flat_map(|(_, socket)| [&socket.local, &socket.remote]).flatten();
        let names: BTreeSet<&String> = names.collect();
        assert!(names.into_iter().eq(&expected), "{observer}: {:?}", record.files);
        // A shell script that finds the interpreter may ask the name service.
        let by_script = record.connections.iter().filter(|one| one.exec == "python3");
        let peers: BTreeSet<&String> =
            by_script.flat_map(|one| [&one.ends.local, &one.ends.remote]).flatten().collect();
        assert!(peers.into_iter().eq(&expected), "{observer}: {:?}", record.connections);
        let page = iotomy(&["report", "-o", "-"]).arg(traced.json()).output().unwrap();
        let page = String::from_utf8(page.stdout).unwrap();
        for shown in ["unix to @n\\xff\\x1b[2J\\x00x of ", "unix to p\\xfe\\x07 of "] {
            assert!(traced.stderr().contains(shown), "{observer}: {}", traced.stderr());
            assert!(page.contains(shown), "{observer}: {shown}");
        }
        for text in [traced.stderr(), &page] {
            let is_plain = |line: &str| iotomy_record::printable(line, true) == line;
            assert!(text.lines().all(is_plain), "{observer}: {text}");
        }
    });
}

#[test]
fn pipes_have_the_processes_at_their_ends() {
    each_observer(|observer| {
        let script = "seq 1000 | sort | tail -1";
        let traced = traced(observer, &["--peers"], &["sh", "-c", script]);
        let record = traced.record();
        let pid = |exec: &str| record.processes.iter().rfind(|one| one.exec == exec).unwrap().pid;
        let [seq, sort, tail] = ["seq", "sort", "tail"].map(pid);
        let text = traced.stderr();
        assert!(text.contains(&format!("pipe from seq ({seq}) to sort ({sort})")), "{text}");
        assert!(text.contains(&format!("pipe from sort ({sort}) to tail ({tail})")), "{text}");
    });
}

/// Sends to a receiver that does not read until nothing more fits, and stays so for a while. Prints TCP's figures, and
/// what `ss` has of them.
const STALL: &str = r#"
import shutil, select, socket, struct, subprocess
a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen(1)
s = socket.create_connection(a.getsockname()); c, _ = a.accept()
s.setblocking(False)
while select.select([], [s], [], 0.3)[1]:
    try: s.send(b'x' * 65536)
    except BlockingIOError: pass
print('port', a.getsockname()[1], flush=True)
if shutil.which('ss'):
    line = subprocess.run(['ss', '-Htin', 'dport = :%d' % a.getsockname()[1]], capture_output=True, text=True).stdout
    words = line.replace('(', ' ').split()
    print('ss', *(w for w in words if w.split(':')[0] in ('cwnd', 'busy', 'rwnd_limited')), flush=True)
info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
at = lambda form, offset: struct.unpack_from(form, info, offset)[0]
print('cwnd', at('I', 80), flush=True); print('again', at('I', 100), flush=True); print('busy', at('Q', 168), flush=True); print('limited', at('Q', 176), flush=True)
print('window', at('I', 228) if len(info) >= 232 else 'unknown', flush=True)
"#;

#[test]
fn a_receiver_that_does_not_read_limits_its_sender_by_its_window() {
    if has("python3") {
        each_observer(limits_of_a_stalled_sender);
    }
}

fn limits_of_a_stalled_sender(observer: &str) {
    let traced = traced(observer, &["--peers"], &["python3", "-c", STALL]);
    assert_eq!(traced.code(), 0, "{}", traced.stderr());
    let stdout = traced.stdout();
    let word = |what: &str| {
        let line = stdout.lines().find_map(|line| line.strip_prefix(what));
        line.unwrap_or_else(|| panic!("{what}: {stdout}")).trim().to_owned()
    };
    let number = |what: &str| word(what).parse::<u64>().unwrap();
    let server = format!("127.0.0.1:{}", number("port"));
    let record = traced.record();
    let is = |one: &&Connection| one.ends.remote.as_deref() == Some(&server);
    let sender = record.connections.iter().find(is).unwrap();
    let tcp = sender.tcp.as_ref().unwrap();
    let (busy, limited) = (tcp.busy_ns.unwrap(), tcp.rwnd_limited_ns.unwrap());
    // It has gone on since.
    assert!(limited > 0 && busy >= limited, "{observer}: {tcp:?}");
    assert!(limited >= number("limited") * 1000 && busy >= number("busy") * 1000, "{tcp:?}");
    assert!(tcp.sndbuf_limited_ns.is_some(), "{tcp:?}");
    let cwnd = tcp.cwnd_segments.unwrap();
    assert!(tcp.measured == 1 && cwnd > 0, "{observer}: {tcp:?}");
    assert_eq!((tcp.min_cwnd_segments, tcp.max_cwnd_segments), (cwnd, cwnd));
    // A segment that is sent again makes it smaller.
    if tcp.retransmits == number("again") {
        assert_eq!(cwnd, number("cwnd"), "{observer}: {tcp:?}");
    }
    if let Ok(window) = word("window").parse() {
        assert_eq!(tcp.snd_wnd_bytes, Some(window), "{observer}: {tcp:?}");
    }
    let receiver = record.connections.iter().find(|one| one.ends.role == Some(Role::Accept));
    let receiver = receiver.unwrap().tcp.as_ref().unwrap();
    assert_eq!(receiver.rwnd_limited_ns, Some(0), "it has sent nothing: {receiver:?}");
    if let Some(ss) = stdout.lines().find_map(|line| line.strip_prefix("ss ")) {
        let words = ss.split(' ').filter_map(|word| word.split_once(':'));
        let of = |name: &str| words.clone().find(|(word, _)| *word == name).unwrap().1;
        let ms = |name: &str| of(name).trim_end_matches("ms").parse::<u64>().unwrap();
        assert!(of("cwnd").parse::<u64>().unwrap() > 0, "{ss}");
        assert!(limited >= ms("rwnd_limited") * 1_000_000, "{ss}: {tcp:?}");
        assert!(busy >= ms("busy") * 1_000_000, "{ss}: {tcp:?}");
    }
    assert!(traced.stderr().contains("by the receiver's window"), "{}", traced.stderr());
}

/// Lets 5 connections wait before it accepts the first, and another listener's queue overflow. Prints what `ss` has of
/// the first queue, and what the second listener has dropped.
const QUEUES: &str = r#"
import shutil, socket, struct, subprocess, time
def until(holds):
    end = time.monotonic() + 20
    while not holds(): assert time.monotonic() < end
def listen(limit):
    a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen(limit)
    return a
def fill(a, count):
    waits = [socket.create_connection(a.getsockname()) for n in range(count)]
    until(lambda: struct.unpack_from('I', a.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 24)[0] >= count)
    return waits
a = listen(8); waits = fill(a, 5)
print('first', a.getsockname()[1], flush=True)
if shutil.which('ss'):
    line = subprocess.run(['ss', '-Htln', 'sport = :%d' % a.getsockname()[1]], capture_output=True, text=True).stdout
    print('ss', *line.split()[1:3], flush=True)
accepted = [a.accept() for n in range(5)]
b = listen(1); waits += fill(b, 2)
dropped = lambda: struct.unpack_from('I', b.getsockopt(socket.SOL_SOCKET, 55, 36), 32)[0]
late = socket.socket(); late.setblocking(False); late.connect_ex(b.getsockname())
until(dropped)
late.close()
print('second', b.getsockname()[1], flush=True)
print('dropped', dropped(), flush=True)
accepted += [b.accept() for n in range(2)]
"#;

#[test]
fn connections_that_wait_to_be_accepted_are_counted_at_the_accept() {
    if has("python3") {
        each_observer(queues_of_listeners);
    }
}

fn queues_of_listeners(observer: &str) {
    let traced = traced(observer, &["--peers"], &["python3", "-c", QUEUES]);
    assert_eq!(traced.code(), 0, "{}", traced.stderr());
    let stdout = traced.stdout();
    let line = |what: &str| stdout.lines().find_map(|line| line.strip_prefix(what)).map(str::trim);
    let record = traced.record();
    let of = |port: &str| {
        let local = format!("127.0.0.1:{port}");
        let is = |one: &&Connection| {
            one.ends.role == Some(Role::Accept) && one.ends.local.as_deref() == Some(&local)
        };
        record.connections.iter().find(is).unwrap()
    };
    let first = of(line("first ").unwrap());
    assert_eq!((first.opened, first.max_queued, first.queue_limit), (5, 5, 8), "{first:#?}");
    if let Some(ss) = line("ss ") {
        assert_eq!(ss, format!("{} {}", first.max_queued, first.queue_limit));
    }
    let second = of(line("second ").unwrap());
    assert_eq!((second.opened, second.max_queued, second.queue_limit), (2, 2, 1), "{second:#?}");
    let dropped = line("dropped ").unwrap().parse().unwrap();
    let expected = if observer == "bpf" { [Some(0), Some(dropped)] } else { [None, None] };
    assert_eq!([first.dropped, second.dropped], expected, "{observer}");
    let text = traced.stderr();
    assert!(text.contains("up to 5 in the queue (limit 8)"), "{text}");
    let counted = format!("up to 2 in the queue (limit 1), {dropped} dropped");
    assert_eq!(text.contains(&counted), observer == "bpf", "{text}");
}

#[test]
fn sockets_that_may_not_be_looked_at_are_told() {
    if !has("python3") || !support::ptrace() {
        return;
    }
    let script = "import socket; x, y = socket.socketpair(); x.send(b'a'); y.recv(1); \
                  s = socket.socket(); s.connect_ex(('127.0.0.1', 9))";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("record.json");
    let options = ["--peers", "--json", file.to_str().unwrap()];
    assert_eq!(status_without_copies(&[&options[..], &["python3", "-c", script]].concat()), 0);
    let record = iotomy_record::store::load_trace(&file).unwrap();
    let sockets = || record.files.iter().filter(|file| file.kind == FileKind::Socket);
    assert!(sockets().count() >= 2 && sockets().all(|file| file.socket.is_none()));
    assert!(record.connections.is_empty());
    let shown = bare(IOTOMY, &["show", file.to_str().unwrap()]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("sockets are not known to this observer"), "{shown}");
    // Calls cannot be counted by what cannot be known.
    assert_eq!(status_without_copies(&["--by", "peer", "true"]), 2);
}

/// The exit status of a trace by ptrace that may not copy descriptors.
fn status_without_copies(words: &[&str]) -> i32 {
    let words = [&[IOTOMY, "trace", "-q", "--observer", "ptrace"], words].concat();
    let denied = iotomy_sys::seccomp::Filter::deny(&[(PIDFD_GETFD, EPERM)]).unwrap();
    let setup = Setup { filter: Some(denied.into()), ..Setup::default() };
    let command = Command {
        program: IOTOMY.into(),
        argv: words.iter().map(Into::into).collect(),
        setup,
        ..Command::default()
    };
    let mask = nix::sys::signal::SigSet::thread_get_mask().unwrap();
    let child = iotomy_sys::launch::hold(&command, mask.as_ref()).unwrap();
    let pid = nix::unistd::Pid::from_raw(child.release().unwrap().cast_signed());
    match nix::sys::wait::waitpid(pid, None).unwrap() {
        nix::sys::wait::WaitStatus::Exited(_, status) => status,
        other => panic!("{other:?}"),
    }
}
