//! The latency of requests over connections, by role and peer, summed over the images that served or asked.
//!
//! Computed by `finish` in `crates/observe/src/bpf/exchange_rows.bpf.h`, `spend` in
//! `crates/observe/src/bpf/serving.bpf.h`.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{Exchange, Role, Trace};

use super::images::Names;
use super::{USUAL_ROWS, rows};
use crate::columns::{Columns, Extent, sort};
use crate::numbers::{figure, thousands};
use crate::page::{Ink, Page};
use crate::peers::PeerNames;
use crate::sheet::{Cell, Field, Sheet};

/// Columns a peer may take on the widest line.
const PEER: usize = 80;

/// What the figures are.
const LEGEND: &str = "served: from the arrival of a request to the last byte of its answer; asked: from its first byte \
    written to the last one read; unread to elsewhere: the parts of that time, summed over the requests";

/// The remark where none was timed.
const NONE: &str = "no counted request went over a connection of TCP or of a UNIX socket";

/// The requests with a peer.
struct Sum<'r> {
    of: Exchange,
    is_served: bool,
    peer: String,
    by: BTreeSet<(u32, &'r str)>,
}

/// By role and peer, most time first, unless another order was requested.
fn by_peer(record: &Trace) -> Vec<Sum<'_>> {
    let known = PeerNames::with_hosts(&record.host_names);
    let mut sums: BTreeMap<(String, bool), Sum<'_>> = BTreeMap::new();
    for row in &record.requests {
        let key = (known.socket_name(&row.ends), row.ends.role == Some(Role::Accept));
        let sum = sums.entry(key).or_insert_with_key(|(peer, is_served)| Sum {
            of: Exchange::default(),
            is_served: *is_served,
            peer: peer.clone(),
            by: BTreeSet::new(),
        });
        sum.of.merge(row);
        sum.by.insert((row.pid, &row.exec));
    }
    let mut sums: Vec<Sum<'_>> = sums.into_values().collect();
    sort(&mut sums, record.view.sort, |sum| &sum.of, |row| row.wall_ns);
    sums
}

pub(super) fn print(page: &mut Page<'_>, record: &Trace) {
    let missing = &record.observer.missing;
    let are_timed = record.view.requests && missing.iter().all(|one| one.feature != "requests");
    if record.requests.is_empty() && !are_timed {
        return;
    }
    page.blank();
    if record.requests.is_empty() {
        page.line(&[(Ink::Plain, "  "), (Ink::Dim, NONE)]);
        return;
    }
    let extent = Extent { rows: rows(record, USUAL_ROWS), name: PEER.min(page.width()) };
    let sums = by_peer(record);
    let is_part = |field: &Field| PARTS.contains(&&*field.key);
    let is_name = |field: &Field| ["peer", "role"].contains(&&*field.key);
    let table = |is_shown: &dyn Fn(&Field) -> bool| {
        let columns = columns(page, record, extent).only(is_shown);
        columns.sheet("requests", "Requests", &sums, None, extent)
    };
    // Together they are too wide for most terminals.
    let latency = table(&|field| !is_part(field));
    let parts = table(&|field| is_part(field) || is_name(field)).without_empty_columns();
    latency.print(page, "");
    page.blank();
    Sheet { hidden: 0, ..parts }.print(page, "");
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, LEGEND);
}

/// The latencies of the record of an interval: nothing where nothing was answered.
pub(crate) fn print_in_interval(page: &mut Page<'_>, record: &Trace, usual_rows: usize) {
    if record.requests.is_empty() {
        return;
    }
    let extent = Extent { rows: rows(record, usual_rows), name: PEER.min(page.width()) };
    let sums = by_peer(record);
    let latency = {
        let columns = columns(page, record, extent).only(|field| !PARTS.contains(&&*field.key));
        columns.sheet("requests", "Requests", &sums, None, extent)
    };
    latency.print(page, "");
}

/// The columns of what the latency consists of.
const PARTS: [&str; 8] = [
    "unread_ns",
    "on_cpu_ns",
    "runnable_ns",
    "disk_ns",
    "peer_ns",
    "lock_ns",
    "other_ns",
    "elsewhere_ns",
];

fn columns<'a, 'r>(page: &'a Page<'_>, record: &'r Trace, extent: Extent) -> Columns<'a, Sum<'r>>
where
    'r: 'a,
{
    let names = Names::from_record(record);
    let us = |key: &str, head: &str, worth: u8| Field::number(key, head, "µs").worth(worth);
    let known = |sum: &Sum<'_>, ns: u64| {
        let known = (!sum.of.wall_times.is_empty()).then_some(ns);
        Cell::from_option(known, |ns| Cell::whole(ns, figure(ns as f64 / 1e3)))
    };
    let quantile = |share| move |sum: &Sum<'_>| known(sum, sum.of.wall_times.quantile(share));
    let peer = Field::text("peer", "peer of requests").worth(13);
    let peer = peer.on_terminal(|column| column.usually(46).no_less_than(38));
    Columns::new()
        .text(peer, move |sum: &Sum<'r>| page.name(&sum.peer, extent.name))
        .text(Field::text("role", "role").worth(11), |sum| {
            if sum.is_served { "served" } else { "asked" }.to_owned()
        })
        .declared(1, |sum: &Sum<'_>| Some(&sum.of))
        .behind("requests", us("p50_ns", "p50", 10), quantile(0.5))
        .behind("p50_ns", us("p90_ns", "p90", 3), quantile(0.9))
        .behind("p90_ns", us("p99_ns", "p99", 10), quantile(0.99))
        .behind("p99_ns", us("p99_9_ns", "p99.9", 4), quantile(0.999))
        .behind("p99_9_ns", us("max_ns", "max", 9), move |sum| {
            let cell = known(sum, sum.of.max_ns);
            let at_most = if sum.of.max_is_bound { page.at_most() } else { "" };
            Cell { text: format!("{at_most}{}", cell.text), ..cell }
        })
        .text(Field::text("by", "by").worth(1), move |sum| names.label_all(page, &sum.by))
        .text(Field::remarks(), move |sum| remarks(&sum.of, extent).join(", "))
}

/// What blurs the figures, and requests without an answer. A page has columns for some of these.
fn remarks(sum: &Exchange, extent: Extent) -> Vec<String> {
    let of =
        |count: u64, what: &str| (count > 0).then(|| format!("{} {what}", thousands(count.into())));
    let in_columns = [
        of(sum.unanswered, "without an answer"),
        of(sum.pipelined, "sent before the answer to the one before"),
        of(sum.moved, "moved between threads"),
    ];
    let others = [
        of(sum.in_flight, "in flight at the end"),
        of(sum.unseen_arrivals, "timed from the first read"),
    ];
    let in_columns = in_columns.into_iter().flatten().filter(|_| !extent.is_page());
    in_columns.chain(others.into_iter().flatten()).collect()
}

/// All of them, for a page; nothing where there were none.
pub(super) fn sheet(page: &Page<'_>, record: &Trace) -> Option<Sheet> {
    if record.requests.is_empty() {
        return None;
    }
    let columns = columns(page, record, Extent::PAGE);
    let mut sheet = columns.sheet("requests", "Requests", &by_peer(record), None, Extent::PAGE);
    sheet.notes.push(LEGEND.to_owned());
    Some(sheet.without_empty_columns())
}
