//! The measures by which the history lists and compares records.

use iotomy_record::Measure;

use crate::column::Column;
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Measures;

impl Rows for Measures {
    const NAME: &'static str = "measures";
    const ROW: &'static str = "a measure, as `iotomy history` has it";
    type Row<'r> = &'r Measure;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, &'r Measure>> {
        vec![
            Column::text("subject", "What was measured.", |one: &'r Measure| &one.subject),
            Column::text("name", "The measure.", |one: &'r Measure| &one.name),
            Column::text("unit", "Its unit; empty for a count.", |one: &'r Measure| &one.unit),
            Column::float("value", "The median.", |one: &'r Measure| Some(one.value)),
            Column::integer("runs", "How many measurements there were.", |one: &'r Measure| {
                one.runs
            }),
        ]
    }

    fn rows(of: &Exported) -> Vec<&Measure> {
        of.measures.iter().collect()
    }
}
