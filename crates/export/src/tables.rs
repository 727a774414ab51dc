//! The tables: a file each. Tables and columns only come; none goes, and none changes its type.

mod calls;
mod cases;
mod claims;
mod comparisons;
mod files;
mod findings;
mod layers;
mod ledger;
mod measures;
mod processes;
mod race_runs;
mod runs;

use crate::column::Column;
use crate::exported::Exported;
use crate::table::Table;
use iotomy_record::Trace;

/// Every table. A record is in `runs` when it is in all others.
pub const TABLES: &[Table] = &[
    Table::of::<calls::Calls>(),
    Table::of::<files::Files>(),
    Table::of::<ledger::Ledger>(),
    Table::of::<processes::Processes>(),
    Table::of::<findings::Findings>(),
    Table::of::<race_runs::RaceRuns>(),
    Table::of::<comparisons::Comparisons>(),
    Table::of::<cases::Cases>(),
    Table::of::<claims::Claims>(),
    Table::of::<layers::Layers>(),
    Table::of::<measures::Measures>(),
    Table::of::<runs::Runs>(),
];

/// A row of a trace, and the label of its contender.
type Labelled<'r, T> = (Option<&'r str>, &'r T);

/// The rows of a table of all traces of a record.
fn labelled<T>(of: &Exported, rows: fn(&Trace) -> &[T]) -> Vec<Labelled<'_, T>> {
    let of_trace = |(label, trace)| rows(trace).iter().map(move |row| (label, row));
    of.traces().into_iter().flat_map(of_trace).collect()
}

/// The label of a contender.
fn label<'r, T: 'r>() -> Column<'r, Labelled<'r, T>> {
    let meaning = "In a race, the label of the contender whose trace it is of.";
    Column::some_text("label", meaning, |(label, _): Labelled<'r, T>| label.map(Into::into))
}

/// The image that a row is of.
fn image<'r, R: Copy + 'r>(of: fn(R) -> (u32, &'r str, u32)) -> [Column<'r, R>; 3] {
    [
        Column::integer("pid", "Process id.", move |row| of(row).0.into()),
        Column::text("exec", "Program image.", move |row| of(row).1),
        Column::integer(
            "image",
            "Which of the process's images of this name it is; 0 where there is but one.",
            move |row| of(row).2.into(),
        ),
    ]
}
