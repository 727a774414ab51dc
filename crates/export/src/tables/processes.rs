//! The program images of traces.

use iotomy_record::Process;

use super::{Labelled, image, label, labelled};
use crate::column::{Column, statistics};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Processes;

impl Rows for Processes {
    const NAME: &'static str = "processes";
    const ROW: &'static str = "a program image, or several that are identical";
    type Row<'r> = Labelled<'r, Process>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Self::Row<'r>>> {
        type Row<'r> = Labelled<'r, Process>;
        let mut columns = vec![label()];
        columns.extend(image(|(_, one): Row<'r>| (one.pid, &one.exec, one.image)));
        columns.extend([
            Column::integer(
                "ppid",
                "Parent's process id when the image began.",
                |(_, one): Row<'r>| one.ppid.into(),
            ),
            Column::text(
                "called",
                "The name that users know it by, if not `exec`.",
                |(_, one): Row<'r>| &one.called,
            ),
            Column::text(
                "binary",
                "The file whose code it runs, if not `exec`.",
                |(_, one): Row<'r>| &one.binary,
            ),
            Column::text("title", "The title that it has set.", |(_, one): Row<'r>| &one.title),
            Column::integer(
                "instances",
                "How many images it sums up; 0 for one.",
                |(_, one): Row<'r>| one.instances.into(),
            ),
            Column::bool(
                "before_exec",
                "It was forked, and then executed another program.",
                |(_, one): Row<'r>| Some(one.before_exec),
            ),
            Column::texts("argv", "Its arguments.", |(_, one): Row<'r>| Some(&one.argv)),
        ]);
        columns.extend(statistics(|(_, one): Row<'r>| one));
        columns
    }

    fn rows(of: &Exported) -> Vec<Self::Row<'_>> {
        labelled(of, |trace| &trace.processes)
    }
}
