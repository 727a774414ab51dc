//! The layers of anatomies, and of races with sampled runs.

use iotomy_record::store::Record;
use iotomy_record::{DissectedCall, Layer};

use super::image;
use crate::column::Column;
use crate::exported::Exported;
use crate::table::Rows;

pub(super) struct Layers;

#[derive(Clone, Copy)]
pub(super) struct Row<'r> {
    label: Option<&'r str>,
    call: &'r DissectedCall,
    layer: &'r Layer,
}

impl Rows for Layers {
    const NAME: &'static str = "layers";
    const ROW: &'static str = "a layer in a call, or outside calls";
    type Row<'r> = Row<'r>;

    fn columns<'r>(_of: &'r Exported) -> Vec<Column<'r, Row<'r>>> {
        let mut columns = vec![Column::some_text(
            "label",
            "In a race, the label of the command that was sampled.",
            |row: Row<'r>| row.label.map(Into::into),
        )];
        columns.extend(image(|row: Row<'r>| (row.call.pid, &row.call.exec, row.call.image)));
        columns.extend([
            Column::some_text("syscall", "The call; NULL outside calls.", |row: Row<'r>| {
                row.call.syscall.as_deref().map(Into::into)
            }),
            Column::text("layer", "The layer.", |row: Row<'r>| &row.layer.layer),
            Column::integer("on_cpu_ns", "On a CPU.", |row: Row<'r>| row.layer.on_cpu_ns),
            Column::integer(
                "error_ns",
                "Half of the 95 % confidence interval of `on_cpu_ns`.",
                |row: Row<'r>| row.layer.error_ns,
            ),
            Column::integer("samples", "Samples.", |row: Row<'r>| row.layer.samples),
            Column::integer("blocked_ns", "Blocked.", |row: Row<'r>| row.layer.blocked_ns),
            Column::integer_by_name("waits", "Blocked, by what was waited for.", |row: Row<'r>| {
                &row.layer.waits
            }),
        ]);
        columns
    }

    fn rows(of: &Exported) -> Vec<Row<'_>> {
        let mut calls: Vec<(Option<&str>, &DissectedCall)> = Vec::new();
        if let Record::Anatomy(anatomy) = &of.record {
            calls.extend(anatomy.calls.iter().map(|call| (None, call)));
        }
        for (label, sampled) in of.sampled() {
            calls.extend(sampled.calls.iter().map(|call| (Some(label), call)));
        }
        let mut rows = Vec::new();
        for (label, call) in calls {
            rows.extend(call.layers.iter().map(|layer| Row { label, call, layer }));
        }
        rows
    }
}
