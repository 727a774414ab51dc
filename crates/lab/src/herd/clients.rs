//! Clients of a herd: separate processes, each of which makes short connections one after the other
//! and records the duration of each.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use iotomy_sys::board::Board;
use iotomy_sys::children::Children;
use rustix::io::{Errno, read};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use rustix::time::{ClockId, clock_gettime};

use super::processes::MemberError;

/// Words of a client on the board, before the times of its connections.
const HEAD: usize = 5;
const READY: usize = 0;
const DONE: usize = 1;
const ERRNO: usize = 2;
/// When the last connection ended, by the monotonic clock.
const ENDED: usize = 3;
/// The CPU time of its connections.
const CPU: usize = 4;

/// Processes that are about to make connections. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Clients {
    children: Children,
    board: Board,
    connections: usize,
    /// Closing it lets the clients begin.
    barrier: Option<io::PipeWriter>,
    began_ns: u64,
}

/// The result of the clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Served {
    /// From the first connection to the end of the last, in ns.
    pub(crate) wall_ns: u64,
    /// From the call of connect(2) until the server ended the connection, in ns; of all clients.
    pub(crate) times_ns: Vec<u64>,
    /// The CPU time of all clients for the connections, in ns.
    pub(crate) cpu_ns: u64,
}

impl Clients {
    /// Forks `clients` processes that will make `connections` connections each.
    ///
    /// # Errors
    /// Fails as fork(2) does.
    pub(crate) fn start(
        address: SocketAddr,
        clients: usize,
        connections: usize,
    ) -> Result<Self, MemberError> {
        let failed = |call| move |source| MemberError { call, source };
        let board = Board::new(clients * (HEAD + connections)).map_err(failed("mmap"))?;
        let (waiting, barrier) = io::pipe().map_err(failed("pipe2"))?;
        let size = HEAD + connections;
        let mut children = Children::with_capacity(clients);
        for slot in board.words().chunks(size).take(clients) {
            let work = || client(waiting.as_fd(), address, slot);
            children.fork(&[waiting.as_raw_fd()], work).map_err(failed("fork"))?;
        }
        Ok(Self { children, board, connections, barrier: Some(barrier), began_ns: 0 })
    }

    fn slot(&self, at: usize) -> &[AtomicU64] {
        let size = HEAD + self.connections;
        &self.board.words()[at * size..(at + 1) * size]
    }

    /// Whether every client is waiting for the start.
    pub(crate) fn is_ready(&self) -> bool {
        (0..self.children.pids().len()).all(|at| self.slot(at)[READY].load(Ordering::Acquire) == 1)
    }

    /// Lets the clients begin.
    pub(crate) fn go(&mut self) {
        self.began_ns = now_ns();
        self.barrier = None;
    }

    /// Whether every client has finished its connections or failed.
    pub(crate) fn is_over(&self) -> bool {
        let ended = |at: usize| {
            let word = |word: usize| self.slot(at)[word].load(Ordering::Acquire);
            word(ENDED) != 0 || word(ERRNO) != 0
        };
        (0..self.children.pids().len()).all(ended)
    }

    /// Waits for the end of the clients that [`Clients::go`] started.
    ///
    /// # Errors
    /// Fails if a call of a client failed.
    pub(crate) fn end(self) -> Result<Served, MemberError> {
        self.children.wait();
        let (mut ended_ns, mut cpu_ns, mut times_ns) = (0, 0, Vec::new());
        let size = HEAD + self.connections;
        for slot in self.board.words().chunks(size) {
            let errno = i32::try_from(slot[ERRNO].load(Ordering::Acquire)).unwrap_or(0);
            if errno != 0 {
                let source = io::Error::from_raw_os_error(errno);
                return Err(MemberError { call: "connect", source });
            }
            ended_ns = ended_ns.max(slot[ENDED].load(Ordering::Acquire));
            cpu_ns += slot[CPU].load(Ordering::Acquire);
            times_ns.extend(slot[HEAD..].iter().map(|word| word.load(Ordering::Acquire)));
        }
        Ok(Served { wall_ns: ended_ns.saturating_sub(self.began_ns), times_ns, cpu_ns })
    }
}

/// The client's side of the fork.
fn client(barrier: BorrowedFd<'_>, address: SocketAddr, slot: &[AtomicU64]) {
    slot[READY].store(1, Ordering::Release);
    // The end of the pipe is the signal to begin.
    while read(barrier, &mut [0]).is_ok_and(|bytes| bytes > 0) {}
    let before = clock_ns(ClockId::ProcessCPUTime);
    for word in &slot[HEAD..] {
        let began = now_ns();
        if let Err(error) = connection(address) {
            let errno = error.raw_os_error();
            slot[ERRNO].store(u64::from(errno.unsigned_abs()), Ordering::Release);
            return;
        }
        word.store(now_ns().saturating_sub(began), Ordering::Relaxed);
        slot[DONE].fetch_add(1, Ordering::Release);
    }
    let used = clock_ns(ClockId::ProcessCPUTime).saturating_sub(before);
    slot[CPU].store(used, Ordering::Release);
    slot[ENDED].store(now_ns(), Ordering::Release);
}

/// Returns the monotonic time, without a system call if the vDSO can read the machine's clock.
fn now_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

fn clock_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Connects, waits until the other side has ended the connection, and resets the connection, so
/// that no port stays in use.
fn connection(address: SocketAddr) -> Result<(), Errno> {
    let none = SocketFlags::empty();
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, none, None)?;
    sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
    connect(&socket, &address)?;
    read(&socket, &mut [0]).map(|_| ())
}
