//! The rows of the tables of peers, and of the connections of one.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{Connection, ConnectionCounts, FileUse, statistic};

use super::rows::{Row, SnapshotDelta, count, rate, size};
use super::subject::Subject;
use super::tabs::Tab;
use crate::numbers::{counted, figure};
use crate::page::Page;
use crate::trace::images::label;
use crate::trace::peers::remarks;

/// The connections to a peer.
#[derive(Default)]
struct PeerSum<'a> {
    /// What came of connects and accepts, and of those since the snapshot before.
    made: Connection,
    newly_opened: u64,
    connections: u64,
    /// Of these, the ones that a call moved bytes through since the snapshot before.
    active: u64,
    new: FileUse,
    all: FileUse,
    users: BTreeSet<(u32, &'a str)>,
}

impl<'a> PeerSum<'a> {
    fn add(&mut self, file: &'a FileUse, before: &FileUse) {
        self.connections += 1;
        let new: FileUse = statistic::since(file, &mut before.clone());
        self.active += u64::from(new.read_calls > 0 || new.write_calls > 0);
        statistic::add(&mut self.new, &new);
        statistic::add(&mut self.all, file);
        if file.pid > 0 {
            self.users.insert((file.pid, &file.exec));
        }
    }
}

impl<'a> SnapshotDelta<'a> {
    /// Whether it is a connection of a peer.
    pub(super) fn leads_to(&self, peer: &str, file: &FileUse) -> bool {
        self.peers.name(file).as_deref() == Some(peer)
    }

    pub(super) fn connection_rows(&self, page: &Page<'_>) -> Vec<Row> {
        let mut rows = self.file_rows(page);
        let columns = Tab::Connections.columns();
        for row in &mut rows {
            row.cells.truncate(columns);
            row.keys.truncate(columns);
        }
        rows
    }

    /// The sums of connections by peer.
    fn made(&self, of: &[ConnectionCounts]) -> BTreeMap<String, Connection> {
        let mut sums: BTreeMap<String, Connection> = BTreeMap::new();
        for ConnectionCounts { counts, open } in of {
            let sum = sums.entry(self.peers.socket_name(&counts.ends)).or_default();
            sum.merge(counts);
            open.iter().for_each(|open| sum.tcp.get_or_insert_default().merge(open));
        }
        sums
    }

    pub(super) fn peer_rows(&self, page: &Page<'_>) -> Vec<Row> {
        let none = FileUse::default();
        let before = self.files(self.before).into_iter();
        let before: BTreeMap<_, _> = before.map(|file| ((&file.path, file.kind), file)).collect();
        let mut peers: BTreeMap<String, PeerSum<'_>> = BTreeMap::new();
        for file in self.files(self.now) {
            let Some(name) = self.peers.name(file) else { continue };
            let old = before.get(&(&file.path, file.kind)).copied().unwrap_or(&none);
            peers.entry(name).or_default().add(file, old);
        }
        for one in &self.now.uses {
            let of_peer = self.peers.name(one).and_then(|name| peers.get_mut(&name));
            if let Some(of_peer) = of_peer {
                of_peer.users.insert((one.pid, &one.exec));
            }
        }
        let mut earlier = self.made(self.connections_before);
        for (name, made) in self.made(self.connections_now) {
            let before = earlier.remove(&name).map_or(0, |earlier| earlier.opened);
            let sum = peers.entry(name).or_default();
            sum.newly_opened = made.opened.saturating_sub(before);
            sum.made = made;
        }
        for one in self.connections_now.iter().filter(|one| one.counts.pid > 0) {
            let of_peer = peers.get_mut(&self.peers.socket_name(&one.counts.ends));
            if let Some(of_peer) = of_peer {
                of_peer.users.insert((one.counts.pid, &one.counts.exec));
            }
        }
        let row = |(name, sum): (String, PeerSum<'_>)| {
            let mut row = Row::new(Subject::Peer(name.clone()), page.name(&name, page.width()));
            row.cell(sum.connections as f64, count);
            row.cell(sum.active as f64, count);
            let a_second = |n: u64| self.a_second(n.into());
            row.cell(a_second(sum.new.read_calls + sum.new.write_calls), rate);
            row.cell(a_second(sum.new.read_bytes), size);
            row.cell(a_second(sum.new.write_bytes), size);
            row.cell(a_second(sum.new.read_calls), rate);
            row.cell(a_second(sum.new.write_calls), rate);
            row.cell(sum.all.read_bytes as f64, size);
            row.cell(sum.all.write_bytes as f64, size);
            row.cell(a_second(sum.newly_opened), rate);
            row.cell(sum.made.opened as f64, count);
            row.cell(sum.made.closed.unwrap_or(0) as f64, count);
            row.cell(sum.made.mean_ns().unwrap_or(0.0) / 1e3, figure);
            row.cell(sum.made.mean_rtt_us().unwrap_or(0.0), figure);
            row.cells.push(remarks(page, &sum.made));
            row.keys.push(sum.made.failed() as f64);
            row.text(match sum.users.first() {
                None => String::new(),
                Some((pid, exec)) if sum.users.len() == 1 => label(page, exec, *pid),
                _ => counted(sum.users.len() as u128, "process", "processes"),
            });
            row
        };
        peers.into_iter().map(row).collect()
    }
}
