//! Sockets and pipes by what is at their other end, summed over the images that used them.
//!
//! Computed by `note_socket` in `crates/observe/src/bpf/sockets.bpf.h` and `measure` in
//! `crates/observe/src/bpf/connections.bpf.h`, or by `name` in `crates/observe/src/ptrace/sockets.rs` and `settle` in
//! `crates/observe/src/ptrace/connections.rs`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use iotomy_record::{Connection, FileKind, FileUse, Role, SortKey, TcpFigures, Trace, statistic};

use super::images::Names;
use super::{USUAL_ROWS, rows};
use crate::columns::{self, Columns, Extent};
use crate::numbers::{counted, duration, figure, share, thousands};
use crate::page::{Ink, Page};
use crate::peers::PeerNames;
use crate::sheet::{Cell, Field, Sheet};

/// Columns a peer may take on the widest line.
const PEER: usize = 80;

/// Of a peer that is none of TCP's.
static NO_FIGURES: LazyLock<TcpFigures> = LazyLock::new(TcpFigures::default);

/// How many peers with errors are shown beside the usual rows.
const FAILED_ROWS: usize = 5;

/// What came of connects and accepts that opened nothing.
fn failures(page: &Page<'_>, made: &Connection) -> Vec<String> {
    let mut errors: Vec<_> = made.errors.iter().collect();
    errors.sort_by_key(|(_, count)| Reverse(**count));
    let failure = |(name, count): (&String, &u64)| {
        format!("{} {}", page.name(name, 24), thousands((*count).into()))
    };
    let mut failures: Vec<String> = errors.into_iter().map(failure).collect();
    if made.unfinished > 0 {
        failures.push(format!("{} unfinished", thousands(made.unfinished.into())));
    }
    failures
}

/// What limited TCP in the time in which it had something to send, if that was a percent of it or more.
fn limits(made: &Connection) -> Option<String> {
    let tcp = made.tcp.as_ref()?;
    let busy_ns = tcp.busy_ns.filter(|busy_ns| *busy_ns > 0)?;
    let limits = [
        (tcp.rwnd_limited_ns, "by the receiver's window"),
        (tcp.sndbuf_limited_ns, "by the send buffer"),
    ];
    let limits = limits.into_iter().filter_map(|(limited_ns, by)| {
        let limited_ns = limited_ns?;
        (limited_ns >= busy_ns / 100 && limited_ns > 0)
            .then(|| format!("{} {by}", share(limited_ns.into(), busy_ns.into())))
    });
    let limits: Vec<String> = limits.collect();
    let busy = duration(busy_ns as f64);
    (!limits.is_empty()).then(|| format!("busy {busy}, limited {}", limits.join(" and ")))
}

/// The queue of a listener in which connections waited for others to be accepted, and what it dropped.
pub(super) fn queue(made: &Connection) -> Vec<String> {
    let mut queue = Vec::new();
    if made.max_queued > 1 {
        let (most, limit) = (made.max_queued, made.queue_limit);
        let [most, limit] = [most, limit].map(|number| thousands(number.into()));
        queue.push(format!("up to {most} in the queue (limit {limit})"));
    }
    if let Some(dropped) = made.dropped.filter(|dropped| *dropped > 0) {
        queue.push(format!("{} dropped", thousands(dropped.into())));
    }
    queue
}

/// These, segments that were sent again, and what limited the connections.
pub(crate) fn remarks(page: &Page<'_>, made: &Connection) -> String {
    let mut remarks = failures(page, made);
    if made.retransmits() > 0 {
        remarks.push(format!("{} retransmitted", thousands(made.retransmits().into())));
    }
    remarks.extend(queue(made));
    remarks.extend(limits(made));
    remarks.join(", ")
}

/// What went to and came from a peer.
#[derive(Default)]
struct Peer<'r> {
    name: String,
    /// Sockets and pipes.
    connections: BTreeSet<&'r str>,
    traffic: FileUse,
    made: Connection,
    by: BTreeSet<(u32, &'r str)>,
}

/// Most bytes first, then most connections, unless another order was requested.
fn by_peer<'r>(page: &Page<'_>, record: &'r Trace) -> Vec<Peer<'r>> {
    let names = Names::from_record(record);
    let mut known = PeerNames::with_hosts(&record.host_names);
    known.set_sockets(record.files.iter());
    known.add_pipes(record.files.iter(), |pipe| names.label(page, &pipe.exec, pipe.pid));
    let mut peers: BTreeMap<String, Peer<'r>> = BTreeMap::new();
    for file in &record.files {
        let name = match file.kind {
            // Whose they are is not known there.
            FileKind::Pipe if record.interval.is_some() => Some("pipes".to_owned()),
            _ => known.name(file),
        };
        let Some(name) = name else { continue };
        let peer = peers.entry(name).or_default();
        peer.connections.insert(&file.path);
        statistic::add(&mut peer.traffic, file);
        // Counts that a live view saved may be of nobody.
        if file.pid > 0 {
            peer.by.insert((file.pid, &file.exec));
        }
    }
    for one in &record.connections {
        let peer = peers.entry(known.socket_name(&one.ends)).or_default();
        peer.made.merge(one);
        peer.by.insert((one.pid, &one.exec));
    }
    let named = peers.into_iter().map(|(name, peer)| Peer { name, ..peer });
    let mut peers: Vec<Peer<'r>> = named.collect();
    let key = record.view.sort;
    if key != SortKey::NAME {
        peers.sort_by_key(|one| {
            let bytes = one.traffic.read_bytes.saturating_add(one.traffic.write_bytes);
            Reverse((bytes, one.made.opened, one.made.failed()))
        });
    }
    columns::sort(&mut peers, key, |one| &one.traffic, |_| ());
    columns::sort(&mut peers, key, |one| &one.made, |_| ());
    columns::sort(&mut peers, key, |one| tcp(one).unwrap_or(&NO_FIGURES), |_| ());
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
    print_table(page, record, peers, USUAL_ROWS);
}

