//! The findings of traces, anatomies and races.

use iotomy_record::Finding;
use iotomy_record::store::Record;

use super::{Labelled, label, labelled};
use crate::column::{Column, json, word};
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Findings;

impl Rows for Findings {
    const NAME: &'static str = "findings";
    const ROW: &'static str = "a finding";
    type Row<'r> = Labelled<'r, Finding>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Self::Row<'r>>> {
        type Row<'r> = Labelled<'r, Finding>;
        vec![
            label(),
            Column::text("id", "Which.", |(_, one): Row<'r>| &one.id),
            Column::some_text(
                "verdict",
                "How it is meant: `impossible`, `suspect`, `advice`, `note`.",
                |(_, one): Row<'r>| word(&one.verdict),
            ),
            Column::text("text", "The finding in one sentence.", |(_, one): Row<'r>| &one.text),
            Column::some_text("try", "The advice.", |(_, one): Row<'r>| {
                one.advice.as_deref().map(Into::into)
            }),
            Column::some_text(
                "evidence",
                "The numbers it rests on, as JSON.",
                |(_, one): Row<'r>| json(&one.evidence),
            ),
        ]
    }

    fn rows(of: &Exported) -> Vec<Self::Row<'_>> {
        let mut rows = labelled(of, |trace| &trace.findings);
        if let Record::Race(race) = &of.record {
            rows.extend(race.findings.iter().map(|one| (None, one)));
        }
        rows
    }
}
