//! Descriptors to be watched, of every kind, with a hand on what makes them ready.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use iotomy_waiters::Kind;
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// Two ends: the first is watched.
pub(crate) struct Pair {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) watched: OwnedFd,
    /// What writes to the watched one, where that is another descriptor.
    pub(crate) other: Option<OwnedFd>,
}

impl AsFd for Pair {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watched.as_fd()
    }
}

/// Ways to make one.
pub(crate) const ALL: [fn() -> Pair; 7] =
    [pipe, unix, tcp, tcp_listener, unix_listener, event, timer];

/// Ways to make one that bytes go through.
pub(crate) const STREAMS: [fn() -> Pair; 3] = [pipe, unix, tcp];

fn non_blocking(fd: impl AsFd) {
    rustix::io::ioctl_fionbio(fd, true).unwrap();
}

fn streams(name: &'static str, kind: Kind, watched: OwnedFd, other: OwnedFd) -> Pair {
    non_blocking(&watched);
    non_blocking(&other);
    Pair { name, kind, watched, other: Some(other) }
}

pub(crate) fn pipe() -> Pair {
    let (out, into) = std::io::pipe().unwrap();
    streams("pipe", Kind::Pipe, out.into(), into.into())
}

/// A pipe whose writing end is watched.
pub(crate) fn pipe_to_write() -> Pair {
    let (out, into) = std::io::pipe().unwrap();
    streams("pipe to write", Kind::Pipe, into.into(), out.into())
}

pub(crate) fn unix() -> Pair {
    let (one, other) = UnixStream::pair().unwrap();
    streams("unix socket", Kind::Socket, one.into(), other.into())
}

pub(crate) fn tcp() -> Pair {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    other.set_nodelay(true).unwrap();
    streams("tcp socket", Kind::Socket, listener.accept().unwrap().0.into(), other.into())
}

pub(crate) fn tcp_listener() -> Pair {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Pair { name: "tcp listener", kind: Kind::Listener, watched: listener.into(), other: None }
}

/// Its address is one the kernel picks and no file.
pub(crate) fn unix_listener() -> Pair {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    let watched = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    bind(&watched, &SocketAddrUnix::new_unnamed()).unwrap();
    listen(&watched, 16).unwrap();
    Pair { name: "unix listener", kind: Kind::Listener, watched, other: None }
}

pub(crate) fn event() -> Pair {
    let watched = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
    Pair { name: "eventfd", kind: Kind::Event, watched, other: None }
}

pub(crate) fn timer() -> Pair {
    let watched = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK).unwrap();
    Pair { name: "timerfd", kind: Kind::Timer, watched, other: None }
}

impl Pair {
    /// Gives the watched one something to read.
    pub(crate) fn make_ready(&self) {
        match (self.kind, &self.other) {
            (Kind::Event, _) => {
                rustix::io::write(&self.watched, &1_u64.to_ne_bytes()).unwrap();
            }
            (Kind::Timer, _) => {
                let at_once = Timespec { tv_sec: 0, tv_nsec: 1 };
                let never = Timespec { tv_sec: 0, tv_nsec: 0 };
                let time = Itimerspec { it_interval: never, it_value: at_once };
                timerfd_settime(&self.watched, TimerfdTimerFlags::empty(), &time).unwrap();
            }
            (Kind::Listener, _) => self.connect(),
            (_, Some(other)) => assert_eq!(rustix::io::write(other, b"a").unwrap(), 1),
            (kind, None) => unreachable!("{kind:?} has another end"),
        }
    }

    fn connect(&self) {
        use rustix::net::{AddressFamily, SocketType, connect, getsockname, socket};
        let address = getsockname(&self.watched).unwrap();
        let family =
            if self.name == "tcp listener" { AddressFamily::INET } else { AddressFamily::UNIX };
        // It is accepted or not, and closed; the connection waits at the listener.
        connect(socket(family, SocketType::STREAM, None).unwrap(), &address).unwrap();
    }

    /// Reads all there is.
    pub(crate) fn drain(&self) {
        if self.kind == Kind::Listener {
            rustix::io::ioctl_fionbio(&self.watched, true).unwrap();
            while rustix::net::accept(&self.watched).is_ok() {}
            return;
        }
        let mut bytes = [0; 4096];
        while matches!(rustix::io::read(&self.watched, &mut bytes), Ok(1..)) {}
    }

    /// Writes to the watched one until it has no more room.
    pub(crate) fn fill(&self) {
        while rustix::io::write(&self.watched, &[0; 65536]).is_ok() {}
        while rustix::io::write(&self.watched, &[0]).is_ok() {}
    }

    /// Reads at the other end until there is nothing more.
    pub(crate) fn drain_other(&self) {
        let mut bytes = vec![0; 65536];
        let other = self.other.as_ref().unwrap();
        while matches!(rustix::io::read(other, &mut bytes), Ok(1..)) {}
    }

    /// Closes the other end.
    pub(crate) fn hang_up(&mut self) {
        self.other = None;
    }
}

/// A connection that is reset, with the error still to be read.
pub(crate) fn reset() -> Pair {
    let mut pair = tcp();
    let other = pair.other.take().unwrap();
    // What is closed with unread bytes is reset.
    let mut stream = TcpStream::from(rustix::io::dup(&pair.watched).unwrap());
    stream.write_all(b"unread").unwrap();
    let mut other = TcpStream::from(other);
    other.set_nonblocking(false).unwrap();
    other.read_exact(&mut [0; 1]).unwrap();
    drop(other);
    pair
}
