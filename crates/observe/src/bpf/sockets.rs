//! Sockets, from the kernel's struct to the record.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use iotomy_record::{Socket, lossless};

use super::layout::{Fields, Wire};

const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;

/// As in `trace.h`, with room to the next word.
const UNIX_PATH: usize = 112;

/// `struct socket_name` of `trace.h`.
#[derive(Debug, Clone)]
pub(super) struct SocketName {
    family: u32,
    kind: u32,
    protocol: u32,
    local_port: u32,
    remote_port: u32,
    local: [u8; 16],
    remote: [u8; 16],
    peer_pid: u32,
    path: Vec<u8>,
    peer_path: Vec<u8>,
}

impl Wire for SocketName {
    const SIZE: usize = 6 * 4 + 2 * 16 + 4 * 4 + 2 * UNIX_PATH;

    fn read(from: &mut Fields<'_>) -> Self {
        let (family, kind, protocol, _state) = (from.u32(), from.u32(), from.u32(), from.u32());
        let (local_port, remote_port) = (from.u32(), from.u32());
        let mut address = || from.bytes(16).try_into().unwrap_or_default();
        let (local, remote) = (address(), address());
        let (peer_pid, length, peer_length, _pad) =
            (from.u32(), from.u32(), from.u32(), from.u32());
        let mut text = |length: u32| {
            let bytes = from.bytes(UNIX_PATH);
            bytes.get(..length as usize).unwrap_or(bytes).to_vec()
        };
        let (path, peer_path) = (text(length), text(peer_length));
        Self {
            family,
            kind,
            protocol,
            local_port,
            remote_port,
            local,
            remote,
            peer_pid,
            path,
            peer_path,
        }
    }
}

impl SocketName {
    /// In the record's terms.
    pub(super) fn socket(&self) -> Socket {
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
        Socket { protocol: self.protocol(), local, remote, peer_pid, peer }
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
        let is_none = address.is_unspecified() && port == 0;
        (!is_none).then(|| SocketAddr::new(address, port).to_string())
    }

    fn protocol(&self) -> String {
        const TCP: u32 = 6;
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
        let (local, remote, kind) = ([0; 16], [0; 16], 1);
        let (path, peer_path) = (Vec::new(), Vec::new());
        let (local_port, remote_port, peer_pid) = (0, 0, 0);
        SocketName {
            family,
            kind,
            protocol,
            local_port,
            remote_port,
            local,
            remote,
            peer_pid,
            path,
            peer_path,
        }
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
}
