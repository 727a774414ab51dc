//! Sockets as the kernel names them, in the record's terms, for every observer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use iotomy_record::{Role, Socket, lossless};

const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const TCP: u32 = 6;

/// A socket with its two ends. Addresses are in network order, IPv4 in the first four bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct SocketName {
    pub(crate) family: u32,
    pub(crate) kind: u32,
    pub(crate) protocol: u32,
    pub(crate) local_port: u32,
    pub(crate) remote_port: u32,
    pub(crate) local: [u8; 16],
    pub(crate) remote: [u8; 16],
    pub(crate) peer_pid: u32,
    pub(crate) path: Vec<u8>,
    pub(crate) peer_path: Vec<u8>,
    pub(crate) role: Option<Role>,
}

impl SocketName {
    /// Whether it is one of TCP.
    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self.family, AF_INET | AF_INET6) && self.protocol == TCP
    }

    /// Whether its addresses are paths.
    pub(crate) fn is_unix(&self) -> bool {
        self.family == AF_UNIX
    }

    /// Whether connections of its kind are counted.
    pub(crate) fn is_connectable(&self) -> bool {
        matches!(self.family, AF_UNIX | AF_INET | AF_INET6)
    }

    /// Whether its remote end is a host, and which port of it is not known.
    pub(crate) fn lacks_remote(&self) -> bool {
        self.family != AF_UNIX && self.remote_port == 0
    }

    /// Sets its own address to that of a `struct sockaddr`.
    pub(crate) fn set_local(&mut self, address: &[u8]) {
        match Address::parse(address) {
            Some(Address::Unix(path)) if self.family == AF_UNIX => self.path = path,
            Some(Address::Ip(_, port, bytes)) => (self.local_port, self.local) = (port, bytes),
            _ => {}
        }
    }

    /// Sets the address of the other end to that of a `struct sockaddr`. False: it has none that
    /// such a socket can be connected to.
    pub(crate) fn set_remote(&mut self, address: &[u8]) -> bool {
        match Address::parse(address) {
            Some(Address::Unix(path)) if self.family == AF_UNIX => self.peer_path = path,
            Some(Address::Ip(family, port, bytes)) if self.family != AF_UNIX => {
                (self.family, self.remote_port, self.remote) = (family, port, bytes);
            }
            _ => return false,
        }
        true
    }

    /// The ends that the connections of a role with one peer have in common, as `lay_key` of
    /// `connections.bpf.h` lays them: the kernel chooses the others.
    pub(crate) fn in_role(&self, role: Option<Role>) -> Self {
        let mut ends = Self { role, ..self.clone() };
        match (role, self.family) {
            (Some(Role::Connect), AF_UNIX) => ends.path.clear(),
            (_, AF_UNIX) => ends.peer_path.clear(),
            (Some(Role::Connect), _) => (ends.local_port, ends.local) = (0, [0; 16]),
            (Some(Role::Accept), _) => ends.remote_port = 0,
            (None, _) => {}
        }
        ends
    }

    /// Whether it has another end with an address.
    pub(crate) fn is_connected(&self) -> bool {
        match self.is_unix() {
            true => !self.peer_path.is_empty(),
            false => self.remote_port != 0,
        }
    }

    /// What it is connected to, as in `tcp 10.0.0.7:5432` or `unix /run/x`: of a UNIX socket whose
    /// other end has no path, its own. Empty where it is connected to nothing.
    pub(crate) fn peer_text(&self) -> String {
        let protocol = self.protocol();
        let peer = match self.is_unix() {
            true => unix_name(&self.peer_path).or_else(|| unix_name(&self.path)),
            // Where a connect of TCP failed, an address is left, but no port.
            false if self.remote_port == 0 && self.is_tcp() => return String::new(),
            false => match self.address(&self.remote, self.remote_port) {
                Some(address) => Some(address),
                None => return String::new(),
            },
        };
        peer.map_or_else(|| protocol.clone(), |peer| format!("{protocol} {peer}"))
    }

    /// In the record's terms.
    pub(crate) fn socket(&self) -> Socket {
        let is_unix = self.family == AF_UNIX;
        let (local, remote) = match is_unix {
            true => (unix_name(&self.path), unix_name(&self.peer_path)),
            false => (
                self.address(&self.local, self.local_port),
                self.address(&self.remote, self.remote_port),
            ),
        };
        let peer_pid = Some(self.peer_pid).filter(|pid| *pid > 0);
        let peer =
            peer_pid.map(|pid| crate::attach::names(pid).exec).filter(|name| !name.is_empty());
        let role = self.role;
        Socket { protocol: self.protocol(), local, remote, peer_pid, peer, role }
    }

    /// The address, unless it is of no host and no port.
    fn address(&self, bytes: &[u8; 16], port: u32) -> Option<String> {
        let port = u16::try_from(port).unwrap_or(0);
        let address: IpAddr = match self.family {
            AF_INET => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into(),
            // A server for both kinds has those of IPv4 in IPv6.
            AF_INET6 => Ipv6Addr::from(*bytes).to_canonical(),
            _ => return None,
        };
        match port {
            0 if address.is_unspecified() => None,
            // The row of many connections.
            0 if self.role.is_some() => Some(address.to_string()),
            port => Some(SocketAddr::new(address, port).to_string()),
        }
    }

    fn protocol(&self) -> String {
        const UDP: u32 = 17;
        const ICMP: u32 = 1;
        const MPTCP: u32 = 262;
        const SCTP: u32 = 132;
        let name = match (self.family, self.protocol) {
            (AF_UNIX, _) => match self.kind {
                2 => "unix-datagram",
                5 => "unix-seqpacket",
                _ => "unix",
            },
            (AF_INET | AF_INET6, TCP) => "tcp",
            (AF_INET | AF_INET6, UDP) => "udp",
            (AF_INET | AF_INET6, ICMP | 58) => "icmp",
            (AF_INET | AF_INET6, MPTCP) => "mptcp",
            (AF_INET | AF_INET6, SCTP) => "sctp",
            (16, _) => "netlink",
            (17, _) => "packet",
            (38, _) => "alg",
            (40, _) => "vsock",
            (44, _) => "xdp",
            (family, protocol) => return format!("family {family} protocol {protocol}"),
        };
        name.to_owned()
    }
}

