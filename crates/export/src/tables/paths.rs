//! The paths that the calls of traces were given.

use iotomy_record::PathUse;

use super::{Labelled, image, label, labelled};
use crate::column::{Column, statistics};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Paths;

impl Rows for Paths {
    const NAME: &'static str = "paths";
    const ROW: &'static str = "calls of a program image with the same path and outcome";
    type Row<'r> = Labelled<'r, PathUse>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Self::Row<'r>>> {
        type Row<'r> = Labelled<'r, PathUse>;
        let mut columns = vec![label()];
        columns.extend(image(|(_, one): Row<'r>| (one.pid, &one.exec, one.image)));
        columns.extend([
            Column::text("syscall", "The call's name.", |(_, one): Row<'r>| &one.syscall),
            Column::bool(
                "second",
                "It is the second of two paths: its calls are also in the row of the first.",
                |(_, one): Row<'r>| Some(one.second),
            ),
            Column::some_text(
                "error",
                "The error, as `ENOENT`; NULL where the calls succeeded.",
                |(_, one): Row<'r>| one.error.as_deref().map(Into::into),
            ),
            Column::some_text(
                "path",
                "The path; NULL where it could not be read.",
                |(_, one): Row<'r>| one.path.as_deref().map(Into::into),
            ),
        ]);
        columns.extend(statistics(|(_, one): Row<'r>| one));
        columns
    }

    fn rows(of: &Exported) -> Vec<Self::Row<'_>> {
        labelled(of, |trace| &trace.paths)
    }
}
