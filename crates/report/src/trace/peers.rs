//! Sockets and pipes by what is at their other end, summed over the images that used them.
//!
//! Computed by `note_socket` in `crates/observe/src/bpf/sockets.bpf.h`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{FileKind, FileUse, Socket, Trace};

use super::images::Names;
use super::{USUAL_ROWS, print_hidden, rows};
use crate::numbers::{bytes, counted, thousands};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet, name};
use crate::table::{Column, Row, Table};

const COLUMNS: [Column; 7] = [
    Column::text("peer", 9),
    Column::number("conns", "", 8),
    Column::number("reads", "", 5),
    Column::number("bytes", "", 7),
    Column::number("writes", "", 4),
    Column::number("bytes", "", 6),
    Column::text("by", 1),
];

/// Columns a peer may take on the widest line.
const PEER: usize = 80;

/// What went to and came from a peer.
#[derive(Default)]
struct Traffic<'r> {
    /// Sockets and pipes.
    connections: BTreeSet<&'r str>,
    read_calls: u128,
    read_bytes: u128,
    write_calls: u128,
    write_bytes: u128,
    by: BTreeSet<(u32, &'r str)>,
}

impl<'r> Traffic<'r> {
    fn add(&mut self, file: &'r FileUse) {
        self.connections.insert(&file.path);
        self.read_calls += u128::from(file.read_calls);
        self.read_bytes += u128::from(file.read_bytes);
        self.write_calls += u128::from(file.write_calls);
        self.write_bytes += u128::from(file.write_bytes);
        self.by.insert((file.pid, &file.exec));
    }
}

/// Host and port of an address.
fn split(address: &str) -> (&str, &str) {
    address.rsplit_once(':').unwrap_or((address, ""))
}

/// How many connections have the same remote host and port, and the same remote host and local port.
#[derive(Default)]
struct Shared<'r> {
    remote: BTreeMap<(&'r str, &'r str, &'r str), usize>,
    local: BTreeMap<(&'r str, &'r str, &'r str), usize>,
}

impl<'r> Shared<'r> {
    fn from_sockets(sockets: &BTreeMap<&'r str, &'r Socket>) -> Self {
        let mut shared = Self::default();
        for socket in sockets.values().filter(|socket| !socket.protocol.starts_with("unix")) {
            let (host, port) = split(socket.remote.as_deref().unwrap_or_default());
            let (_, own) = split(socket.local.as_deref().unwrap_or_default());
            *shared.remote.entry((&socket.protocol, host, port)).or_default() += 1;
            *shared.local.entry((&socket.protocol, host, own)).or_default() += 1;
        }
        shared
    }

    /// A server's clients have ports of their own, and share the server's: they are one peer by their
    /// host. Else a peer is a host and a port.
    fn peer(&self, socket: &Socket) -> String {
        let Some(remote) = &socket.remote else { return socket.text() };
        if socket.protocol.starts_with("unix") {
            return Socket { local: None, ..socket.clone() }.text();
        }
        let (host, port) = split(remote);
        let (_, own) = split(socket.local.as_deref().unwrap_or_default());
        let count = |of: &BTreeMap<(&str, &str, &str), usize>, port| {
            of.get(&(socket.protocol.as_str(), host, port)).copied().unwrap_or(0)
        };
        match count(&self.local, own) > count(&self.remote, port) {
            true => format!("{} {host} (port {own} here)", socket.protocol),
            false => format!("{} {remote}", socket.protocol),
        }
    }
}

/// Most bytes first.
fn by_peer<'r>(page: &Page<'_>, record: &'r Trace) -> Vec<(String, Traffic<'r>)> {
    let names = Names::from_record(record);
    let known = |file: &'r FileUse| Some((file.path.as_str(), file.socket.as_ref()?));
    let sockets: BTreeMap<&str, &Socket> = record.files.iter().filter_map(known).collect();
    let shared = Shared::from_sockets(&sockets);
    let mut pipes: BTreeMap<&str, [BTreeSet<String>; 2]> = BTreeMap::new();
    for pipe in record.files.iter().filter(|file| file.kind == FileKind::Pipe) {
        let [writers, readers] = pipes.entry(&pipe.path).or_default();
        let label = || names.label(page, &pipe.exec, pipe.pid);
        if pipe.write_calls > 0 {
            writers.insert(label());
        }
        if pipe.read_calls > 0 {
            readers.insert(label());
        }
    }
    let ends = |path: &str| {
        let name = |all: &BTreeSet<String>| match all.len() {
            0 => "nobody watched".to_owned(),
            1 => all.first().cloned().unwrap_or_default(),
            n => counted(n as u128, "process", "processes"),
        };
        let [writers, readers] = &pipes[path];
        format!("pipe from {} to {}", name(writers), name(readers))
    };
    let mut peers: BTreeMap<String, Traffic<'r>> = BTreeMap::new();
    for file in &record.files {
        let peer = match (&file.socket, file.kind) {
            (Some(socket), _) => shared.peer(socket),
            (None, FileKind::Pipe) => ends(&file.path),
            _ => continue,
        };
        peers.entry(peer).or_default().add(file);
    }
    let mut peers: Vec<_> = peers.into_iter().collect();
    peers.sort_by_key(|(_, one)| Reverse(one.read_bytes + one.write_bytes));
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
    let names = Names::from_record(record);
    let shown = rows(record, USUAL_ROWS).min(peers.len());
    let count = |n: u128| if n > 0 { thousands(n) } else { String::new() };
    let size = |calls: u128, n: u128| if calls > 0 { bytes(n) } else { String::new() };
    let mut table = Table::new(&COLUMNS);
    for (peer, one) in &peers[..shown] {
        let cells = vec![
            page.name(peer, PEER.min(page.width())),
            thousands(one.connections.len() as u128),
            count(one.read_calls),
            size(one.read_calls, one.read_bytes),
            count(one.write_calls),
            size(one.write_calls, one.write_bytes),
            users(page, &names, one),
        ];
        table.push(Row { cells, ..Row::default() });
    }
    table.print(page);
    print_hidden(page, shown, peers.len(), "");
}

fn users(page: &Page<'_>, names: &Names<'_>, one: &Traffic<'_>) -> String {
    match one.by.first() {
        Some((pid, exec)) if one.by.len() == 1 => names.label(page, exec, *pid),
        _ => counted(one.by.len() as u128, "process", "processes"),
    }
}

/// All of them, for a page; nothing where there are only pipes that nobody asked about.
pub(super) fn sheet(page: &Page<'_>, record: &Trace) -> Option<Sheet> {
    if !record.view.peers && record.files.iter().all(|file| file.socket.is_none()) {
        return None;
    }
    let peers = by_peer(page, record);
    if peers.is_empty() {
        return None;
    }
    let names = Names::from_record(record);
    let fields = vec![
        Field::text("peer", "peer"),
        Field::number("connections", "connections", ""),
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
            Cell::count(one.connections.len() as u128),
            Cell::count(one.read_calls).if_any(),
            Cell::size(one.read_bytes).if_any(),
            Cell::count(one.write_calls).if_any(),
            Cell::size(one.write_bytes).if_any(),
            Cell::text(users(page, &names, one)),
        ]);
    }
    Some(sheet)
}
