//! Sockets and pipes by what is at their other end, summed over the images that used them.
//!
//! Computed by `note_socket` in `crates/observe/src/bpf/sockets.bpf.h` and `measure` in
//! `crates/observe/src/bpf/connections.bpf.h`, or by `name` in `crates/observe/src/ptrace/sockets.rs` and `settle` in
//! `crates/observe/src/ptrace/connections.rs`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{Connection, FileKind, FileUse, Role, TcpFigures, Trace};

use super::images::Names;
use super::{USUAL_ROWS, print_hidden, rows};
use crate::numbers::{bytes, counted, figure, thousands};
use crate::page::{Ink, Page};
use crate::peers::PeerNames;
use crate::sheet::{Cell, Field, Sheet, name};
use crate::table::{Column, Row, Table};

const COLUMNS: [Column; 10] = [
    // An address that is cut tells nothing: other columns are given up before.
    Column::text("peer", 11).usually(46).no_less_than(46),
    Column::number("conns", "", 8),
    Column::number("opened", "", 10),
    Column::number("time", "µs", 9),
    Column::number("rtt", "µs", 3),
    Column::number("reads", "", 5),
    Column::number("bytes", "", 7),
    Column::number("writes", "", 4),
    Column::number("bytes", "", 6),
    Column::text("by", 1),
];

/// Columns a peer may take on the widest line.
const PEER: usize = 80;

/// How many peers with errors are shown beside the usual rows.
const FAILED_ROWS: usize = 5;

/// What came of connects and accepts with a peer, and TCP's figures.
#[derive(Default)]
pub(crate) struct Made<'r> {
    pub(crate) opened: u128,
    pub(crate) closed: u128,
    timed: u128,
    time_ns: u128,
    rtts: u128,
    rtt_us: u128,
    retransmits: u128,
    unfinished: u128,
    errors: BTreeMap<&'r str, u128>,
}

impl<'r> Made<'r> {
    pub(crate) fn add(&mut self, one: &'r Connection) {
        self.opened += u128::from(one.opened);
        self.closed += u128::from(one.closed.unwrap_or(0));
        self.timed += u128::from(one.timed);
        self.time_ns += u128::from(one.connect_ns);
        self.unfinished += u128::from(one.unfinished);
        one.tcp.iter().for_each(|tcp| self.add_figures(tcp));
        for (name, count) in &one.errors {
            *self.errors.entry(name).or_default() += u128::from(*count);
        }
    }

    pub(crate) fn add_figures(&mut self, tcp: &TcpFigures) {
        self.rtts += u128::from(tcp.rtts);
        self.rtt_us += u128::from(tcp.rtt_us);
        self.retransmits += u128::from(tcp.retransmits);
    }

    /// Of a connection: until it was made, or accepted.
    pub(crate) fn mean_us(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.time_ns as f64 / self.timed as f64 / 1e3)
    }

    pub(crate) fn mean_rtt_us(&self) -> Option<f64> {
        (self.rtts > 0).then(|| self.rtt_us as f64 / self.rtts as f64)
    }

    /// How many connects and accepts failed.
    pub(crate) fn failed(&self) -> u128 {
        self.errors.values().sum()
    }

    /// What came of connects and accepts that opened nothing.
    fn failures(&self, page: &Page<'_>) -> Vec<String> {
        let mut errors: Vec<_> = self.errors.iter().collect();
        errors.sort_by_key(|(_, count)| Reverse(**count));
        let failure = |(name, count): (&&str, &u128)| {
            format!("{} {}", page.name(name, 24), thousands(*count))
        };
        let mut failures: Vec<String> = errors.into_iter().map(failure).collect();
        if self.unfinished > 0 {
            failures.push(format!("{} unfinished", thousands(self.unfinished)));
        }
        failures
    }

    /// These, and segments that were sent again.
    pub(crate) fn remarks(&self, page: &Page<'_>) -> Vec<String> {
        let mut remarks = self.failures(page);
        if self.retransmits > 0 {
            remarks.push(format!("{} retransmitted", thousands(self.retransmits)));
        }
        remarks
    }
}

