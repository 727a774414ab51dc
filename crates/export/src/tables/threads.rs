//! The threads of traces.

use iotomy_record::Thread;

use super::{Labelled, image, label, labelled};
use crate::column::{Column, statistics};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Threads;

impl Rows for Threads {
    const NAME: &'static str = "threads";
    const ROW: &'static str = "a thread of a program image, or several of one name";
    type Row<'r> = Labelled<'r, Thread>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Self::Row<'r>>> {
        type Row<'r> = Labelled<'r, Thread>;
        let mut columns = vec![label()];
        columns.extend(image(|(_, one): Row<'r>| (one.pid, &one.exec, one.image)));
        columns.extend([
            Column::integer("tid", "Thread id; the lowest of several.", |(_, one): Row<'r>| {
                one.tid.into()
            }),
            Column::text(
                "name",
                "Its name when it was last seen in the image; empty where several names share a row.",
                |(_, one): Row<'r>| &one.name,
            ),
            Column::integer(
                "instances",
                "How many threads it sums up; 0 for one.",
                |(_, one): Row<'r>| one.instances.into(),
            ),
            Column::text(
                "longest_call",
                "The call in which it spent most time; empty where it made none.",
                |(_, one): Row<'r>| &one.longest_call,
            ),
            Column::integer(
                "longest_ns",
                "The wall time of its calls of this name.",
                |(_, one): Row<'r>| one.longest_ns,
            ),
        ]);
        columns.extend(statistics(|(_, one): Row<'r>| one));
        columns
    }

    fn rows(of: &Exported) -> Vec<Self::Row<'_>> {
        labelled(of, |trace| &trace.threads)
    }
}
