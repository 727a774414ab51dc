//! What a socket says of itself, by `getsockopt(2)`, `getsockname(2)` and `getpeername(2)`: nothing
//! here changes it. `SO_ERROR` is not among these, since to read it is to clear it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// TCP's figures of one connection: `struct tcp_info`, as far as it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpInfo {
    /// A number of the kernel's: 1 for an established connection, 7 for a closed one.
    pub state: u8,
    /// The smoothed round-trip time, in µs; 0 where it is not known.
    pub rtt_us: u32,
    /// Its mean deviation, in µs.
    pub rttvar_us: u32,
    /// Segments that were sent again.
    pub retransmits: u32,
    /// Bytes that the other end acknowledged; a SYN is one.
    pub acked_bytes: u64,
    /// Bytes that were received.
    pub received_bytes: u64,
    /// Segments with data that were sent.
    pub segments: u32,
    /// The congestion window, in segments.
    pub cwnd: u32,
    /// The receive window that the other end has announced, in bytes; since Linux 5.4.
    pub snd_wnd: Option<u32>,
    /// The receive window that this end has announced, in bytes; since Linux 6.2.
    pub rcv_wnd: Option<u32>,
    /// The time in which there was something to send or to be acknowledged, in µs.
    pub busy_us: Option<u64>,
    /// Of this, the time in which the other end's window kept it from being sent.
    pub rwnd_limited_us: Option<u64>,
    /// Of this, the time in which the send buffer was full.
    pub sndbuf_limited_us: Option<u64>,
    /// Of a listener: the connections that wait to be accepted, and their limit.
    pub queue: Option<(u32, u32)>,
}

impl TcpInfo {
    /// The state of a listener.
    pub const LISTENS: u8 = 10;

    /// From as much of the struct as the kernel knows.
    fn parse(info: &[u8]) -> Self {
        let number = |at: usize| {
            let (bytes, _) = info.get(at..)?.split_first_chunk()?;
            Some(u32::from_ne_bytes(*bytes))
        };
        let long = |at: usize| {
            let (bytes, _) = info.get(at..)?.split_first_chunk()?;
            Some(u64::from_ne_bytes(*bytes))
        };
        // Offsets in the struct of linux/tcp.h.
        let state = info.first().copied().unwrap_or(0);
        let queue = || Some((number(24)?, number(28)?));
        Self {
            state,
            rtt_us: number(68).unwrap_or(0),
            rttvar_us: number(72).unwrap_or(0),
            retransmits: number(100).unwrap_or(0),
            acked_bytes: long(120).unwrap_or(0),
            received_bytes: long(128).unwrap_or(0),
            segments: number(156).unwrap_or(0),
            cwnd: number(80).unwrap_or(0),
            snd_wnd: number(228),
            rcv_wnd: number(232),
            busy_us: long(168),
            rwnd_limited_us: long(176),
            sndbuf_limited_us: long(184),
            queue: if state == Self::LISTENS { queue() } else { None },
        }
    }
}

/// TCP's figures of a connection: `TCP_INFO`.
///
/// # Errors
/// As getsockopt(2): for a socket of another protocol.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut info = [0u8; 256];
    let length = option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    Ok(TcpInfo::parse(&info[..length]))
}

/// The address family.
///
/// # Errors
/// As getsockopt(2): for a descriptor that is no socket's.
pub fn family(socket: BorrowedFd<'_>) -> io::Result<u32> {
    number(socket, libc::SO_DOMAIN)
}

/// The kind: `SOCK_STREAM` and its kin.
///
/// # Errors
/// As [`family`].
pub fn kind(socket: BorrowedFd<'_>) -> io::Result<u32> {
    number(socket, libc::SO_TYPE)
}

/// The protocol within the family.
///
/// # Errors
/// As [`family`].
pub fn protocol(socket: BorrowedFd<'_>) -> io::Result<u32> {
    number(socket, libc::SO_PROTOCOL)
}

/// The process that a UNIX socket was connected by, or that listened: `SO_PEERCRED`. `None` where it
/// is not connected, or that process is in none of this process's namespaces.
///
/// # Errors
/// As [`family`].
pub fn peer_process(socket: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    // Process, user and group.
    let mut credentials = [0u8; 12];
    option(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut credentials)?;
    let [a, b, c, d, ..] = credentials;
    let pid = u32::from_ne_bytes([a, b, c, d]);
    Ok(Some(pid).filter(|pid| *pid > 0))
}

