//! A listening socket on the loopback, and the processes that wait on it: shared by `herd` and
//! `accept`.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_waiters::{Capabilities, Kind, Model, WAITERS, WaiterDeclaration};

use crate::harness::patience::Patience;
use crate::herd::plan::{HerdPlan, SharedSet, Wait};
use crate::herd::processes::{Herd, MemberError, bind_shared};

/// Connections that may wait to be accepted; the kernel limits this to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Upper bound of the memory per process, most of it the kernel's: stack, tables and the copies
/// that fork makes.
pub(crate) const OF_A_PROCESS: u64 = 256 << 10;

/// Only a guard against hanging, for example where packets are dropped.
const ONE_CONNECTION: Duration = Duration::from_secs(10);

/// Number of accepts after which a member with `epoll-exclusive-16` moves to the end of the queue.
const AGAIN_EVERY: u32 = 16;

/// The modes of waiting, with their names on the axes.
pub(crate) const WAITS: [(&str, Wait); 8] = [
    ("accept", Wait::Accept),
    ("select", Wait::Select),
    ("poll", Wait::Poll),
    ("epoll", Wait::Epoll),
    ("epoll-exclusive", Wait::EpollExclusive),
    ("epoll-exclusive-16", Wait::EpollExclusiveAgain(AGAIN_EVERY)),
    ("io-uring", Wait::IoUring),
    ("reuseport", Wait::ReusePort),
];

/// Returns the names of all modes of waiting: those above, and those waiters of the registry of
/// which each process can have a set that contains the listener, or all can have one, and block at it.
pub(crate) fn waits() -> Vec<&'static str> {
    let is_above = |waiter: &WaiterDeclaration| WAITS.iter().any(|(name, _)| *name == waiter.name);
    let can = |waiter: &WaiterDeclaration| {
        let Capabilities { model, sleeps, receives, serves, .. } = waiter.capabilities;
        sleeps && !receives && model != Model::Signals && serves.contains(&Kind::Listener)
    };
    let others = WAITERS.iter().filter(|waiter| can(waiter) && !is_above(waiter));
    WAITS.iter().map(|(name, _)| *name).chain(others.map(|waiter| waiter.name)).collect()
}

/// Checks whether a mode of waiting works here.
pub(crate) fn probe(waiter: &str) -> Result<Wait, Skip> {
    let found = WAITS.iter().find(|(name, _)| *name == waiter).map(|(_, wait)| *wait);
    let registered = || iotomy_waiters::waiter(waiter).map(|found| Wait::Waiter(found.name));
    let wait = found.or_else(registered);
    let wait = wait.ok_or_else(|| Skip(format!("unknown waiter {waiter}")))?;
    if matches!(wait, Wait::IoUring | Wait::Waiter(_)) {
        let herd = Gate::new(wait)?.herd((1, 0), Patience::default());
        herd.map_err(|Skip(reason)| Skip(format!("{reason} (iotomy doctor)")))?;
    }
    Ok(wait)
}

/// Checks that a connection over the loopback can be made: in a new network namespace the loopback
/// is down at first.
pub(crate) fn check_loopback() -> Result<(), Skip> {
    let gate = Gate::new(Wait::Accept)?;
    let Err(error) = TcpStream::connect_timeout(&gate.address, ONE_CONNECTION) else {
        return Ok(());
    };
    let Skip(said) = Skip::refused(&format!("connect to {}", gate.address.ip()), error);
    Err(Skip(format!("{said}; bring the loopback up: ip link set lo up")))
}

/// A listening socket and the mode of waiting on it.
pub(crate) struct Gate {
    wait: Wait,
    /// The set that all members share, if they share one.
    set: Option<SharedSet>,
    socket: OwnedFd,
    pub(crate) address: SocketAddr,
}

pub(crate) fn refused(error: MemberError) -> Skip {
    Skip::refused(error.call, error.source)
}

impl Gate {
    /// Creates a gate on a free port.
    pub(crate) fn new(wait: Wait) -> Result<Self, Skip> {
        if wait == Wait::ReusePort {
            let (socket, address) = bind_shared().map_err(|e| Skip::refused("bind", e))?;
            return Ok(Self { wait, set: None, socket, address });
        }
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| Skip::refused("bind", e))?;
        let address = listener.local_addr().map_err(|e| Skip::refused("getsockname", e))?;
        rustix::net::listen(&listener, BACKLOG).map_err(|e| Skip::refused("listen", e))?;
        let set = listener.set_nonblocking(wait != Wait::Accept);
        set.map_err(|e| Skip::refused("ioctl FIONBIO", e))?;
        let name = if let Wait::Waiter(name) = wait { Some(name) } else { None };
        let waiter = name.and_then(iotomy_waiters::waiter);
        let set = waiter.map(|waiter| SharedSet::for_waiter(waiter, listener.as_fd()));
        let set = set.transpose().map_err(|e| Skip(e.to_string()))?.flatten();
        Ok(Self { wait, set, socket: listener.into(), address })
    }

    /// Starts processes that wait on the socket, and returns when each has finished its setup.
    pub(crate) fn herd(
        &self,
        (members, duplicates): (usize, u32),
        patience: Patience,
    ) -> Result<Herd, Skip> {
        let plan = HerdPlan {
            listener: self.socket.as_fd(),
            address: self.address,
            set: self.set.as_ref(),
            wait: self.wait,
            members,
            duplicates,
        };
        let herd = Herd::start(&plan).map_err(refused)?;
        let waiting = patience.begin();
        while !herd.is_ready().map_err(refused)? {
            if waiting.is_over() {
                return Err(waiting.in_vain("the processes did not become ready"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(herd)
    }
}

/// The kernel's report on a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) is_asleep: bool,
    /// How often it blocked.
    pub(crate) sleeps: u64,
}

impl Task {
    /// Reads the report on a process; `None` when there is no such process.
    pub(crate) fn for_pid(pid: i32, text: &mut String) -> Option<Self> {
        text.clear();
        text.push_str(&iotomy_host::kernel_text(format!("/proc/{pid}/status")).ok()?);
        Self::read(text)
    }

    fn read(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let at = status.find(name)? + name.len();
            Some(status[at..].lines().next()?.trim())
        };
        Some(Self {
            is_asleep: field("\nState:")?.starts_with('S'),
            sleeps: field("\nvoluntary_ctxt_switches:")?.parse().ok()?,
        })
    }
}

/// Returns the one-minute load average.
pub(crate) fn load() -> Option<f64> {
    let text = iotomy_host::kernel_text("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_as_the_kernel_writes_it() {
        let status = "Name:\ta\nState:\tS (sleeping)\nThreads:\t1\nvoluntary_ctxt_switches:\t17\n\
                      nonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(Task::read(status), Some(Task { is_asleep: true, sleeps: 17 }));
        let running = status.replace("S (sleeping)", "R (running)");
        assert!(!Task::read(&running).unwrap().is_asleep);
        assert_eq!(Task::read("State:\tS"), None);
        let me = Task::for_pid(std::process::id().cast_signed(), &mut String::new()).unwrap();
        assert!(me.sleeps < 1 << 40);
        assert!(load().unwrap() >= 0.0);
    }
}
