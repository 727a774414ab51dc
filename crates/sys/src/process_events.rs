//! The forks, executions and ends of all processes, as Linux' process connector tells of them: `netlink(7)`,
//! `NETLINK_CONNECTOR`, `CN_IDX_PROC`. Who may listen depends on the kernel: the superuser, from Linux 6.6 on also
//! others; in each case only in the first network and process namespaces.
//!
//! The one tricky invariant: a kernel that does not want to tell does not say so. It acknowledges a listener with a
//! message that is there when the request has been sent, and whoever gets none is not told.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::private_fd::PrivateFd;

/// What happened to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEvent {
    /// A process made another one.
    Fork {
        /// The process.
        parent: i32,
        /// The other one.
        child: i32,
    },
    /// A process executes another program.
    Exec(i32),
    /// The first thread of a process has ended, with this status as wait(2) has it.
    Exit(i32, i32),
    /// The kernel had no room for some.
    Lost,
}

/// Listens to what happens to processes.
#[derive(Debug)]
pub struct ProcessEvents(PrivateFd);

const CONNECTOR: i32 = 11;
/// `CN_IDX_PROC` and `CN_VAL_PROC`.
const PROCESSES: u32 = 1;
/// `PROC_CN_MCAST_LISTEN`.
const LISTEN: u32 = 1;
/// `PROC_EVENT_…`; 0 is an acknowledgement.
const ACKNOWLEDGED: u32 = 0;
const FORK: u32 = 1;
const EXEC: u32 = 2;
const EXIT: u32 = 0x8000_0000;

/// `struct nlmsghdr` and `struct cn_msg`: the bytes in front of the connector's own.
const HEADERS: usize = 16 + 20;
/// Where `ack` is.
const ACK: usize = 16 + 12;
/// `what`, `cpu` and `timestamp_ns` of `struct proc_event`.
const PREFIX: usize = 16;

/// What is told of before anybody reads it.
const ROOM: libc::c_int = 4 << 20;

