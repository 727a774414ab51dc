//! The comparisons of races.

use iotomy_record::Comparison;
use iotomy_record::store::Record;

use crate::column::{Column, word};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Comparisons;

impl Rows for Comparisons {
    const NAME: &'static str = "comparisons";
    const ROW: &'static str = "two commands of a race, compared in a metric";
    type Row<'r> = &'r Comparison;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, &'r Comparison>> {
        vec![
            Column::text("base", "The label of the base.", |one: &'r Comparison| &one.base),
            Column::text("other", "The label of the other.", |one: &'r Comparison| &one.other),
            Column::some_text("metric", "`wall` or `cpu`.", |one: &'r Comparison| {
                word(&one.metric)
            }),
            Column::float("ratio", "other ÷ base.", |one: &'r Comparison| Some(one.ratio)),
            Column::floats(
                "ci95",
                "Its 95 % confidence interval; 0 and 0 with too few runs.",
                |one: &'r Comparison| Some(&one.ci95),
            ),
            Column::some_text(
                "verdict",
                "Of the other: `faster`, `slower`, `no-difference`, `undecided`.",
                |one: &'r Comparison| word(&one.verdict),
            ),
            Column::integer("runs", "Pairs it rests on.", |one: &'r Comparison| one.runs),
            Column::some_integer(
                "more_runs",
                "Pairs that a verdict would still take.",
                |one: &'r Comparison| one.more_runs,
            ),
            Column::float("mean_ratio", "The mean of other ÷ base.", |one: &'r Comparison| {
                one.mean_ratio
            }),
            Column::floats("mean_ci95", "Its 95 % confidence interval.", |one: &'r Comparison| {
                one.mean_ci95.as_ref().map(|ci| ci.as_slice())
            }),
        ]
    }

    fn rows(of: &Exported) -> Vec<&Comparison> {
        match &of.record {
            Record::Race(race) => race.comparisons.iter().collect(),
            _ => Vec::new(),
        }
    }
}
