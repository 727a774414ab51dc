//! By which end a connection is called, so that those with one peer share a name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use crate::{FileUse, Role, Socket};

/// A protocol, a remote host, and a port of either end.
type End = (String, String, String);

/// The connections of one trace or of several: how many have the same remote host and port, and how
/// many the same remote host and local port.
#[derive(Debug, Default)]
pub struct SocketNames {
    remote: BTreeMap<End, usize>,
    local: BTreeMap<End, usize>,
    /// The names of remote addresses.
    hosts: BTreeMap<String, String>,
}

impl SocketNames {
    /// None yet; the names of remote addresses are shown beside these.
    pub fn with_hosts(hosts: &BTreeMap<String, String>) -> Self {
        Self { hosts: hosts.clone(), ..Self::default() }
    }

    /// Forgets the connections.
    pub fn forget(&mut self) {
        self.remote.clear();
        self.local.clear();
    }

    /// Counts the connections of a trace, each once however many images used it.
    pub fn add<'f>(&mut self, files: impl Iterator<Item = &'f FileUse>) {
        let mut seen = BTreeSet::new();
        for file in files {
            let Some(socket) = &file.socket else { continue };
            if socket.is_unix() || !seen.insert(file.path.as_str()) {
                continue;
            }
            let (host, port) = split(socket.remote.as_deref().unwrap_or_default());
            let (_, own) = split(socket.local.as_deref().unwrap_or_default());
            let end = |port: &str| (socket.protocol.clone(), host.to_owned(), port.to_owned());
            *self.remote.entry(end(port)).or_default() += 1;
            *self.local.entry(end(own)).or_default() += 1;
        }
    }

    /// Of a connection that was made during the watch, it is known which end chose its port. Else, a
    /// server's clients have ports of their own, and share the server's: they are one peer by their
    /// host. Else a peer is a host and a port.
    pub fn name(&self, socket: &Socket) -> String {
        let protocol = &socket.protocol;
        let own = socket.local.as_deref().map(|local| split(local).1);
        let Some(remote) = &socket.remote else {
            return match own {
                // Its own address is nobody else's, be it a listener or a socket that datagrams come to from anyone.
                Some(own) if !socket.is_unix() && !matches!(own, "" | "0") => {
                    format!("{protocol} (port {own} here)")
                }
                _ => socket.text(),
            };
        };
        if socket.is_unix() {
            return Socket { local: None, ..socket.clone() }.text();
        }
        let (host, port) = split(remote);
        let count = |of: &BTreeMap<End, usize>, port: &str| {
            let end = (protocol.clone(), host.to_owned(), port.to_owned());
            of.get(&end).copied().unwrap_or(0)
        };
        let is_client = match socket.role {
            Some(Role::Connect) => false,
            Some(Role::Accept) => own.is_some(),
            None => count(&self.local, own.unwrap_or_default()) > count(&self.remote, port),
        };
        let host = remote.parse::<SocketAddr>().map(|both| both.ip().to_string());
        let host = host.unwrap_or_else(|_| remote.clone());
        let name = self.hosts.get(&host).map(|name| format!(" {name}")).unwrap_or_default();
        match is_client {
            true => format!("{protocol} {host}{name} (port {} here)", own.unwrap_or_default()),
            false => format!("{protocol} {remote}{name}"),
        }
    }
}

/// Host and port of an address.
fn split(address: &str) -> (&str, &str) {
    address.rsplit_once(':').unwrap_or((address, ""))
}
