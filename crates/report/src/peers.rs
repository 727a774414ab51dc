//! The names of peers: what is at the other end of a socket or a pipe, by which traffic is summed.
//!
//! Which end a connection is called by follows from all of them, so names may change while connections come.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{FileKind, FileUse, Socket, SocketNames};

use crate::numbers::counted;

/// What tells the other ends of a run's sockets and pipes apart.
#[derive(Debug, Default)]
pub(crate) struct PeerNames {
    sockets: SocketNames,
    /// By path: who writes to it and who reads from it.
    pipes: BTreeMap<String, [BTreeSet<String>; 2]>,
}

impl PeerNames {
    /// None yet; the names of remote addresses are shown beside these.
    pub(crate) fn with_hosts(hosts: &BTreeMap<String, String>) -> Self {
        Self { sockets: SocketNames::with_hosts(hosts), ..Self::default() }
    }

    /// Takes the sockets in place of those known before. A socket that several images use is one.
    pub(crate) fn set_sockets<'r>(&mut self, files: impl Iterator<Item = &'r FileUse>) {
        self.sockets.forget();
        self.sockets.add(files);
    }

    /// Adds to the processes at the ends of pipes; rows without a process add none.
    pub(crate) fn add_pipes<'r>(
        &mut self,
        files: impl Iterator<Item = &'r FileUse>,
        label: impl Fn(&FileUse) -> String,
    ) {
        for pipe in files.filter(|file| file.kind == FileKind::Pipe && file.pid > 0) {
            if !self.pipes.contains_key(&pipe.path) {
                self.pipes.insert(pipe.path.clone(), Default::default());
            }
            let Some([writers, readers]) = self.pipes.get_mut(&pipe.path) else { continue };
            if pipe.write_calls > 0 {
                writers.insert(label(pipe));
            }
            if pipe.read_calls > 0 {
                readers.insert(label(pipe));
            }
        }
    }

    /// Forgets pipes that are in none of these files.
    pub(crate) fn keep_pipes<'r>(&mut self, files: impl Iterator<Item = &'r FileUse>) {
        let known: BTreeSet<&str> = files.map(|file| file.path.as_str()).collect();
        self.pipes.retain(|path, _| known.contains(path.as_str()));
    }

    /// The name of a socket's or a pipe's peer; `None` of what has none, or an unknown one.
    pub(crate) fn name(&self, file: &FileUse) -> Option<String> {
        match (&file.socket, file.kind) {
            (Some(socket), _) => Some(self.socket_name(socket)),
            (None, FileKind::Pipe) => Some(self.pipe_name(&file.path)),
            _ => None,
        }
    }

    pub(crate) fn socket_name(&self, socket: &Socket) -> String {
        self.sockets.name(socket)
    }

    fn pipe_name(&self, path: &str) -> String {
        let name = |all: Option<&BTreeSet<String>>| match all {
            Some(all) if all.len() > 1 => counted(all.len() as u128, "process", "processes"),
            Some(all) if !all.is_empty() => all.first().cloned().unwrap_or_default(),
            _ => "nobody watched".to_owned(),
        };
        let ends = self.pipes.get(path);
        let [writers, readers] = [0, 1].map(|end| name(ends.map(|ends| &ends[end])));
        format!("pipe from {writers} to {readers}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(number: u32, local: &str, remote: &str) -> FileUse {
        let socket = Socket {
            protocol: "tcp".into(),
            local: Some(local.into()),
            remote: Some(remote.into()),
            ..Socket::default()
        };
        let (kind, path) = (FileKind::Socket, format!("socket:[{number}]"));
        FileUse { kind, path, socket: Some(socket), ..FileUse::default() }
    }

    #[test]
    fn clients_of_a_port_are_one_peer_and_so_are_connections_to_a_port() {
        let first = connection(1, "10.0.0.1:80", "10.0.0.9:4001");
        let mut names = PeerNames::default();
        names.set_sockets([&first].into_iter());
        assert_eq!(names.name(&first).unwrap(), "tcp 10.0.0.9:4001", "there is but one");
        let second = connection(2, "10.0.0.1:80", "10.0.0.9:4002");
        let out = [3, 4].map(|n| connection(n, &format!("[::1]:500{n}"), "[::1]:5432"));
        names.set_sockets([&first, &first, &second, &out[0], &out[1]].into_iter());
        assert_eq!(names.name(&first).unwrap(), "tcp 10.0.0.9 (port 80 here)");
        assert_eq!(names.name(&first), names.name(&second));
        assert_eq!(names.name(&out[1]).unwrap(), "tcp [::1]:5432");
    }

    #[test]
    fn a_socket_without_a_peer_is_not_called_by_its_own_address() {
        let mut udp = connection(1, "127.0.0.1:50855", "");
        let socket = udp.socket.as_mut().unwrap();
        (socket.protocol, socket.remote) = ("udp".into(), None);
        let mut names = PeerNames::default();
        names.set_sockets([&udp].into_iter());
        assert_eq!(names.name(&udp).unwrap(), "udp (port 50855 here)");
    }

    #[test]
    fn a_pipe_keeps_the_ends_that_were_seen_until_it_is_gone() {
        let end = |pid: u32, write_calls, read_calls| FileUse {
            pid,
            kind: FileKind::Pipe,
            path: "pipe:[7]".into(),
            write_calls,
            read_calls,
            ..FileUse::default()
        };
        let label = |file: &FileUse| format!("p{}", file.pid);
        let (writer, reader) = (end(1, 1, 0), end(2, 0, 1));
        let mut names = PeerNames::default();
        names.add_pipes([&writer].into_iter(), label);
        assert_eq!(names.name(&writer).unwrap(), "pipe from p1 to nobody watched");
        names.add_pipes([&reader].into_iter(), label);
        assert_eq!(names.name(&reader).unwrap(), "pipe from p1 to p2");
        names.add_pipes([&end(3, 0, 1)].into_iter(), label);
        assert_eq!(names.name(&reader).unwrap(), "pipe from p1 to 2 processes");
        names.keep_pipes([].into_iter());
        assert_eq!(names.name(&reader).unwrap(), "pipe from nobody watched to nobody watched");
    }
}