/// What went to and came from a peer.
#[derive(Default)]
struct Traffic<'r> {
    /// Sockets and pipes.
    connections: BTreeSet<&'r str>,
    read_calls: u128,
    read_bytes: u128,
    write_calls: u128,
    write_bytes: u128,
    made: Made<'r>,
    by: BTreeSet<(u32, &'r str)>,
}

impl<'r> Traffic<'r> {
    fn add(&mut self, file: &'r FileUse) {
        self.connections.insert(&file.path);
        self.read_calls += u128::from(file.read_calls);
        self.read_bytes += u128::from(file.read_bytes);
        self.write_calls += u128::from(file.write_calls);
        self.write_bytes += u128::from(file.write_bytes);
        // Counts that a live view saved may be of nobody.
        if file.pid > 0 {
            self.by.insert((file.pid, &file.exec));
        }
    }

    fn add_connection(&mut self, one: &'r Connection) {
        self.made.add(one);
        self.by.insert((one.pid, &one.exec));
    }

    fn bytes(&self) -> u128 {
        self.read_bytes + self.write_bytes
    }
}

/// Most bytes first, then most connections.
fn by_peer<'r>(page: &Page<'_>, record: &'r Trace) -> Vec<(String, Traffic<'r>)> {
    let names = Names::from_record(record);
    let mut known = PeerNames::with_hosts(&record.host_names);
    known.set_sockets(record.files.iter());
    known.add_pipes(record.files.iter(), |pipe| names.label(page, &pipe.exec, pipe.pid));
    let mut peers: BTreeMap<String, Traffic<'r>> = BTreeMap::new();
    for file in &record.files {
        let peer = match file.kind {
            // Whose they are is not known there.
            FileKind::Pipe if record.interval.is_some() => Some("pipes".to_owned()),
            _ => known.name(file),
        };
        let Some(peer) = peer else { continue };
        peers.entry(peer).or_default().add(file);
    }
    for one in &record.connections {
        peers.entry(known.socket_name(&one.ends)).or_default().add_connection(one);
    }
    let mut peers: Vec<_> = peers.into_iter().collect();
    peers.sort_by_key(|(_, one)| Reverse((one.bytes(), one.made.opened, one.made.failed())));
    peers
}

pub(super) fn print(page: &mut Page<'_>, record: &Trace) {
    if !record.view.peers {
        return;
    }
    page.blank();
    let peers = by_peer(page, record);
    let is_unknown = |file: &&FileUse| file.kind == FileKind::Socket && file.socket.is_none();
    let unknown: BTreeSet<&str> =
        record.files.iter().filter(is_unknown).map(|file| file.path.as_str()).collect();
    if !unknown.is_empty() {
        let sockets = counted(unknown.len() as u128, "socket", "sockets");
        let text = format!("  the other ends of {sockets} are not known to this observer");
        page.line(&[(Ink::Dim, &text)]);
    }
    if peers.is_empty() && !unknown.is_empty() {
        return;
    }
    if peers.is_empty() {
        let text = "  no counted call moved bytes through a pipe or a socket whose peer is known";
        page.line(&[(Ink::Dim, text)]);
        return;
    }
    table(page, record, &peers, USUAL_ROWS);
}

/// The same of the record of an interval: nothing where nothing came.
pub(crate) fn print_in_interval(page: &mut Page<'_>, record: &Trace, usual_rows: usize) {
    let peers = if record.view.peers { by_peer(page, record) } else { Vec::new() };
    if !peers.is_empty() {
        table(page, record, &peers, usual_rows);
    }
}

