//! The cases of experiments, with their samples.

use iotomy_record::store::Record;
use iotomy_record::{Case, Sweep};

use crate::column::Column;
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Cases;

type Row<'r> = (&'r Sweep, &'r Case);

impl Rows for Cases {
    const NAME: &'static str = "cases";
    const ROW: &'static str = "a case of an experiment";
    type Row<'r> = Row<'r>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Row<'r>>> {
        vec![
            Column::text("experiment", "The experiment.", |(sweep, _): Row<'r>| &sweep.experiment),
            Column::text_by_name("params", "A value of each axis.", |(_, case): Row<'r>| {
                case.params.iter().map(|(axis, value)| (axis.as_str(), value.to_string())).collect()
            }),
            Column::text("metric", "The metric.", |(_, case): Row<'r>| &case.metric),
            Column::text("unit", "Its unit; empty for a count.", |(_, case): Row<'r>| &case.unit),
            Column::floats("samples", "Every measurement, in order.", |(_, case): Row<'r>| {
                Some(&case.samples)
            }),
            Column::float("median", "Of the samples.", |(_, case): Row<'r>| case.median),
            Column::float("mean", "Of the samples.", |(_, case): Row<'r>| case.mean),
            Column::float("stddev", "Of the samples.", |(_, case): Row<'r>| case.stddev),
            Column::float("min", "The least sample.", |(_, case): Row<'r>| case.min),
            Column::floats(
                "ci95",
                "The 95 % confidence interval of the median.",
                |(_, case): Row<'r>| case.ci95.as_ref().map(|ci| ci.as_slice()),
            ),
            Column::float_by_name("extra", "What else was measured.", |(_, case): Row<'r>| {
                &case.extra
            }),
            Column::some_text("skipped", "Why it was not measured.", |(_, case): Row<'r>| {
                case.skipped.as_deref().map(Into::into)
            }),
            Column::some_text(
                "note",
                "The error after a part of it had been measured.",
                |(_, case): Row<'r>| case.note.as_deref().map(Into::into),
            ),
        ]
    }

    fn rows(of: &Exported) -> Vec<Row<'_>> {
        let Record::Sweep(sweep) = &of.record else { return Vec::new() };
        sweep.cases.iter().map(|case| (&**sweep, case)).collect()
    }
}