/// Its own address: a `struct sockaddr`, the family first.
///
/// # Errors
/// As getsockname(2).
pub fn local_address(socket: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    address(|to, length| {
        // SAFETY: the kernel writes at most `*length` bytes to `to`, which has as many.
        unsafe { libc::getsockname(socket.as_raw_fd(), to, length) }
    })
}

/// The address of the other end.
///
/// # Errors
/// As getpeername(2): `ENOTCONN` where it is not connected.
pub fn remote_address(socket: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    address(|to, length| {
        // SAFETY: the kernel writes at most `*length` bytes to `to`, which has as many.
        unsafe { libc::getpeername(socket.as_raw_fd(), to, length) }
    })
}

fn address(
    ask: impl Fn(*mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int,
) -> io::Result<Vec<u8>> {
    let mut room = [0u64; size_of::<libc::sockaddr_storage>() / 8];
    let mut length = size_of_val(&room) as libc::socklen_t;
    if ask(room.as_mut_ptr().cast(), &raw mut length) < 0 {
        return Err(io::Error::last_os_error());
    }
    let bytes: Vec<u8> = room.iter().flat_map(|word| word.to_ne_bytes()).collect();
    Ok(bytes[..bytes.len().min(length as usize)].to_vec())
}

fn number(socket: BorrowedFd<'_>, name: libc::c_int) -> io::Result<u32> {
    let mut number = [0u8; 4];
    option(socket, libc::SOL_SOCKET, name, &mut number)?;
    Ok(u32::from_ne_bytes(number))
}

/// Returns how many bytes the kernel has written.
fn option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    to: &mut [u8],
) -> io::Result<usize> {
    let mut length = to.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which is the size of `to`.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, to.as_mut_ptr().cast(), &raw mut length)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(to.len().min(length as usize)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_connection_has_the_figures_of_its_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let before = tcp_info(client.as_fd()).unwrap();
        client.write_all(&[1; 1000]).unwrap();
        server.read_exact(&mut [0; 1000]).unwrap();
        server.write_all(b"four").unwrap();
        client.read_exact(&mut [0; 4]).unwrap();
        let info = tcp_info(client.as_fd()).unwrap();
        assert_eq!((info.state, info.segments - before.segments, info.retransmits), (1, 1, 0));
        assert_eq!(info.received_bytes - before.received_bytes, 4);
        assert_eq!(info.acked_bytes - before.acked_bytes, 1000);
        assert!(info.rtt_us > 0, "{info:?}");
        assert!(info.cwnd > 0 && info.snd_wnd > Some(0) && info.busy_us.is_some(), "{info:?}");
        let socket = client.as_fd();
        assert_eq!(family(socket).unwrap(), libc::AF_INET.cast_unsigned());
        assert_eq!(kind(socket).unwrap(), libc::SOCK_STREAM.cast_unsigned());
        assert_eq!(protocol(socket).unwrap(), libc::IPPROTO_TCP.cast_unsigned());
        let remote = remote_address(socket).unwrap();
        assert_eq!(remote[2..8], [&address.port().to_be_bytes()[..], &[127, 0, 0, 1]].concat());
        assert_eq!(local_address(server.as_fd()).unwrap(), remote);
        let waits = TcpStream::connect(address).unwrap();
        let listens = tcp_info(listener.as_fd()).unwrap();
        assert_eq!(listens.state, TcpInfo::LISTENS);
        assert!(matches!(listens.queue, Some((1, limit)) if limit > 1), "{listens:?}");
        assert_eq!(info.queue, None);
        drop(waits);
        let error = remote_address(listener.as_fd()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTCONN));
    }

    #[test]
    fn the_end_of_a_pair_of_unix_sockets_is_this_process_s() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(peer_process(one.as_fd()).unwrap(), Some(std::process::id()));
        assert_eq!(local_address(one.as_fd()).unwrap(), 1u16.to_ne_bytes());
        assert!(tcp_info(one.as_fd()).is_err());
        let alone = std::os::unix::net::UnixDatagram::unbound().unwrap();
        assert_eq!(peer_process(alone.as_fd()).unwrap(), None);
    }

    #[test]
    fn an_older_kernel_s_shorter_figures_are_zero_where_it_has_none() {
        let mut info = [0u8; 104];
        info[0] = 1;
        info[68] = 9;
        let parsed = TcpInfo::parse(&info);
        assert_eq!(
            (parsed.state, parsed.rtt_us, parsed.acked_bytes, parsed.segments),
            (1, 9, 0, 0)
        );
        assert_eq!((parsed.snd_wnd, parsed.rcv_wnd, parsed.busy_us), (None, None, None));
    }
}
