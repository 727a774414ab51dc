//! The rows of the tables of peers, and of the connections of one.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{ConnectionCounts, FileUse};

use super::rows::{Column, FILES, Row, SnapshotDelta, Subject, count, rate, size};
use crate::numbers::{counted, figure};
use crate::page::Page;
use crate::trace::images::label;
use crate::trace::peers::Made;

/// Sockets and pipes, by what is at the other end. What came of connects and accepts is told as in the
/// report.
pub(super) const PEERS: [Column; 17] = [
    ("peer", "", 18, 24),
    ("conns", "in all", 13, 6),
    ("active", "now", 6, 6),
    ("calls", "/s", 17, 9),
    ("read", "/s", 15, 8),
    ("written", "/s", 14, 8),
    ("reads", "/s", 4, 7),
    ("writes", "/s", 3, 7),
    ("read", "in all", 8, 8),
    ("written", "in all", 7, 8),
    ("opened", "/s", 10, 6),
    ("opened", "in all", 12, 6),
    ("closed", "in all", 5, 6),
    ("time", "µs", 11, 5),
    ("rtt", "µs", 9, 5),
    ("errors", "in all", 16, 8),
    ("by", "", 2, 16),
];

/// Those of them that are known where connections are counted.
pub(super) const OF_CONNECTIONS: std::ops::RangeInclusive<usize> = 10..=ERRORS;

/// Where errors stand.
pub(super) const ERRORS: usize = 15;

/// Where the processes stand.
pub(super) const BY: usize = 16;

/// The connections of a peer: as files, which are never mapped.
pub(super) const CONNECTIONS: [Column; 8] = {
    let mut columns = [FILES[0]; 8];
    let mut at = 1;
    while at < columns.len() {
        columns[at] = FILES[at];
        at += 1;
    }
    columns[0].0 = "connection";
    columns
};

/// Calls and bytes each way.
#[derive(Default)]
struct Traffic {
    reads: u128,
    writes: u128,
    read_bytes: u128,
    written_bytes: u128,
}

impl Traffic {
    fn add(&mut self, now: &FileUse, before: &FileUse) {
        let more = |now: u64, before: u64| u128::from(now.saturating_sub(before));
        self.reads += more(now.read_calls, before.read_calls);
        self.writes += more(now.write_calls, before.write_calls);
        self.read_bytes += more(now.read_bytes, before.read_bytes);
        self.written_bytes += more(now.write_bytes, before.write_bytes);
    }
}

/// The connections to a peer.
#[derive(Default)]
struct PeerSum<'a> {
    /// What came of connects and accepts, and of those since the snapshot before.
    made: Made<'a>,
    newly_opened: u128,
    connections: u64,
    /// Of these, the ones that a call moved bytes through since the snapshot before.
    active: u64,
    new: Traffic,
    all: Traffic,
    users: BTreeSet<(u32, &'a str)>,
}

impl<'a> PeerSum<'a> {
    fn add(&mut self, file: &'a FileUse, before: &FileUse) {
        self.connections += 1;
        let mut new = Traffic::default();
        new.add(file, before);
        self.active += u64::from(new.reads + new.writes > 0);
        self.new.add(file, before);
        self.all.add(file, &FileUse::default());
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
        for row in &mut rows {
            row.cells.truncate(CONNECTIONS.len());
            row.keys.truncate(CONNECTIONS.len());
        }
        rows
    }

    /// The sums of connections by peer.
    fn made(&self, of: &'a [ConnectionCounts]) -> BTreeMap<String, Made<'a>> {
        let mut sums: BTreeMap<String, Made<'a>> = BTreeMap::new();
        for ConnectionCounts { counts, open } in of {
            let sum = sums.entry(self.peers.socket_name(&counts.ends)).or_default();
            sum.add(counts);
            open.iter().for_each(|open| sum.add_figures(open));
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
            row.cell(self.a_second(sum.new.reads + sum.new.writes), rate);
            row.cell(self.a_second(sum.new.read_bytes), size);
            row.cell(self.a_second(sum.new.written_bytes), size);
            row.cell(self.a_second(sum.new.reads), rate);
            row.cell(self.a_second(sum.new.writes), rate);
            row.cell(sum.all.read_bytes as f64, size);
            row.cell(sum.all.written_bytes as f64, size);
            row.cell(self.a_second(sum.newly_opened), rate);
            row.cell(sum.made.opened as f64, count);
            row.cell(sum.made.closed as f64, count);
            row.cell(sum.made.mean_us().unwrap_or(0.0), figure);
            row.cell(sum.made.mean_rtt_us().unwrap_or(0.0), figure);
            row.cells.push(sum.made.remarks(page).join(", "));
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
