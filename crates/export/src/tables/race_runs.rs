//! The timed runs of races.

use iotomy_record::store::Record;
use iotomy_record::{Contender, Run};

use crate::column::{Column, Figure, exit};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct RaceRuns;

#[derive(Clone, Copy)]
pub(super) struct Row<'r> {
    contender: &'r Contender,
    number: u64,
    run: &'r Run,
    is_redone: Option<bool>,
}

impl Rows for RaceRuns {
    const NAME: &'static str = "race_runs";
    const ROW: &'static str = "a timed run of a race's contender";
    type Row<'r> = Row<'r>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Row<'r>>> {
        let mut columns = vec![
            Column::text("label", "The contender's label.", |row: Row<'r>| &row.contender.label),
            Column::text("command", "Its command.", |row: Row<'r>| &row.contender.command),
            Column::integer("number", "Which of its runs, from 1.", |row: Row<'r>| row.number),
            Column::integer("block", "The place of its block in the race.", |row: Row<'r>| {
                row.run.block
            }),
            Column::bool(
                "redone",
                "Its block was made again, and so does not count.",
                |row: Row<'r>| row.is_redone,
            ),
        ];
        let figures: [Figure<Run>; 9] = [
            ("wall_ns", "From before the process was made until it had been waited for.", |run| {
                Some(run.wall_ns)
            }),
            ("user_ns", "On a CPU in user mode.", |run| Some(run.user_ns)),
            ("system_ns", "On a CPU in the kernel.", |run| Some(run.system_ns)),
            ("max_rss_bytes", "Largest resident set.", |run| Some(run.max_rss_bytes)),
            ("startup_ns", "The part of `wall_ns` until `execve`.", |run| Some(run.startup_ns)),
            ("minor_faults", "Page faults served without I/O.", |run| Some(run.minor_faults)),
            ("major_faults", "Page faults that waited for I/O.", |run| Some(run.major_faults)),
            ("involuntary_switches", "Times it was made to give up its CPU.", |run| {
                Some(run.involuntary_switches)
            }),
            ("output_bytes", "The bytes written to standard output.", |run| run.output_bytes),
        ];
        for (name, meaning, of) in figures {
            columns.push(Column::some_integer(name, meaning, move |row: Row<'r>| of(row.run)));
        }
        columns.extend(exit(|row: Row<'r>| Some(row.run.exit)));
        columns
    }

    fn rows(of: &Exported) -> Vec<Row<'_>> {
        let Record::Race(race) = &of.record else { return Vec::new() };
        let mut rows = Vec::new();
        for contender in &race.contenders {
            for (number, run) in (1..).zip(&contender.runs) {
                let block = usize::try_from(run.block).ok().and_then(|at| race.blocks.get(at));
                let is_redone = block.map(|block| block.redone);
                rows.push(Row { contender, number, run, is_redone });
            }
        }
        rows
    }
}