impl ProcessEvents {
    /// Listens from now on.
    ///
    /// # Errors
    /// `EPERM` or `EACCES` without the right to, `EOPNOTSUPP` where the kernel does not tell, and as socket(2).
    pub fn listen() -> io::Result<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: plain integers.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, CONNECTOR) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            let is_unknown = error.raw_os_error() == Some(libc::EPROTONOSUPPORT);
            return Err(if is_unknown { unsupported() } else { error });
        }
        // SAFETY: the call has just given it to this function.
        let this = Self(PrivateFd::from(unsafe { OwnedFd::from_raw_fd(fd) }));
        this.enlarge();
        // SAFETY: a zeroed address is a valid value of the type (plain integers).
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = PROCESSES;
        let length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: the kernel reads an address of this length.
        if unsafe { libc::bind(fd, (&raw const address).cast(), length) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let number = std::process::id();
        let request = request(number);
        // SAFETY: the kernel reads the bytes of the request.
        let sent = unsafe { libc::send(fd, request.as_ptr().cast(), request.len(), 0) };
        if sent < 0 {
            let error = io::Error::last_os_error();
            let is_unheard = error.raw_os_error() == Some(libc::ECONNREFUSED);
            return Err(if is_unheard { unsupported() } else { error });
        }
        match this.acknowledgement(number)? {
            Some(0) => Ok(this),
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => Err(unsupported()),
        }
    }

    fn enlarge(&self) {
        let fd = self.0.as_fd().as_raw_fd();
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        let room = ROOM;
        let room = (&raw const room).cast();
        // SAFETY: the kernel reads one integer.
        let done =
            unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, room, length) };
        if done < 0 {
            // As much as who has no right to more may have.
            // SAFETY: as above.
            unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, room, length) };
        }
    }

    /// The error that the kernel acknowledges a request with, 0 for none.
    fn acknowledgement(&self, number: u32) -> io::Result<Option<i32>> {
        let mut message = [0; 256];
        // All that happens anywhere on the machine may be told of before it.
        for _ in 0..100_000 {
            match self.next(&mut message) {
                Ok(Some(length)) => {
                    let message = &message[..length];
                    let is_own = word(message, ACK) == Some(number.wrapping_add(1));
                    if is_own && word(message, HEADERS) == Some(ACKNOWLEDGED) {
                        return Ok(word(message, HEADERS + PREFIX).map(u32::cast_signed));
                    }
                }
                Ok(None) => return Ok(None),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Gives to `put` what has been told of and not been taken yet.
    pub fn take(&self, mut put: impl FnMut(ProcessEvent)) {
        let mut message = [0; 256];
        loop {
            match self.next(&mut message) {
                Ok(Some(length)) => event(&message[..length]).into_iter().for_each(&mut put),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    put(ProcessEvent::Lost);
                }
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// The length of the next message, if there is one.
    fn next(&self, message: &mut [u8; 256]) -> io::Result<Option<usize>> {
        let fd = self.0.as_fd().as_raw_fd();
        // SAFETY: the kernel writes no more than there is room for.
        let got = unsafe { libc::recv(fd, message.as_mut_ptr().cast(), message.len(), 0) };
        match usize::try_from(got) {
            Ok(length) => Ok(Some(length)),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error => Err(error),
            },
        }
    }
}

impl AsFd for ProcessEvents {
    /// Readable if there are events.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn unsupported() -> io::Error {
    io::Error::from_raw_os_error(libc::EOPNOTSUPP)
}

/// The request to be told, with a number by which its acknowledgement is known.
fn request(number: u32) -> Vec<u8> {
    let length = (HEADERS + size_of::<u32>()) as u32;
    // Length, type and flags (NLMSG_DONE), number, sender; index, value, number, acknowledged; length and flags.
    let words =
        [length, libc::NLMSG_DONE as u32, number, 0, PROCESSES, PROCESSES, number, number, 4];
    words.into_iter().chain([LISTEN]).flat_map(u32::to_ne_bytes).collect()
}

fn word(message: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(message.get(at..at + 4)?.try_into().ok()?))
}

/// What a message tells of a process, if it is of a process and not of a thread.
fn event(message: &[u8]) -> Option<ProcessEvent> {
    let of = |index: usize| word(message, HEADERS + PREFIX + 4 * index).map(u32::cast_signed);
    match word(message, HEADERS)? {
        FORK => {
            let [parent, thread, child] = [of(1)?, of(2)?, of(3)?];
            (thread == child).then_some(ProcessEvent::Fork { parent, child })
        }
        EXEC => Some(ProcessEvent::Exec(of(1)?)),
        EXIT => {
            let [thread, process, status] = [of(0)?, of(1)?, of(2)?];
            (thread == process).then_some(ProcessEvent::Exit(process, status))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of the kernel's with these words behind the common ones.
    fn message(what: u32, words: &[u32]) -> Vec<u8> {
        let mut message = vec![0; HEADERS];
        let rest = [what, 0, 0, 0].into_iter().chain(words.iter().copied());
        message.extend(rest.flat_map(u32::to_ne_bytes));
        message
    }

    #[test]
    fn messages_are_of_processes_and_not_of_threads() {
        let fork = |child| message(FORK, &[10, 9, child, 21]);
        assert_eq!(event(&fork(21)), Some(ProcessEvent::Fork { parent: 9, child: 21 }));
        assert_eq!(event(&fork(22)), None);
        assert_eq!(event(&message(EXEC, &[9, 9])), Some(ProcessEvent::Exec(9)));
        let exit = |thread| message(EXIT, &[thread, 9, 0x300, 17]);
        assert_eq!(event(&exit(9)), Some(ProcessEvent::Exit(9, 0x300)));
        assert_eq!(event(&exit(8)), None);
        assert_eq!(event(&message(4, &[9, 9, 0, 0])), None);
        let fork = fork(21);
        for length in 0..fork.len() {
            assert_eq!(event(&fork[..length]), None);
        }
    }

    #[test]
    fn a_request_is_as_long_as_it_says() {
        let request = request(77);
        assert_eq!(request.len(), HEADERS + 4);
        assert_eq!(word(&request, 0), Some(request.len() as u32));
        assert_eq!((word(&request, ACK), word(&request, HEADERS)), (Some(77), Some(LISTEN)));
    }
}
