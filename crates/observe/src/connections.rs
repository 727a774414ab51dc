//! Connections by program image and peer, in a bounded table, for every observer.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use iotomy_record::{Connection, FileUse, Role, Socket};

use crate::sockets::SocketName;

/// The connections of all images.
#[derive(Debug)]
pub(crate) struct ConnectionBook<I> {
    images: HashMap<I, HashMap<SocketName, Connection>>,
    /// Most rows there is room for, and how many there are.
    most: usize,
    count: usize,
    /// Connections, and outcomes of connects and accepts, whose rows found no room.
    pub(crate) lost: u64,
}

impl<I: Hash + Eq> Default for ConnectionBook<I> {
    fn default() -> Self {
        Self::with_room(0)
    }
}

impl<I: Hash + Eq> ConnectionBook<I> {
    /// With room for this many rows.
    pub(crate) fn with_room(most: usize) -> Self {
        Self { images: HashMap::new(), most, count: 0, lost: 0 }
    }

    /// The row of an image's connections of these ends; `None` if it is new and the table is full.
    pub(crate) fn row(&mut self, image: I, ends: SocketName) -> Option<&mut Connection> {
        let of_image = self.images.entry(image).or_default();
        if !of_image.contains_key(&ends) {
            if self.count >= self.most {
                return None;
            }
            self.count += 1;
        }
        Some(of_image.entry(ends).or_default())
    }

    /// Whether it has rows of an image.
    pub(crate) fn has(&self, image: &I) -> bool {
        self.images.contains_key(image)
    }

    /// The rows of an image.
    pub(crate) fn of_image(&self, image: &I) -> impl Iterator<Item = (&SocketName, &Connection)> {
        self.images.get(image).into_iter().flatten()
    }

    /// The rows of an image, with the bytes that its calls moved through their sockets.
    pub(crate) fn rows<'f>(
        &mut self,
        image: &I,
        (pid, exec): (u32, &str),
        files: impl IntoIterator<Item = &'f FileUse>,
    ) -> Vec<Connection> {
        let mut rows: ByEnds<Connection> = ByEnds::default();
        for (name, row) in self.images.remove(image).unwrap_or_default() {
            rows.row(&name.socket()).merge(&row);
        }
        for file in files {
            let Some(socket) = &file.socket else { continue };
            if let Some(row) = rows.row_of(socket) {
                add_traffic(row, file);
            }
        }
        let mut rows: Vec<Connection> = rows
            .into_rows()
            .map(|(ends, row)| Connection { pid, exec: exec.to_owned(), ends, ..row })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.opened, row.before)));
        rows
    }
}

/// Rows by the ends of their connections, whatever the process at the other end is called.
#[derive(Debug)]
pub(crate) struct ByEnds<Row>(BTreeMap<Socket, (Socket, Row)>);

impl<Row> Default for ByEnds<Row> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<Row: Default> ByEnds<Row> {
    /// The row of these ends.
    pub(crate) fn row(&mut self, ends: &Socket) -> &mut Row {
        let (_, row) =
            self.0.entry(ends.unnamed()).or_insert_with(|| (ends.clone(), Row::default()));
        row
    }

    /// The row of the connection that a socket is an end of, if there is one.
    pub(crate) fn row_of(&mut self, socket: &Socket) -> Option<&mut Row> {
        self.0.get_mut(&as_peer(socket).unnamed()).map(|(_, row)| row)
    }

    pub(crate) fn into_rows(self) -> impl Iterator<Item = (Socket, Row)> {
        self.0.into_values()
    }
}

/// Adds what calls moved through a socket.
pub(crate) fn add_traffic(row: &mut Connection, file: &FileUse) {
    row.read_calls += file.read_calls;
    row.read_bytes += file.read_bytes;
    row.write_calls += file.write_calls;
    row.write_bytes += file.write_bytes;
}

/// What `lay_key` of `connections.bpf.h` leaves of a socket's ends.
fn as_peer(socket: &Socket) -> Socket {
    let mut socket = socket.clone();
    if socket.protocol.starts_with("unix") || socket.protocol == "udp" {
        socket.role = socket.role.or(match (&socket.remote, &socket.local) {
            (Some(_), _) => Some(Role::Connect),
            (None, Some(_)) => Some(Role::Accept),
            (None, None) => None,
        });
    }
    let without_port = |address: String| match address.rsplit_once(':') {
        Some((host, _)) => host.trim_matches(['[', ']']).to_owned(),
        None => address,
    };
    match socket.role {
        Some(Role::Connect) => socket.local = None,
        Some(Role::Accept) if !socket.protocol.starts_with("unix") => {
            socket.remote = socket.remote.map(without_port);
        }
        _ => {}
    }
    socket
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_room_are_none() {
        let mut book = ConnectionBook::with_room(1);
        let mut has_room = |image: u32| book.row(image, SocketName::default()).is_some();
        assert!(has_room(1) && has_room(1), "one row");
        assert!(!has_room(2) && has_room(1));
    }

    fn socket(protocol: &str, local: &str, remote: &str, role: Option<Role>) -> Socket {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let (protocol, local, remote) = (protocol.to_owned(), some(local), some(remote));
        Socket { protocol, local, remote, role, ..Socket::default() }
    }

    #[test]
    fn ports_of_the_kernels_choice_are_left_out() {
        let connects = Some(Role::Connect);
        let accepts = Some(Role::Accept);
        for (from, to) in [
            (("tcp", "[::1]:1", "[::1]:2", connects), ("tcp", "", "[::1]:2", connects)),
            (("tcp", "[::1]:1", "[::1]:2", accepts), ("tcp", "[::1]:1", "::1", accepts)),
            (("tcp", "1.2.3.4:1", "1.2.3.4:2", accepts), ("tcp", "1.2.3.4:1", "1.2.3.4", accepts)),
            (("tcp", "[::1]:1", "[::1]:2", None), ("tcp", "[::1]:1", "[::1]:2", None)),
            (("unix", "", "/run/x", None), ("unix", "", "/run/x", connects)),
            (("unix", "/run/x", "", None), ("unix", "/run/x", "", accepts)),
            (("udp", "1.2.3.4:1", "1.2.3.4:2", None), ("udp", "", "1.2.3.4:2", connects)),
        ] {
            let (from, to) =
                (socket(from.0, from.1, from.2, from.3), socket(to.0, to.1, to.2, to.3));
            assert_eq!(as_peer(&from), to);
        }
    }
}
