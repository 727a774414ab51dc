//! Clients of a herd: processes of their own, each of which makes short connections one after the
//! other and takes down how long each took.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{MemberError, end_all, end_with, keep_only, leave, wait};
use crate::board::Board;

/// Words of a client on the board, before the times of its connections.
const HEAD: usize = 5;
const READY: usize = 0;
const DONE: usize = 1;
const ERRNO: usize = 2;
/// When the last connection had ended, by the monotonic clock.
const ENDED: usize = 3;
/// What its connections took on the CPU.
const CPU: usize = 4;

/// Processes that are about to make connections. Dropping it ends them.
#[derive(Debug)]
pub struct Clients {
    pids: Vec<libc::pid_t>,
    board: Board,
    connections: usize,
    /// Closing it lets them begin.
    barrier: Option<io::PipeWriter>,
    began_ns: u64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// From the first connection to the end of the last, in ns.
    pub wall_ns: u64,
    /// From a call of connect(2) until the server had ended the connection, in ns; of all clients.
    pub times_ns: Vec<u64>,
    /// What all clients used of CPUs for that, in ns.
    pub cpu_ns: u64,
}

impl Clients {
    /// Forks `clients` processes that will make `connections` connections each.
    ///
    /// # Errors
    /// As fork(2).
    pub fn start(
        address: SocketAddr,
        clients: usize,
        connections: usize,
    ) -> Result<Self, MemberError> {
        let failed = |call| move |source| MemberError { call, source };
        let board = Board::new(clients * (HEAD + connections)).map_err(failed("mmap"))?;
        let (waiting, barrier) = io::pipe().map_err(failed("pipe2"))?;
        crate::startup::hear_of_children();
        let pids = Vec::with_capacity(clients);
        let mut all = Self { pids, board, connections, barrier: Some(barrier), began_ns: 0 };
        // SAFETY: takes nothing.
        let parent = unsafe { libc::getpid() };
        for at in 0..clients {
            // SAFETY: the child runs `client`, which makes system calls, changes words of the board,
            // and never returns.
            match unsafe { libc::fork() } {
                -1 => return Err(failed("fork")(io::Error::last_os_error())),
                0 => {
                    end_with(parent);
                    keep_only(waiting.as_fd(), None);
                    client(address, all.slot(at));
                }
                pid => all.pids.push(pid),
            }
        }
        Ok(all)
    }

    fn slot(&self, at: usize) -> &[AtomicU64] {
        let size = HEAD + self.connections;
        &self.board.words()[at * size..(at + 1) * size]
    }

    /// Whether every client waits for the beginning.
    pub fn is_ready(&self) -> bool {
        (0..self.pids.len()).all(|at| self.slot(at)[READY].load(Ordering::Acquire) == 1)
    }

    /// Lets them begin.
    pub fn go(&mut self) {
        self.began_ns = now_ns();
        self.barrier = None;
    }

    /// How many connections have been served so far.
    pub fn served(&self) -> u64 {
        (0..self.pids.len()).map(|at| self.slot(at)[DONE].load(Ordering::Acquire)).sum()
    }

    /// Whether every client has come to an end, of its connections or by an error.
    pub fn is_over(&self) -> bool {
        let ended = |at: usize| {
            let word = |word: usize| self.slot(at)[word].load(Ordering::Acquire);
            word(ENDED) != 0 || word(ERRNO) != 0
        };
        (0..self.pids.len()).all(ended)
    }

    /// Waits for the end of all that have begun by [`Clients::go`].
    ///
    /// # Errors
    /// When a client could not do what it was to.
    pub fn end(mut self) -> Result<Served, MemberError> {
        for pid in std::mem::take(&mut self.pids) {
            wait(pid);
        }
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

impl Drop for Clients {
    fn drop(&mut self) {
        end_all(&self.pids);
    }
}

/// The monotonic clock, which needs no system call where the machine's clock can be read without.
fn now_ns() -> u64 {
    crate::bare::monotonic_ns().cast_unsigned()
}

/// A client's side of the fork.
fn client(address: SocketAddr, slot: &[AtomicU64]) -> ! {
    let address = raw_address(address);
    slot[READY].store(1, Ordering::Release);
    let mut byte = 0u8;
    // The end of the pipe is the beginning.
    // SAFETY: `byte` is room for one byte.
    while unsafe { libc::read(0, (&raw mut byte).cast(), 1) } > 0 {}
    let before = used_ns();
    for word in &slot[HEAD..] {
        let began = now_ns();
        if let Err(error) = connection(&address) {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            slot[ERRNO].store(u64::from(errno.unsigned_abs()), Ordering::Release);
            leave();
        }
        word.store(now_ns().saturating_sub(began), Ordering::Relaxed);
        slot[DONE].fetch_add(1, Ordering::Release);
    }
    slot[CPU].store(used_ns().saturating_sub(before), Ordering::Release);
    slot[ENDED].store(now_ns(), Ordering::Release);
    leave()
}

/// What this process has used of CPUs, in ns.
fn used_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is room for a time; the clock is there since Linux 2.6.12.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Connects, waits until the other side has ended the connection, and resets what is left of it, so
/// that no port stays taken.
fn connection(address: &libc::sockaddr_in) -> io::Result<()> {
    // SAFETY: takes plain integers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: the option is one readable structure.
    unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size,
        )
    };
    let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    let address: *const libc::sockaddr_in = address;
    // SAFETY: the address is a whole structure of that size.
    let mut result = match unsafe { libc::connect(fd, address.cast(), size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    if result.is_ok() {
        let mut byte = 0u8;
        // SAFETY: `byte` is room for one byte.
        if unsafe { libc::read(fd, (&raw mut byte).cast(), 1) } < 0 {
            result = Err(io::Error::last_os_error());
        }
    }
    // SAFETY: made above and not used any more.
    unsafe { libc::close(fd) };
    result
}

/// An address of IPv4 as the kernel has it; of any other, the loopback's with its port.
pub(super) fn raw_address(address: SocketAddr) -> libc::sockaddr_in {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip,
        IpAddr::V6(_) => Ipv4Addr::LOCALHOST,
    };
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) },
        sin_zero: [0; 8],
    }
}
