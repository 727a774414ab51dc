//! Bytes from one thread to another through the kernel: a copy in and a copy out.
//!
//! ```text
//! |thread 1 ──write(2)──▶ buffer of the kernel ──read(2)──▶ thread 2
//! |           copy                               copy
//! ```
//!
//! The one invariant: the writer ends before the reader does. A flag stops the writer, and the
//! reader empties the channel to its end, so that neither blocks for ever and nothing is written to
//! a channel without a reader.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use iotomy_host::Skip;
use iotomy_sys::buffer::Aligned;
use rustix::io::{read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use super::limit::{Context, Figure, LimitDeclaration, Scope, Unit};
use super::sampling::Budget;

pub(super) static LIMITS: &[LimitDeclaration] = &[
    LimitDeclaration {
        name: "pipe",
        unit: Unit::BytesPerSecond,
        scope: Scope::Machine,
        summary: "a pipe between two threads",
        method: "aligned writes and reads of 256 KiB by two threads, a pipe of 1 MiB where allowed; both copies",
        man: &["pipe(7)", "fcntl(2)"],
        measure: pipe,
    },
    LimitDeclaration {
        name: "unix-socket",
        unit: Unit::BytesPerSecond,
        scope: Scope::Machine,
        summary: "a UNIX socket between two threads",
        method: "aligned writes and reads of 256 KiB by two threads, a pair of stream sockets; both copies",
        man: &["unix(7)", "socketpair(2)"],
        measure: unix_socket,
    },
    LimitDeclaration {
        name: "tcp-loopback",
        unit: Unit::BytesPerSecond,
        scope: Scope::Machine,
        summary: "TCP over the loopback between two threads",
        method: "aligned writes and reads of 256 KiB by two threads, a connection to 127.0.0.1; both copies",
        man: &["tcp(7)", "ip(7)"],
        measure: tcp_loopback,
    },
];

const BLOCK: usize = 256 << 10;
const PIPE_BYTES: usize = 1 << 20;
/// Bytes per sample: a few ms, in which both threads have run many times.
const SAMPLE: usize = 4 << 20;

fn pipe(_: &Context<'_>) -> Result<Figure, Skip> {
    let (out, into) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| Skip::refused("pipe2", e))?;
    // A user who has many pipes cannot enlarge another; then the pipe is measured with the size it
    // has.
    let _ = fcntl_setpipe_size(&into, PIPE_BYTES);
    through(&out, into)
}

fn unix_socket(_: &Context<'_>) -> Result<Figure, Skip> {
    let (out, into) = UnixStream::pair().map_err(|e| Skip::refused("socketpair", e))?;
    through(&out.into(), into.into())
}

fn tcp_loopback(_: &Context<'_>) -> Result<Figure, Skip> {
    let refused = |call: &'static str| move |e: io::Error| Skip::refused(call, e);
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(refused("bind 127.0.0.1"))?;
    let address = listener.local_addr().map_err(refused("getsockname"))?;
    let into = TcpStream::connect(address).map_err(refused("connect 127.0.0.1"))?;
    let (out, from) = listener.accept().map_err(refused("accept"))?;
    // Any process on this machine may connect to a listening port.
    if Some(from) != into.local_addr().ok() {
        return Err(Skip("accept: another process connected first".to_owned()));
    }
    through(&out.into(), into.into())
}

/// Measures the bytes per second from `into` to `out`.
fn through(out: &OwnedFd, into: OwnedFd) -> Result<Figure, Skip> {
    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = thread::Builder::new().spawn_scoped(scope, || fill(into, &enough));
        writer.map_err(|e| Skip::refused("clone", e))?;
        let mut buffer = Aligned::new(BLOCK);
        let mut take = || match retry_on_intr(|| read(out, &mut *buffer)) {
            Ok(0) => Err(Skip("the writer ended early".to_owned())),
            got => got.map_err(|e| Skip::refused("read", e)),
        };
        let mut sample = || {
            let begun = Instant::now();
            let mut got = 0;
            while got < SAMPLE {
                got += take()?;
            }
            Ok(got as f64 / begun.elapsed().as_secs_f64().max(1e-9))
        };
        // The first samples run with a new channel and new threads.
        let figure = sample().and_then(|_| Budget::LONG.figure(&mut sample));
        enough.store(true, Ordering::Relaxed);
        while take().is_ok() {}
        figure
    })
}

/// Writes until `enough` is set; then closes its end of the channel.
fn fill(into: OwnedFd, enough: &AtomicBool) {
    let mut buffer = Aligned::new(BLOCK);
    buffer.fill(1);
    while !enough.load(Ordering::Relaxed) {
        // The reader notices an error by the end of the channel.
        if retry_on_intr(|| write(&into, &buffer)).is_err() {
            return;
        }
    }
}
