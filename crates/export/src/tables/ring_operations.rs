//! What io_uring did for the program images of traces.

use iotomy_record::RingOperation;

use super::{Labelled, image, label, labelled};
use crate::column::{Column, statistics};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct RingOperations;

impl Rows for RingOperations {
    const NAME: &'static str = "ring_operations";
    const ROW: &'static str = "an operation of io_uring, of a program image";
    type Row<'r> = Labelled<'r, RingOperation>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Self::Row<'r>>> {
        type Row<'r> = Labelled<'r, RingOperation>;
        let mut columns = vec![label()];
        columns.extend(image(|(_, one): Row<'r>| (one.pid, &one.exec, one.image)));
        columns.push(Column::text(
            "op",
            "The operation's name, as in liburing.",
            |(_, one): Row<'r>| &one.op,
        ));
        columns.push(Column::bool(
            "max_is_bound",
            "In the record of an interval: none took longer than `max_ns`, because a longer one was before.",
            |(_, one): Row<'r>| Some(one.max_is_bound),
        ));
        columns.extend(statistics(|(_, one): Row<'r>| one));
        columns
    }

    fn rows(of: &Exported) -> Vec<Self::Row<'_>> {
        labelled(of, |trace| &trace.ring_operations)
    }
}