/// The address in a `struct sockaddr`.
enum Address {
    /// A path, or an abstract name behind a zero.
    Unix(Vec<u8>),
    /// Of this family, port and bytes.
    Ip(u32, u32, [u8; 16]),
}

impl Address {
    fn parse(address: &[u8]) -> Option<Self> {
        let (family, rest) = address.split_first_chunk()?;
        let family = u32::from(u16::from_ne_bytes(*family));
        let ip = |from: usize, length: usize| {
            let (port, _) = rest.split_first_chunk()?;
            let mut bytes = [0; 16];
            bytes[..length].copy_from_slice(rest.get(from..from + length)?);
            Some(Self::Ip(family, u16::from_be_bytes(*port).into(), bytes))
        };
        match family {
            AF_UNIX => {
                let is_path = rest.first().is_some_and(|byte| *byte != 0);
                let end = rest.iter().position(|byte| *byte == 0).filter(|_| is_path);
                Some(Self::Unix(rest[..end.unwrap_or(rest.len())].to_vec()))
            }
            AF_INET => ip(2, 4),
            // Behind the flow's number.
            AF_INET6 => ip(6, 16),
            _ => None,
        }
    }
}

/// A socket with the name of the process at its other end: that is known of one that was watched,
/// also where it has ended.
pub(crate) fn named(socket: Socket, watched: &HashMap<u32, String>) -> Socket {
    let peer = socket.peer_pid.and_then(|pid| watched.get(&pid)).cloned();
    Socket { peer: peer.or(socket.peer), ..socket }
}

