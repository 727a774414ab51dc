//! What is at the other end of sockets and pipes.

use crate::support;

use std::collections::BTreeSet;

use iotomy_record::{FileKind, FileUse, Socket, Trace};
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
    let said = traced.stdout();
    let numbers = |what: &str| -> Vec<u16> {
        let lines = said.lines().filter_map(|line| line.strip_prefix(what));
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
