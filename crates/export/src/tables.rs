//! The tables: a file each. Tables and columns only come; none goes, and none changes its type.

mod calls;
mod cases;
mod claims;
mod comparisons;
mod connections;
mod files;
mod findings;
mod layers;
mod ledger;
mod measures;
mod paths;
mod processes;
mod race_runs;
mod requests;
mod ring_operations;
mod runs;
mod slowest;
mod threads;

use crate::column::Column;
use crate::exported::Exported;
use crate::table::Table;
use iotomy_record::{Role, Socket, Trace};

/// Every table. A record is in `runs` when it is in all others.
pub const TABLES: &[Table] = &[
    Table::of::<calls::Calls>(),
    Table::of::<files::Files>(),
    Table::of::<ledger::Ledger>(),
    Table::of::<processes::Processes>(),
    Table::of::<threads::Threads>(),
    Table::of::<paths::Paths>(),
    Table::of::<slowest::Slowest>(),
    Table::of::<connections::Connections>(),
    Table::of::<requests::Requests>(),
    Table::of::<ring_operations::RingOperations>(),
    Table::of::<findings::Findings>(),
    Table::of::<race_runs::RaceRuns>(),
    Table::of::<comparisons::Comparisons>(),
    Table::of::<cases::Cases>(),
    Table::of::<claims::Claims>(),
    Table::of::<layers::Layers>(),
    Table::of::<measures::Measures>(),
    Table::of::<runs::Runs>(),
];

/// A row of a trace, and the label of its command.
type Labelled<'r, T> = (Option<&'r str>, &'r T);

/// The rows of a table of all traces of a record.
fn labelled<T>(of: &Exported, rows: fn(&Trace) -> &[T]) -> Vec<Labelled<'_, T>> {
    let of_trace = |(label, trace)| rows(trace).iter().map(move |row| (label, row));
    of.traces().into_iter().flat_map(of_trace).collect()
}

/// The label of a command.
fn label<'r, T: 'r>() -> Column<'r, Labelled<'r, T>> {
    let meaning = "In a race, the label of the command whose trace it is of.";
    Column::some_text("label", meaning, |(label, _): Labelled<'r, T>| label.map(Into::into))
}

/// The image that a row is of.
fn image<'r, R: Copy + 'r>(of: fn(R) -> (u32, &'r str, u32)) -> [Column<'r, R>; 3] {
    [
        Column::integer("pid", "Process id.", move |row| of(row).0.into()),
        Column::text("exec", "Program image.", move |row| of(row).1),
        Column::integer(
            "image",
            "Which of the process's images of this name it is; 0 where there is but one.",
            move |row| of(row).2.into(),
        ),
    ]
}

/// The two ends of connections, and which of them is the image's.
fn ends<'r, R: Copy + 'r>(role: &str, of: fn(R) -> &'r Socket) -> [Column<'r, R>; 6] {
    let text = |name, meaning, part: fn(&Socket) -> Option<&str>| {
        Column::some_text(name, meaning, move |row| part(of(row)).map(Into::into))
    };
    [
        text("role", role, |ends| {
            Some(match ends.role? {
                Role::Connect => "connect",
                Role::Accept => "accept",
            })
        }),
        text("protocol", "The protocol: `tcp`, `udp`, `unix`…", |ends| Some(&ends.protocol)),
        text(
            "local",
            "Its own address and port, or path; NULL if it has none, or the kernel chose it.",
            |ends| ends.local.as_deref(),
        ),
        text(
            "remote",
            "The address of the peer, with its port if it is known and not chosen by the kernel; or its path.",
            |ends| ends.remote.as_deref(),
        ),
        Column::some_integer(
            "peer_pid",
            "Of a UNIX socket: the process that connected, or that listened.",
            move |row| of(row).peer_pid.map(Into::into),
        ),
        text("peer", "The name of that process at the end of the watch.", |ends| {
            ends.peer.as_deref()
        }),
    ]
}
