//! A look at a tracee's sockets, through a copy of its descriptor: `pidfd_getfd(2)`.
//!
//! The one invariant: a copy is closed before its thread goes on, so that it is none that the
//! program would notice: it is not the last one of a socket that the thread is about to close. Only
//! a thread of the same process that closes the descriptor in that very moment leaves the end of the
//! connection to the copy's.
//!
//! A socket that a process receives gets that process's class where traffic is classed by control
//! group of version 1. So it is not looked at where iotomy's class is another.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iotomy_sys::socket::{self, TcpInfo};
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::sockets::SocketName;

/// A descriptor of a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptor {
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) fd: i32,
}

/// The texts of connected sockets, by inode, so that each is looked at once.
#[derive(Debug, Default)]
pub(super) struct PeerTexts(pub(super) HashMap<u64, String>);

/// The sockets that can be looked at.
#[derive(Debug)]
pub(super) struct Sockets {
    /// Iotomy's control groups that class traffic.
    classes: Vec<String>,
}

/// A socket that is looked at.
#[derive(Debug)]
pub(super) struct SocketCopy(OwnedFd);

impl Sockets {
    pub(super) fn new() -> Self {
        Self { classes: classes("self") }
    }

    /// The socket of this inode, if the descriptor is one of it and may be copied.
    pub(super) fn copy(&self, of: Descriptor, inode: u64) -> Option<SocketCopy> {
        if !self.classes.is_empty() && classes(&of.thread.to_string()) != self.classes {
            return None;
        }
        if of.fd < 0 {
            return None;
        }
        let task = |id: u32| Pid::from_raw(id.cast_signed()).ok_or(Errno::SRCH);
        // PIDFD_THREAD: since Linux 6.9. A thread may have a table of descriptors of its own, and the
        // first one may have ended.
        let thread = PidfdFlags::from_bits_retain(0o200);
        let open = |id: u32, flags| task(id).and_then(|task| pidfd_open(task, flags));
        let pidfd = open(of.thread, thread).or_else(|_| open(of.process, PidfdFlags::empty()));
        let copy = pidfd_getfd(pidfd.ok()?, of.fd, PidfdGetfdFlags::empty()).ok()?;
        (fstat(&copy).ok()?.st_ino == inode).then_some(SocketCopy(copy))
    }
}

impl SocketCopy {
    fn socket(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// What it is, with both its ends as they are now.
    pub(super) fn name(&self) -> Option<SocketName> {
        let mut name = SocketName {
            family: socket::family(self.socket()).ok()?,
            kind: socket::kind(self.socket()).ok()?,
            protocol: socket::protocol(self.socket()).ok()?,
            ..SocketName::default()
        };
        if let Ok(address) = socket::local_address(self.socket()) {
            name.set_local(&address);
        }
        if let Ok(address) = socket::remote_address(self.socket()) {
            name.set_remote(&address);
        }
        if name.is_unix() {
            name.peer_pid = socket::peer_process(self.socket()).ok().flatten().unwrap_or(0);
        }
        Some(name)
    }

    /// TCP's figures.
    pub(super) fn tcp_info(&self) -> Option<TcpInfo> {
        socket::tcp_info(self.socket()).ok()
    }
}

/// The lines of a process's control groups that class its traffic.
fn classes(process: &str) -> Vec<String> {
    let groups = iotomy_host::kernel_text(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let is_of_class = |line: &&str| {
        line.split(':').nth(1).is_some_and(|kinds| {
            kinds.split(',').any(|kind| kind == "net_cls" || kind == "net_prio")
        })
    };
    groups.lines().filter(is_of_class).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_descriptor_of_another_socket_is_not_taken_for_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let inode = fstat(&listener).unwrap().st_ino;
        let (process, sockets) = (std::process::id(), Sockets::new());
        let of = Descriptor { process, thread: process, fd: listener.as_raw_fd() };
        assert!(sockets.copy(of, inode + 1).is_none());
        assert!(sockets.copy(Descriptor { fd: -1, ..of }, inode).is_none());
        let Some(copy) = sockets.copy(of, inode) else {
            return iotomy_test_requirements::skip(
                iotomy_test_requirements::Need::Ptrace,
                "no descriptor can be copied",
            );
        };
        let name = copy.name().unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert_eq!(name.socket().local, Some(address));
        assert!(name.is_tcp() && name.lacks_remote());
        assert_eq!(copy.tcp_info().map(|info| info.state), Some(10), "it listens");
    }
}
