//! The slowest calls of traces, each whole.

use iotomy_record::{Waker, WholeCall};

use super::{Labelled, image, label, labelled};
use crate::column::{Column, Figure, json, word};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Slowest;

type Row<'r> = Labelled<'r, WholeCall>;

const TIMES: [Figure<WholeCall>; 6] = [
    ("bytes", "The bytes it moved, if it returns such a count.", |call| call.bytes),
    ("start_ns", "When it was entered, from the beginning of the watch.", |call| {
        Some(call.start_ns)
    }),
    ("wall_ns", "From entry to return.", |call| Some(call.wall_ns)),
    ("on_cpu_ns", "Of `wall_ns`, on a CPU; NULL if the observer cannot know.", |call| {
        call.on_cpu_ns
    }),
    ("blocked_ns", "Of `wall_ns`, blocked.", |call| call.blocked_ns),
    ("runnable_ns", "Of `wall_ns`, run queue delay.", |call| call.runnable_ns),
];

/// Who ended the last sleep of a call.
fn woken_by<'r>() -> [Column<'r, Row<'r>>; 4] {
    fn waker<'r>((_, call): Row<'r>) -> Option<&'r Waker> {
        call.woken_by.as_ref()
    }
    [
        Column::some_text(
            "woken_by_context",
            "Whose work ended its last sleep: `thread`, `softirq`, `interrupt`, `unknown`; NULL if it did not sleep, or this is not known.",
            |row: Row<'r>| word(&waker(row)?.context),
        ),
        Column::some_integer(
            "woken_by_tid",
            "The thread that ran on that CPU; 0 for the idle one.",
            |row: Row<'r>| Some(waker(row)?.tid.into()),
        ),
        Column::some_text("woken_by_thread", "The name of that thread.", |row: Row<'r>| {
            Some(waker(row)?.thread.as_str().into())
        }),
        Column::some_text("woken_by_syscall", "The call that it was in.", |row: Row<'r>| {
            Some(waker(row)?.syscall.as_deref()?.into())
        }),
    ]
}

impl Rows for Slowest {
    const NAME: &'static str = "slowest";
    const ROW: &'static str = "one of the calls that took longest";
    type Row<'r> = Row<'r>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Row<'r>>> {
        let mut columns = vec![label()];
        columns.extend(image(|(_, call): Row<'r>| (call.pid, &call.exec, call.image)));
        columns.extend([
            Column::integer("tid", "The thread that made it.", |(_, call): Row<'r>| {
                call.tid.into()
            }),
            Column::text("thread", "The name of that thread.", |(_, call): Row<'r>| &call.thread),
            Column::text("syscall", "The call's name.", |(_, call): Row<'r>| &call.syscall),
            Column::bits(
                "arguments",
                "Its arguments, numbers and addresses: their 64 bits, with a sign.",
                |(_, call): Row<'r>| Some(&call.arguments),
            ),
            Column::some_text(
                "path",
                "The path it was given, or that of the file behind its descriptor.",
                |(_, call): Row<'r>| call.path.as_deref().map(Into::into),
            ),
            Column::signed(
                "returned",
                "The value it returned; 0 where it failed.",
                |(_, call): Row<'r>| call.returned,
            ),
            Column::some_text(
                "error",
                "The error, as `ENOENT`; NULL if it succeeded.",
                |(_, call): Row<'r>| call.error.as_deref().map(Into::into),
            ),
        ]);
        for (name, meaning, of) in TIMES {
            columns.push(Column::some_integer(name, meaning, move |(_, call): Row<'r>| of(call)));
        }
        columns.extend(woken_by());
        columns.push(Column::some_text(
            "callers",
            "The functions of user space that it was made in, the innermost first, as JSON; NULL if none are known.",
            |(_, call): Row<'r>| if call.callers.is_empty() { None } else { json(&call.callers) },
        ));
        columns
    }

    fn rows(of: &Exported) -> Vec<Row<'_>> {
        labelled(of, |trace| &trace.slowest)
    }
}
