//! The timed runs of races.

use iotomy_record::store::Record;
use iotomy_record::{RaceCommand, Run};

use crate::column::{Column, Figure, exit};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct RaceRuns;

#[derive(Clone, Copy)]
pub(super) struct Row<'r> {
    command: &'r RaceCommand,
    number: u64,
    run: &'r Run,
    is_redone: Option<bool>,
}

impl Rows for RaceRuns {
    const NAME: &'static str = "race_runs";
    const ROW: &'static str = "a timed run of a race's command";
    type Row<'r> = Row<'r>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Row<'r>>> {
        let mut columns = vec![
            Column::text("label", "The command's label.", |row: Row<'r>| &row.command.label),
            Column::text("command", "Its command line.", |row: Row<'r>| &row.command.command),
            Column::integer("number", "Which of its runs, from 1.", |row: Row<'r>| row.number),
            Column::integer("block", "The place of its round in the race.", |row: Row<'r>| {
                row.run.round
            }),
            Column::bool(
                "redone",
                "Its round was made again, and so does not count.",
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
        for command in &race.commands {
            for (number, run) in (1..).zip(&command.runs) {
                let round = usize::try_from(run.round).ok().and_then(|at| race.rounds.get(at));
                let is_redone = round.map(|round| round.redone);
                rows.push(Row { command, number, run, is_redone });
            }
        }
        rows
    }
}