fn table(page: &mut Page<'_>, record: &Trace, peers: &[(String, Traffic<'_>)], usual_rows: usize) {
    let names = Names::from_record(record);
    let shown = rows(record, usual_rows).min(peers.len());
    // A peer that refuses moves no bytes, and is not to be missed.
    let (first, rest) = peers.split_at(shown);
    let failed = rest.iter().filter(|(_, one)| one.made.failed() > 0);
    let failed = failed.take(if record.view.top.is_none() { FAILED_ROWS } else { 0 });
    let in_table: Vec<_> = first.iter().chain(failed).collect();
    let count = |n: u128| if n > 0 { thousands(n) } else { String::new() };
    let known = |us: Option<f64>| us.map_or_else(String::new, figure);
    let size = |calls: u128, n: u128| if calls > 0 { bytes(n) } else { String::new() };
    let mut table = Table::new(&COLUMNS);
    for (peer, one) in &in_table {
        let cells = vec![
            page.name(peer, PEER.min(page.width())),
            count(one.connections.len() as u128),
            count(one.made.opened),
            known(one.made.mean_us()),
            known(one.made.mean_rtt_us()),
            count(one.read_calls),
            size(one.read_calls, one.read_bytes),
            count(one.write_calls),
            size(one.write_calls, one.write_bytes),
            users(page, &names, one),
        ];
        let remarks = one.made.remarks(page);
        table.push(Row { cells, remarks, ..Row::default() });
    }
    table.print(page);
    print_hidden(page, in_table.len(), peers.len(), "");
    if lacks_accept_times(record) {
        let text = "  ptrace does not see when connections are made that a program accepts: they have no time";
        page.line(&[(Ink::Dim, text)]);
    }
}

/// Whether connections were accepted, by TCP, of which the observer knows no times.
fn lacks_accept_times(record: &Trace) -> bool {
    let is_accepted = |one: &&Connection| {
        one.ends.role == Some(Role::Accept) && one.ends.protocol == "tcp" && one.opened > 0
    };
    record.observer.name == "ptrace" && record.connections.iter().any(|one| is_accepted(&one))
}

fn users(page: &Page<'_>, names: &Names<'_>, one: &Traffic<'_>) -> String {
    match one.by.first() {
        None => String::new(),
        Some((pid, exec)) if one.by.len() == 1 => names.label(page, exec, *pid),
        _ => counted(one.by.len() as u128, "process", "processes"),
    }
}

/// All of them, for a page; nothing where there are only pipes that nobody asked about.
pub(super) fn sheet(page: &Page<'_>, record: &Trace) -> Option<Sheet> {
    let has_sockets = record.files.iter().any(|file| file.socket.is_some());
    if !record.view.peers && !has_sockets && record.connections.is_empty() {
        return None;
    }
    let peers = by_peer(page, record);
    if peers.is_empty() {
        return None;
    }
    let names = Names::from_record(record);
    let known = |us: Option<f64>| Cell::from_option(us, |us| Cell::real(us, figure(us)));
    let fields = vec![
        Field::text("peer", "peer"),
        Field::number("connections", "connections", ""),
        Field::number("opened", "opened", ""),
        Field::number("time_us", "time", "µs"),
        Field::number("rtt_us", "rtt", "µs"),
        Field::number("retransmits", "retransmitted", ""),
        Field::text("errors", "errors"),
        Field::number("read_calls", "reads", ""),
        Field::number("read_bytes", "read", ""),
        Field::number("write_calls", "writes", ""),
        Field::number("write_bytes", "written", ""),
        Field::text("by", "by"),
    ];
    let mut sheet = Sheet::new("peers", "Peers", fields);
    for (peer, one) in &peers {
        sheet.push(vec![
            Cell::text(name(page, peer)),
            Cell::count(one.connections.len() as u128).if_any(),
            Cell::count(one.made.opened).if_any(),
            known(one.made.mean_us()),
            known(one.made.mean_rtt_us()),
            Cell::count(one.made.retransmits).if_any(),
            Cell::text(one.made.failures(page).join(", ")),
            Cell::count(one.read_calls).if_any(),
            Cell::size(one.read_bytes).if_any(),
            Cell::count(one.write_calls).if_any(),
            Cell::size(one.write_bytes).if_any(),
            Cell::text(users(page, &names, one)),
        ]);
    }
    Some(sheet)
}
