//! Servers that tests start on ports of their own, and clients that know what they sent and received.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use iotomy_record::{FileKind, Trace};
use nix::sys::signal::Signal;

use super::{Tracing, Watching, children, send_if_there, state, until, until_watching};

/// A server; it is ended with the test by the signal.
pub(crate) struct Server {
    child: Child,
    by: Signal,
}

impl Server {
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().unwrap(), by: Signal::SIGKILL }
    }

    /// Starts a server and waits until it accepts connections.
    pub(crate) fn on(port: u16, command: &mut Command) -> Self {
        let mut server = Self::start(command);
        until("the server listens", || {
            assert!(server.child.try_wait().unwrap().is_none(), "{command:?} has ended");
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        server
    }

    /// Starts a server that prints its port.
    pub(crate) fn that_says_its_port(command: &mut Command) -> (Self, u16) {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Self { child, by: Signal::SIGKILL }, line.trim().parse().unwrap())
    }

    /// Ends it by another signal, so that it can tidy up.
    pub(crate) fn ended_by(self, by: Signal) -> Self {
        let mut server = self;
        server.by = by;
        server
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        send_if_there(self.pid(), self.by);
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago and that no other test gets: an abstract UNIX socket with its number is this
/// process's until it ends. The kernel gives it to no client: who asks for a port of clients until a server listens
/// there can be connected to itself.
pub(crate) fn free_port() -> u16 {
    static TAKEN: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let first_of_clients: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
    let taken = |port: &u16| {
        let name = SocketAddr::from_abstract_name(format!("iotomy-test-port-{port}")).unwrap();
        let token = UnixDatagram::bind_addr(&name).ok()?;
        TcpListener::bind(("127.0.0.1", *port)).ok().map(|_| token)
    };
    let mut ports = (1024..first_of_clients).rev();
    let (port, token) = ports
        .find_map(|port| taken(&port).map(|token| (port, token)))
        .expect("a port below those of clients");
    TAKEN.lock().unwrap().push(token);
    port
}

/// A connection, and the bytes that went over it.
pub(crate) struct Client {
    stream: TcpStream,
    pub(crate) asked: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl Client {
    pub(crate) fn to(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, asked: 0, sent: 0, received: 0 }
    }

    /// Sends a request and reads until the answer is whole.
    pub(crate) fn ask(&mut self, request: &str, is_whole: fn(&str) -> bool) -> String {
        self.stream.write_all(request.as_bytes()).unwrap();
        self.asked += 1;
        self.sent += request.len() as u64;
        let mut answer = Vec::new();
        while !is_whole(str::from_utf8(&answer).unwrap()) {
            let mut buffer = [0; 1 << 16];
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the server has hung up on {request:?}");
            answer.extend_from_slice(&buffer[..count]);
        }
        self.received += answer.len() as u64;
        String::from_utf8(answer).unwrap()
    }

    /// Asks for a path by HTTP and returns the body.
    pub(crate) fn get(&mut self, path: &str) -> String {
        let answer = self.ask(&format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"), is_http);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }
}

/// Whether an HTTP answer has its header and as many bytes as that says.
fn is_http(text: &str) -> bool {
    let Some((header, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = header.to_lowercase();
    let length = length.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.unwrap().trim().parse::<usize>().unwrap() == body.len()
}

/// Waits until every thread of a process and of its children is blocked: an answer arrives before the call returns by
/// which it was sent.
pub(crate) fn until_quiet(pid: u32) {
    until("the server is quiet", || {
        let is_blocked = |one: u32| {
            let threads = fs::read_dir(format!("/proc/{one}/task")).into_iter().flatten().flatten();
            let mut names = threads.filter_map(|thread| thread.file_name().into_string().ok());
            names.all(|thread| matches!(state(thread.parse().unwrap()), Some('S' | 'I') | None))
        };
        (is_blocked(pid) && children(pid).into_iter().all(is_blocked)).then_some(())
    });
}

/// Starts `iotomy trace` with the options between two requests, and waits until it watches.
pub(crate) fn watched(options: &[&str], pid: u32) -> Watching {
    until_quiet(pid);
    let watching = Tracing::new("bpf", &[&["--files"], options].concat(), &[]).start();
    until_watching(&watching, "bpf", pid);
    watching
}

/// Ends the watch of a server between two requests, and returns the record, of which nothing is lost.
pub(crate) fn ended(watching: Watching, pid: u32) -> Trace {
    until_quiet(pid);
    watching.signal(Signal::SIGINT);
    let traced = watching.end();
    assert_eq!(traced.code(), 0, "{}", traced.stderr());
    let record = traced.record();
    assert_eq!(record.observer.lost_events, 0, "{}", traced.stderr());
    record
}

/// What went through all sockets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sockets {
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    pub(crate) write_calls: u64,
}

impl Sockets {
    pub(crate) fn of(record: &Trace) -> Self {
        let mut all = Self::default();
        for file in record.files.iter().filter(|file| file.kind == FileKind::Socket) {
            all.read_bytes += file.read_bytes;
            all.write_bytes += file.write_bytes;
            all.write_calls += file.write_calls;
        }
        all
    }
}

/// Calls that did not fail.
pub(crate) fn successes(record: &Trace, syscall: &str) -> u64 {
    let rows = record.calls.iter().filter(|row| row.syscall == syscall);
    rows.map(|row| row.calls - row.errors).sum()
}

/// Waits until a file has this many lines, and returns them.
pub(crate) fn lines(file: &Path, number: usize) -> Vec<String> {
    until("the log is written", || {
        let text = fs::read_to_string(file).ok()?;
        (text.lines().count() >= number).then(|| text.lines().map(str::to_owned).collect())
    })
}
