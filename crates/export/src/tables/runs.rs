//! The records.

use iotomy_record::store::{Record, RecordRef};
use iotomy_record::{Exit, ObserverUse, Trace};

use crate::column::{Column, Figure, exit};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Runs;

/// A cost that the observer measured.
type Cost = (&'static str, &'static str, fn(&ObserverUse) -> f64);

const COSTS: [Cost; 2] = [
    ("cost_ns_low", "The lowest overhead of a call.", |observer| observer.cost_ns_low),
    ("cost_ns_high", "The highest overhead of a call.", |observer| observer.cost_ns_high),
];

const LOST: [Figure<ObserverUse>; 6] = [
    ("lost_events", "Events that could not be counted.", |observer| Some(observer.lost_events)),
    ("incomplete_calls", "Calls of which one end was seen.", |observer| {
        Some(observer.incomplete_calls)
    }),
    ("lost_files", "Files that did not fit.", |observer| Some(observer.lost_files)),
    ("lost_paths", "Calls whose paths did not fit.", |observer| Some(observer.lost_paths)),
    ("lost_connections", "Connections that did not fit.", |observer| {
        Some(observer.lost_connections)
    }),
    ("lost_exchanges", "Requests that did not fit.", |observer| Some(observer.lost_exchanges)),
];

/// The trace that a record of a single watch is, or has.
fn trace(of: &Exported) -> Option<&Trace> {
    match &of.record {
        Record::Trace(trace) => Some(trace),
        Record::Anatomy(anatomy) => Some(&anatomy.trace),
        _ => None,
    }
}

fn wall_ns(of: &Exported) -> Option<u64> {
    match of.record() {
        RecordRef::Trace(trace) => Some(trace.wall_ns),
        RecordRef::Anatomy(anatomy) => Some(anatomy.trace.wall_ns),
        RecordRef::Copy(copy) => Some(copy.wall_ns),
        RecordRef::D(run) => Some(run.wall_ns),
        RecordRef::Sweep(sweep) => Some(sweep.run.wall_ns),
        RecordRef::Race(_) | RecordRef::Limits(_) => None,
    }
}

fn ended(of: &Exported) -> Option<Exit> {
    match of.record() {
        RecordRef::D(run) => run.exit,
        _ => trace(of)?.exit,
    }
}

impl Rows for Runs {
    const NAME: &'static str = "runs";
    const ROW: &'static str = "a record";
    type Row<'r> = &'r Exported;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, &'r Exported>> {
        let mut columns = vec![
            Column::text("schema", "The kind of record, and its version.", |of: &'r Exported| {
                of.record().schema()
            }),
            Column::some_text(
                "subject",
                "The commands, or what was measured, in a line.",
                |of: &'r Exported| Some(iotomy_history::subject(of.record()).into()),
            ),
            Column::texts(
                "command",
                "The arguments of the command that was watched.",
                |of: &'r Exported| Some(&trace(of)?.command),
            ),
            Column::some_integer("wall_ns", "How long it took.", wall_ns),
        ];
        columns.extend(exit(ended));
        columns.extend([
            Column::integer("cpus", "Logical processors online.", |of: &'r Exported| {
                of.record().machine().cpus.into()
            }),
            Column::integer("memory_bytes", "Memory.", |of: &'r Exported| {
                of.record().machine().memory_bytes
            }),
            Column::text(
                "virtualization",
                "Hypervisor or container engine, or `none`.",
                |of: &'r Exported| &of.record().machine().virtualization,
            ),
            Column::text(
                "mitigations",
                "What the kernel works around, and how.",
                |of: &'r Exported| &of.record().machine().mitigations,
            ),
            Column::text("clock", "The kernel's clock source.", |of: &'r Exported| {
                &of.record().machine().clock
            }),
            Column::some_text("observer", "The observer of the trace.", |of: &'r Exported| {
                Some(trace(of)?.observer.name.as_str().into())
            }),
            Column::bool(
                "times_inflated",
                "Times cannot be taken at face value.",
                |of: &'r Exported| Some(trace(of)?.observer.times_inflated),
            ),
        ]);
        for (name, meaning, cost) in COSTS {
            let of_run = move |of: &'r Exported| Some(cost(&trace(of)?.observer));
            columns.push(Column::float(name, meaning, of_run));
        }
        for (name, meaning, lost) in LOST {
            let of_run = move |of: &'r Exported| lost(&trace(of)?.observer);
            columns.push(Column::some_integer(name, meaning, of_run));
        }
        columns
    }

    fn rows(of: &Exported) -> Vec<&Exported> {
        vec![of]
    }
}
