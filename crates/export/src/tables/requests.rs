//! The requests of traces.

use iotomy_record::Exchange;

use super::{Labelled, ends, image, label, labelled};
use crate::column::{Column, statistics};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Requests;

impl Rows for Requests {
    const NAME: &'static str = "requests";
    const ROW: &'static str = "the requests of a program image over its connections with one peer";
    type Row<'r> = Labelled<'r, Exchange>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Self::Row<'r>>> {
        type Row<'r> = Labelled<'r, Exchange>;
        let mut columns = vec![label()];
        columns.extend(image(|(_, one): Row<'r>| (one.pid, &one.exec, one.image)));
        columns.extend(ends(
            "`accept` for requests that were served, `connect` for those that were asked.",
            |(_, one): Row<'r>| &one.ends,
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
        labelled(of, |trace| &trace.requests)
    }
}
