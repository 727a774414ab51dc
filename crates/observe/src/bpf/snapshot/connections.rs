//! The connections of a snapshot.
//!
//! The rows of connections are read before those that are tracked: one that ends in between is missed
//! once, and the next snapshot has it.

use std::collections::HashMap;

use iotomy_record::{Connection, ConnectionCounts, Socket};

use super::{FileKey, FileSum, NameCache, SnapshotSums};
use crate::bpf::connection_rows::{ConnectionKey, Track};
use crate::bpf::connections;
use crate::bpf::layout::{Fields, Wire};
use crate::bpf::object::{RowAction, Session};
use crate::connections::{ByEnds, add_traffic};
use crate::sockets::{SocketName, named};

/// The address of a connection's socket, by which the kernel side tracks it.
struct Sock;

impl Wire for Sock {
    const SIZE: usize = 8;

    fn read(from: &mut Fields<'_>) -> Self {
        from.u64();
        Self
    }
}

/// The connections in the kernel's tables.
#[derive(Default)]
pub(super) struct ConnectionSums {
    rows: HashMap<u32, HashMap<SocketName, ConnectionCounts>>,
    /// What images that have connections moved through files.
    pub(super) traffic: HashMap<(u32, FileKey), FileSum>,
}

impl ConnectionSums {
    fn row(&mut self, key: ConnectionKey) -> &mut ConnectionCounts {
        self.rows.entry(key.image).or_default().entry(key.name).or_default()
    }
}

impl SnapshotSums<'_> {
    /// Reads the tables; their images have changed.
    pub(super) fn add_connections(&mut self, session: &Session) -> Result<(), String> {
        let sums = &mut self.connections;
        connections::visit(session, |key, counts| {
            sums.row(key).counts.merge(&counts);
            RowAction::Kept
        });
        session.written("snapshot_open")?;
        session.visit("tracked", |_: Sock, Track { key, open }: Track| {
            if let Some(figures) = open {
                sums.row(key).open.get_or_insert_default().merge(&figures);
            }
            RowAction::Kept
        });
        for image in sums.rows.keys().filter(|image| self.images.contains_key(image)) {
            self.by_image.entry(*image).or_default();
        }
        Ok(())
    }

    /// Whether rows of connections of an image may be in the snapshot.
    pub(super) fn has_connections(&self, image: u32) -> bool {
        let may_have_changed = self.chosen.as_ref().is_none_or(|chosen| chosen.contains(&image));
        let is_known =
            || self.connections.rows.contains_key(&image) || self.books.connections.has(&image);
        may_have_changed && is_known()
    }

    /// The connections of an image, in the kernel's tables and collected.
    fn connections_of(&self, image: u32) -> HashMap<&SocketName, ConnectionCounts> {
        let mut rows: HashMap<&SocketName, ConnectionCounts> = HashMap::new();
        for (name, counts) in self.connections.rows.get(&image).into_iter().flatten() {
            rows.insert(name, counts.clone());
        }
        for (name, counts) in self.books.connections.of_image(&image) {
            rows.entry(name).or_default().counts.merge(counts);
        }
        rows
    }
}

impl NameCache {
    /// By peer, over all images.
    pub(super) fn connections(&mut self, sight: &SnapshotSums<'_>) -> Vec<ConnectionCounts> {
        let mut sums: ByEnds<(Option<ConnectionCounts>, Option<u32>)> = ByEnds::default();
        for image in sight.images.keys() {
            for (name, more) in sight.connections_of(*image) {
                let (sum, user) = sums.row(self.ends(name));
                *user = if sum.is_none() || *user == Some(*image) { Some(*image) } else { None };
                merge(sum.get_or_insert_default(), &more);
            }
        }
        let pids = pids(sight);
        let rows = sums.into_rows().filter_map(|(ends, (sum, user))| {
            let ConnectionCounts { counts, open } = sum?;
            let user = user.and_then(|id| Some((sight.images.get(&id)?.doing.pid, id)));
            let (pid, exec) = user.map_or((0, String::new()), |(pid, id)| (pid, sight.exec(id)));
            let ends = named(ends, &pids);
            Some(ConnectionCounts { counts: Connection { pid, exec, ends, ..counts }, open })
        });
        rows.collect()
    }

    /// Of images that may have changed, with what their calls moved.
    pub(super) fn connections_by_image(
        &mut self,
        sight: &SnapshotSums<'_>,
    ) -> HashMap<u32, Vec<ConnectionCounts>> {
        let mut images: HashMap<u32, ByEnds<ConnectionCounts>> = HashMap::new();
        for image in sight.by_image.keys() {
            for (name, more) in sight.connections_of(*image) {
                merge(images.entry(*image).or_default().row(self.ends(name)), &more);
            }
        }
        for ((image, file), sum) in &sight.connections.traffic {
            let (Some(rows), Some(file)) = (images.get_mut(image), self.files.get(file)) else {
                continue;
            };
            let row = file.socket.as_ref().and_then(|socket| rows.row_of(socket));
            if let Some(row) = row {
                add_traffic(&mut row.counts, &sum.row());
            }
        }
        let pids = pids(sight);
        let rows = |rows: ByEnds<ConnectionCounts>| {
            let rows = rows.into_rows().map(|(ends, ConnectionCounts { counts, open })| {
                let ends = named(ends, &pids);
                ConnectionCounts { counts: Connection { ends, ..counts }, open }
            });
            rows.collect()
        };
        images.into_iter().map(|(image, of_image)| (image, rows(of_image))).collect()
    }

    /// The ends of a connection: the process at the other one has a name as long as it lives.
    pub(super) fn ends(&mut self, name: &SocketName) -> &Socket {
        if !self.sockets.contains_key(name) {
            self.sockets.insert(name.clone(), name.socket());
        }
        &self.sockets[name]
    }
}

fn merge(sum: &mut ConnectionCounts, more: &ConnectionCounts) {
    sum.counts.merge(&more.counts);
    if let Some(open) = &more.open {
        sum.open.get_or_insert_default().merge(open);
    }
}

/// The names of the processes that are and were watched.
pub(super) fn pids(sight: &SnapshotSums<'_>) -> HashMap<u32, String> {
    let mut images: Vec<u32> = sight.images.keys().copied().collect();
    images.sort_unstable();
    let name = |image: u32| {
        let program = sight.program(image)?;
        Some((sight.images.get(&image)?.doing.pid, program.exec.clone()))
    };
    images.into_iter().filter_map(name).collect()
}
