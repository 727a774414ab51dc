//! Where the time of threads went in traces.

use iotomy_record::LedgerRow;

use super::{Labelled, image, label, labelled};
use crate::column::{Column, statistics};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Ledger;

impl Rows for Ledger {
    const NAME: &'static str = "ledger";
    const ROW: &'static str = "the time of a program image's threads";
    type Row<'r> = Labelled<'r, LedgerRow>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Self::Row<'r>>> {
        let mut columns = vec![label()];
        columns.extend(image(|(_, row): Self::Row<'r>| (row.pid, &row.exec, row.image)));
        columns.extend(statistics(|(_, row): Self::Row<'r>| row));
        columns
    }

    fn rows(of: &Exported) -> Vec<Self::Row<'_>> {
        labelled(of, |trace| &trace.ledger)
    }
}
