//! The connections of traces.

use iotomy_record::Connection;

use super::{Labelled, ends, image, label, labelled};
use crate::column::{Column, statistics, statistics_behind};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Connections;

impl Rows for Connections {
    const NAME: &'static str = "connections";
    const ROW: &'static str = "the connections of a program image with one peer";
    type Row<'r> = Labelled<'r, Connection>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Self::Row<'r>>> {
        type Row<'r> = Labelled<'r, Connection>;
        let mut columns = vec![label()];
        columns.extend(image(|(_, one): Row<'r>| (one.pid, &one.exec, one.image)));
        columns.extend(ends(
            "`connect` or `accept`: how they were made; NULL if before the watch, or by calls that are not counted.",
            |(_, one): Row<'r>| &one.ends,
        ));
        columns.extend(statistics(|(_, one): Row<'r>| one));
        columns.extend(statistics_behind("tcp_", |(_, one): Row<'r>| one.tcp.as_ref()));
        columns
    }

    fn rows(of: &Exported) -> Vec<Self::Row<'_>> {
        labelled(of, |trace| &trace.connections)
    }
}