/// The same of the record of an interval: nothing where nothing came.
pub(crate) fn print_in_interval(page: &mut Page<'_>, record: &Trace, usual_rows: usize) {
    let peers = if record.view.peers { by_peer(page, record) } else { Vec::new() };
    if !peers.is_empty() {
        print_table(page, record, peers, usual_rows);
    }
}

fn print_table(page: &mut Page<'_>, record: &Trace, mut peers: Vec<Peer<'_>>, usual_rows: usize) {
    let all = peers.len();
    let shown = rows(record, usual_rows).min(all);
    // A peer that refuses moves no bytes, and is not to be missed.
    let failed = peers.split_off(shown).into_iter().filter(|one| one.made.failed() > 0);
    peers.extend(failed.take(if record.view.top.is_none() { FAILED_ROWS } else { 0 }));
    let extent = Extent { rows: peers.len(), name: PEER.min(page.width()) };
    let mut table = table(page, record, &peers, extent);
    table.hidden = all - peers.len();
    table.print(page, "");
    if lacks_accept_times(record) {
        let text = "  ptrace does not see when connections are made that a program accepts: they have no time";
        page.line(&[(Ink::Dim, text)]);
    }
}

fn tcp<'p>(peer: &'p Peer<'_>) -> Option<&'p TcpFigures> {
    peer.made.tcp.as_ref()
}

fn table(page: &Page<'_>, record: &Trace, peers: &[Peer<'_>], extent: Extent) -> Sheet {
    let names = Names::from_record(record);
    let us = |key: &str, head: &str, worth: u8| Field::number(key, head, "µs").worth(worth);
    let known = |us: Option<f64>| Cell::from_option(us, |us| Cell::real(us, figure(us)));
    let window = |bytes: Option<f64>| Cell::from_option(bytes, |bytes| Cell::size(bytes as u64));
    let connections = Field::number("connections", "conns", "").worth(8);
    // An address that is cut tells nothing: other columns are given up before.
    let peer = Field::text("peer", "peer").worth(11);
    let peer = peer.on_terminal(|column| column.usually(46).no_less_than(46));
    let columns = Columns::new()
        .text(peer, |one: &Peer<'_>| page.name(&one.name, extent.name))
        .number(connections, |one| Cell::count(one.connections.len() as u128).if_any())
        .declared(0, |one: &Peer<'_>| Some(&one.made))
        .number(us("time_us", "time", 9), |one| known(one.made.mean_ns().map(|ns| ns / 1e3)))
        .number(us("rtt_us", "rtt", 3), |one| known(one.made.mean_rtt_us()))
        .number(Field::number("retransmits", "retransmitted", ""), |one| {
            Cell::count(one.made.retransmits()).if_any()
        })
        .number(Field::number("cwnd_segments", "cwnd", ""), |one| {
            known(tcp(one).and_then(TcpFigures::mean_cwnd))
        })
        .number(Field::number("snd_wnd_bytes", "peer's window", ""), |one| {
            window(tcp(one).and_then(TcpFigures::mean_snd_wnd))
        })
        .number(Field::number("rcv_wnd_bytes", "own window", ""), |one| {
            window(tcp(one).and_then(TcpFigures::mean_rcv_wnd))
        })
        .declared(1, tcp)
        .declared(0, |one: &Peer<'_>| Some(&one.traffic))
        .text(Field::text("by", "by").worth(1), |one| users(page, &names, one));
    let columns = match extent.is_page() {
        true => columns.behind("retransmits", Field::text("errors", "errors"), |one| {
            Cell::text(failures(page, &one.made).join(", "))
        }),
        false => columns.text(Field::remarks(), |one| remarks(page, &one.made)),
    };
    columns.sheet("peers", "Peers", peers, None, extent)
}

/// Whether connections were accepted, by TCP, of which the observer knows no times.
fn lacks_accept_times(record: &Trace) -> bool {
    let is_accepted = |one: &&Connection| {
        one.ends.role == Some(Role::Accept) && one.ends.protocol == "tcp" && one.opened > 0
    };
    record.observer.name == "ptrace" && record.connections.iter().any(|one| is_accepted(&one))
}

fn users(page: &Page<'_>, names: &Names<'_>, one: &Peer<'_>) -> String {
    if one.by.is_empty() { String::new() } else { names.label_all(page, &one.by) }
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
    Some(table(page, record, &peers, Extent::PAGE).without_empty_columns())
}
