//! The claims of experiments.

use iotomy_record::store::Record;
use iotomy_record::{Claim, Sweep};

use crate::column::{Column, json};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Claims;

type Row<'r> = (&'r Sweep, &'r Claim);

impl Rows for Claims {
    const NAME: &'static str = "claims";
    const ROW: &'static str = "a claim of an experiment, judged";
    type Row<'r> = Row<'r>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Row<'r>>> {
        vec![
            Column::text("experiment", "The experiment.", |(sweep, _): Row<'r>| &sweep.experiment),
            Column::text("id", "Which.", |(_, claim): Row<'r>| &claim.id),
            Column::text("source", "The articles it is from.", |(_, claim): Row<'r>| &claim.source),
            Column::text("text", "The claim, in a sentence.", |(_, claim): Row<'r>| &claim.text),
            Column::text(
                "verdict",
                "`holds`, `fails` or `inconclusive`.",
                |(_, claim): Row<'r>| claim.verdict.name(),
            ),
            Column::text("because", "Why, in a sentence.", |(_, claim): Row<'r>| &claim.because),
            Column::some_text(
                "evidence",
                "The numbers it rests on, as JSON.",
                |(_, claim): Row<'r>| json(&claim.evidence),
            ),
        ]
    }

    fn rows(of: &Exported) -> Vec<Row<'_>> {
        let Record::Sweep(sweep) = &of.record else { return Vec::new() };
        sweep.claims.iter().map(|claim| (&**sweep, claim)).collect()
    }
}
