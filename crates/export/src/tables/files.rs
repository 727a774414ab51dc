//! The files of traces.

use iotomy_record::FileUse;

use super::{Labelled, image, label, labelled};
use crate::column::{Column, Figure, statistics};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Files;

impl Rows for Files {
    const NAME: &'static str = "files";
    const ROW: &'static str = "a file of a program image";
    type Row<'r> = Labelled<'r, FileUse>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Self::Row<'r>>> {
        type Row<'r> = Labelled<'r, FileUse>;
        let mut columns = vec![label()];
        columns.extend(image(|(_, file): Row<'r>| (file.pid, &file.exec, file.image)));
        columns
            .push(Column::text("kind", "The kind of file.", |(_, file): Row<'r>| file.kind.name()));
        columns.push(Column::text("path", "Its path.", |(_, file): Row<'r>| &file.path));
        columns.push(Column::some_text(
            "file_system",
            "The kind of file system it is on.",
            |(_, file): Row<'r>| file.file_system.as_deref().map(Into::into),
        ));
        let sizes: [Figure<FileUse>; 4] = [
            ("size_bytes", "Its size when it was first met.", |file| file.size_bytes),
            ("allocated_bytes", "The disk space it took in the end.", |file| file.allocated_bytes),
            ("cached_bytes", "How much was in the page cache at first.", |file| file.cached_bytes),
            ("dirty_bytes", "How much was in memory only in the end.", |file| file.dirty_bytes),
        ];
        for (name, meaning, of) in sizes {
            columns.push(Column::some_integer(name, meaning, move |(_, file): Row<'r>| of(file)));
        }
        columns.extend(statistics(|(_, file): Row<'r>| file));
        columns
    }

    fn rows(of: &Exported) -> Vec<Self::Row<'_>> {
        labelled(of, |trace| &trace.files)
    }
}
