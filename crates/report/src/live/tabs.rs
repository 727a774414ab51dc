//! The tables there are, and their columns.

use iotomy_record::statistic::{Joins, Statistics, Unit};
use iotomy_record::{Call, FileUse, LedgerRow, RingOperation};

/// The tables there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Calls,
    Files,
    Processes,
    Peers,
    /// Once there are ring operations.
    Rings,
    /// Where requests are timed.
    Requests,
    /// The processes of the file or peer that is open.
    Users,
    /// The connections of the peer that is open.
    Connections,
}

impl Tab {
    /// Those that there are always.
    pub(super) const ALL: [Self; 4] = [Self::Calls, Self::Files, Self::Processes, Self::Peers];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Files => "files",
            Self::Processes => "processes",
            Self::Peers => "peers",
            Self::Rings => "rings",
            Self::Requests => "requests",
            Self::Users => "used by",
            Self::Connections => "connections",
        }
    }

    /// How many columns it has, the name's included.
    pub(super) fn columns(self) -> usize {
        specs(self).len()
    }
}

/// A column: its head, its unit, its order of disappearance, and its least width.
pub(super) type Column = (&'static str, &'static str, u8, usize);

/// Between the rates of calls and their sums.
const CALLS: [Column; 7] = [
    ("inside", "now", 5, 6),
    ("mean", "µs", 3, 6),
    ("p50", "µs", 11, 6),
    ("p90", "µs", 4, 6),
    ("p99", "µs", 12, 7),
    ("p99.9", "µs", 6, 7),
    ("max", "µs", 8, 7),
];

/// The columns of a table.
pub(super) fn specs(tab: Tab) -> Vec<Column> {
    let files = |name| [vec![name], rates::<FileUse>(), sums::<FileUse>()].concat();
    match tab {
        Tab::Calls => {
            let name = vec![("call", "", 16, 14)];
            [name, rates::<Call>(), CALLS.to_vec(), sums::<Call>()].concat()
        }
        Tab::Files => {
            let mut columns = files(("file", "", 11, 24));
            columns.insert(1, ("kind", "", 1, 4));
            columns
        }
        Tab::Processes => {
            let mut columns = vec![
                ("process", "", 11, 20),
                ("threads", "", 2, 7),
                ("calls", "/s", 10, 9),
                ("errors", "/s", 8, 6),
                ("bytes", "/s", 7, 8),
                ("CPU", "%", 9, 5),
            ];
            columns.extend(rates::<LedgerRow>());
            columns.push(("p99", "µs", 9, 7));
            columns.push(("inside", "now", 6, 12));
            columns
        }
        Tab::Peers => PEERS.to_vec(),
        Tab::Rings => ring_columns(),
        Tab::Requests => REQUESTS.to_vec(),
        // The processes that use a file.
        Tab::Users => files(("process", "", 11, 20)),
        // As files, which are never mapped.
        Tab::Connections => {
            let mut columns = specs(Tab::Files);
            columns[0].0 = "connection";
            columns.retain(|(head, ..)| !head.starts_with("map"));
            columns
        }
    }
}

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

/// By peer and role, as in the report: the latency of those that were answered since the snapshot before, and what a
/// request spent its time on, in the mean.
pub(super) const REQUESTS: [Column; 22] = [
    ("peer of requests", "", 17, 24),
    ("role", "", 14, 6),
    ("requests", "/s", 17, 9),
    ("in flight", "now", 13, 9),
    ("mean", "µs", 7, 6),
    ("p50", "µs", 15, 6),
    ("p90", "µs", 6, 6),
    ("p99", "µs", 16, 6),
    ("p99.9", "µs", 9, 7),
    ("max", "µs", 12, 7),
    ("unread", "µs", 5, 6),
    ("on-CPU", "µs", 5, 6),
    ("runq", "µs", 4, 5),
    ("disk", "µs", 3, 5),
    ("upstream", "µs", 4, 8),
    ("lock", "µs", 3, 5),
    ("other", "µs", 2, 5),
    ("elsewhere", "µs", 1, 9),
    ("requests", "in all", 8, 10),
    ("unanswered", "in all", 10, 10),
    ("pipelined", "in all", 0, 9),
    ("by", "", 11, 16),
];

/// Where their role stands.
pub(super) const ROLE: usize = 1;

/// Where the processes that serve or ask stand.
pub(super) const REQUESTS_BY: usize = 21;

/// By which requests are sorted at first: those of a second.
pub(super) const REQUESTS_A_SECOND: usize = 2;

/// Requests of io_uring by operation, and how those that ended were carried out.
fn ring_columns() -> Vec<Column> {
    let mut columns = vec![("ring operation", "", 16, 14)];
    columns.extend(rates::<RingOperation>());
    columns.extend([
        ("p50", "µs", 11, 6),
        ("p99", "µs", 12, 7),
        ("p99.9", "µs", 3, 7),
        ("max", "µs", 4, 7),
    ]);
    columns.extend(sums::<RingOperation>());
    columns
}

/// The rates that the live view shows of the statistics of a row, and the numbers of the moment.
pub(super) fn rates<R: Statistics>() -> Vec<Column> {
    let live = R::shown().filter_map(|(statistic, column)| {
        let unit = match (statistic.shape.joins, statistic.shape.unit) {
            (Joins::Sum, Unit::Time) => "ms/s",
            (Joins::Sum, _) => "/s",
            _ => "now",
        };
        column.live.map(|(worth, width)| (column.head, unit, worth, width))
    });
    live.collect()
}

/// The sums that it shows.
pub(super) fn sums<R: Statistics>() -> Vec<Column> {
    let in_all = R::shown().filter_map(|(_, column)| {
        column.in_all.map(|(worth, width)| (column.head, "in all", worth, width))
    });
    in_all.collect()
}
