//! The system calls of traces.

use iotomy_record::Call;

use super::{Labelled, image, label, labelled};
use crate::column::{Column, statistics};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Calls;

impl Rows for Calls {
    const NAME: &'static str = "calls";
    const ROW: &'static str = "a system call of a program image";
    type Row<'r> = Labelled<'r, Call>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Self::Row<'r>>> {
        let mut columns = vec![label()];
        columns.extend(image(|(_, call): Self::Row<'r>| (call.pid, &call.exec, call.image)));
        columns.push(Column::text("syscall", "The call's name.", |(_, call): Self::Row<'r>| {
            &call.syscall
        }));
        columns.push(Column::bool(
            "max_is_bound",
            "In the record of an interval: no call took longer than `max_ns`, because a longer one was before.",
            |(_, call): Self::Row<'r>| Some(call.max_is_bound),
        ));
        // Where the record leaves it out, it equals another: a query need not know.
        let on_cpu_times = Column::quantiles(
            "on_cpu_times",
            "`on_cpu_log2` in finer buckets, with quantiles; NULL if the observer cannot know.",
            |(_, call): Self::Row<'r>| call.on_cpu_times(),
        );
        columns.extend(statistics(|(_, call): Self::Row<'r>| call));
        if let Some(same) = columns.iter_mut().find(|one| one.facts.name == "on_cpu_times") {
            *same = on_cpu_times;
        }
        columns
    }

    fn rows(of: &Exported) -> Vec<Self::Row<'_>> {
        labelled(of, |trace| &trace.calls)
    }
}
