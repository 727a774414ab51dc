//! Sockets from the kernel's struct.

use iotomy_record::Role;

use super::layout::{Fields, Wire};
use crate::sockets::SocketName;

/// As in `trace.h`, with room to the next word.
pub(super) const UNIX_PATH: usize = 112;

/// `role` of `trace.h`.
pub(super) fn role(number: u32) -> Option<Role> {
    match number {
        1 => Some(Role::Connect),
        2 => Some(Role::Accept),
        _ => None,
    }
}

/// `struct socket_name` of `trace.h`.
impl Wire for SocketName {
    const SIZE: usize = 6 * 4 + 2 * 16 + 4 * 4 + 2 * UNIX_PATH;

    fn read(from: &mut Fields<'_>) -> Self {
        let (family, kind, protocol, _state) = (from.u32(), from.u32(), from.u32(), from.u32());
        let (local_port, remote_port) = (from.u32(), from.u32());
        let mut address = || from.bytes(16).try_into().unwrap_or_default();
        let (local, remote) = (address(), address());
        let (peer_pid, length, peer_length, made) =
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
            role: role(made),
        }
    }
}