/// A path, or an abstract name, which begins with a zero byte.
fn unix_name(bytes: &[u8]) -> Option<String> {
    match bytes {
        [] => None,
        [0, name @ ..] => Some(format!("@{}", lossless(name))),
        path => {
            let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
            Some(lossless(&path[..end]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(family: u32, protocol: u32) -> SocketName {
        SocketName { family, kind: 1, protocol, ..SocketName::default() }
    }

    #[test]
    fn addresses_are_written_as_others_write_them() {
        let mut tcp = SocketName { local_port: 80, remote_port: 4000, ..name(AF_INET, 6) };
        tcp.local[..4].copy_from_slice(&[127, 0, 0, 1]);
        tcp.remote[..4].copy_from_slice(&[10, 1, 2, 3]);
        let socket = tcp.socket();
        assert_eq!(socket.protocol, "tcp");
        assert_eq!(socket.local.as_deref(), Some("127.0.0.1:80"));
        assert_eq!(socket.remote.as_deref(), Some("10.1.2.3:4000"));
        let mut udp = SocketName { local_port: 53, ..name(AF_INET6, 17) };
        udp.local[15] = 1;
        let socket = udp.socket();
        assert_eq!((&*socket.protocol, socket.remote), ("udp", None));
        assert_eq!(socket.local.as_deref(), Some("[::1]:53"));
        udp.local = Ipv4Addr::new(1, 2, 3, 4).to_ipv6_mapped().octets();
        assert_eq!(udp.socket().local.as_deref(), Some("1.2.3.4:53"));
    }

    #[test]
    fn unix_sockets_have_paths_or_names() {
        let unix = SocketName { path: b"/run/x\0\0".to_vec(), ..name(AF_UNIX, 0) };
        let unix = SocketName { peer_path: b"\0a\xffb".to_vec(), ..unix };
        let socket = unix.socket();
        assert_eq!((&*socket.protocol, socket.local.as_deref()), ("unix", Some("/run/x")));
        assert_eq!(socket.remote, Some(format!("@{}", lossless(b"a\xffb"))));
        assert_eq!(name(99, 3).socket().protocol, "family 99 protocol 3");
    }

    #[test]
    fn addresses_of_programs_are_taken_as_they_are() {
        let address = |family: u32, rest: &[u8]| {
            [&u16::try_from(family).unwrap().to_ne_bytes(), rest].concat()
        };
        let mut tcp = name(AF_INET, 6);
        assert!(
            tcp.set_remote(&address(AF_INET, &[0, 80, 10, 1, 2, 3, 0, 0])) && !tcp.lacks_remote()
        );
        tcp.set_local(&address(AF_INET, &[1, 0, 127, 0, 0, 1]));
        assert_eq!(tcp.socket().remote.as_deref(), Some("10.1.2.3:80"));
        assert_eq!(tcp.socket().local.as_deref(), Some("127.0.0.1:256"));
        // Cut short, of no family, of another one's: to be disconnected.
        for other in
            [&address(AF_INET, &[0, 80, 10]), &address(0, &[0; 14]), &address(AF_UNIX, b"x")]
        {
            assert!(!tcp.set_remote(other), "{other:?}");
        }
        let mut six = vec![0, 53, 9, 9, 9, 9];
        six.extend(Ipv6Addr::LOCALHOST.octets());
        let mut udp = name(AF_INET6, 17);
        assert!(udp.set_remote(&address(AF_INET6, &six)));
        assert_eq!(udp.socket().remote.as_deref(), Some("[::1]:53"));
        let mut unix = name(AF_UNIX, 0);
        assert!(unix.set_remote(&address(AF_UNIX, b"/run/x\0garbage")));
        assert_eq!(unix.socket().remote.as_deref(), Some("/run/x"));
        assert!(unix.set_remote(&address(AF_UNIX, b"\0a\0b")));
        assert_eq!(unix.peer_path, b"\0a\0b");
    }

    #[test]
    fn a_peer_is_a_protocol_and_an_address() {
        let tcp = SocketName { remote: [127; 16], ..name(AF_INET, 6) };
        assert_eq!((tcp.peer_text(), tcp.is_connected()), (String::new(), false));
        let tcp = SocketName { remote_port: 80, ..tcp };
        assert_eq!((&*tcp.peer_text(), tcp.is_connected()), ("tcp 127.127.127.127:80", true));
        let unix = name(AF_UNIX, 0);
        assert_eq!(unix.peer_text(), "unix");
        let unix = SocketName { kind: 2, path: b"\0own".into(), ..unix };
        assert_eq!((&*unix.peer_text(), unix.is_connected()), ("unix-datagram @own", false));
        let unix = SocketName { peer_path: b"/run/x".into(), ..unix };
        assert_eq!((&*unix.peer_text(), unix.is_connected()), ("unix-datagram /run/x", true));
    }

    #[test]
    fn the_ends_of_a_role_are_those_that_the_kernel_does_not_choose() {
        let tcp = SocketName { local_port: 80, remote_port: 4000, ..name(AF_INET, 6) };
        let tcp = SocketName { local: [1; 16], remote: [2; 16], ..tcp };
        let ends = |role| {
            let Socket { local, remote, .. } = tcp.in_role(role).socket();
            (local, remote)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(ends(Some(Role::Connect)), (None, some("2.2.2.2:4000")));
        assert_eq!(ends(Some(Role::Accept)), (some("1.1.1.1:80"), some("2.2.2.2")));
        assert_eq!(ends(None), (some("1.1.1.1:80"), some("2.2.2.2:4000")));
        let unix = SocketName { path: b"a".into(), peer_path: b"b".into(), ..name(AF_UNIX, 0) };
        let unix = |role| unix.in_role(role).socket();
        let [connects, accepts] = [Role::Connect, Role::Accept].map(|role| unix(Some(role)));
        assert_eq!((connects.local, connects.remote), (None, some("b")));
        assert_eq!((accepts.local, accepts.remote), (some("a"), None));
    }
}
