//! A row per case: the number of samples, the minimum, mean and deviation, and the other
//! measurements.

use iotomy_record::{AxisValue, Case, Sweep};

use super::scale::Scale;
use super::{NAME, values};
use crate::numbers::thousands;
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table};

pub(super) fn print(page: &mut Page<'_>, record: &Sweep) {
    let cases: Vec<&Case> = record.cases.iter().filter(|case| !case.samples.is_empty()).collect();
    if cases.is_empty() {
        return;
    }
    let extras = &record.about.extras;
    let heads: Vec<String> =
        extras.iter().map(|extra| page.name(&super::extra_head(&extra.name), NAME)).collect();
    let of_extra = |name: &str| {
        let name = name.to_owned();
        cases.iter().filter_map(move |case| case.extra.get(&name).copied())
    };
    let scales: Vec<Scale> =
        extras.iter().map(|extra| Scale::for_figures(&extra.unit, of_extra(&extra.name))).collect();
    let unit = cases.first().map_or("", |case| case.unit.as_str());
    let scale = Scale::for_figures(unit, cases.iter().filter_map(|case| case.mean));
    let several = record.axes.iter().filter(|axis| axis.values.len() > 1);
    let names: Vec<String> = several.map(|axis| page.name(&axis.name, NAME)).collect();
    let is_short = super::usual_of(record).next().is_some();
    let first = if is_short { String::new() } else { names.join(", ") };
    let mut shape = vec![
        Column::text(&first, 9),
        Column::number("samples", "", 6),
        Column::number("least", scale.unit, 7),
        Column::number("mean", scale.unit, 8),
        Column::number("deviation", scale.unit, 7),
    ];
    let of_extras = heads.iter().zip(&scales);
    shape.extend(of_extras.map(|(head, scale)| Column::number(head, scale.unit, 5)));
    let mut table = Table::new(&shape);
    for case in cases {
        let figure = |value: Option<f64>| value.map_or(String::new(), |of| scale.shown(of));
        let mut cells = vec![
            values(page, record, &case.params),
            thousands(case.samples.len() as u128),
            figure(case.min),
            figure(case.mean),
            figure(case.stddev),
        ];
        cells.extend(extras.iter().zip(&scales).map(|(extra, scale)| {
            case.extra.get(&extra.name).map_or(String::new(), |value| scale.shown(*value))
        }));
        table.push(Row { cells, ..Row::default() });
    }
    page.blank();
    page.line(&[(Ink::Bold, "each case")]);
    table.print(page);
    for (extra, head) in extras.iter().zip(&heads) {
        let text = format!("{head}: {}", page.sentence(&extra.summary));
        page.wrapped(&[(Ink::Plain, "    ")], Ink::Dim, &text);
    }
    let one = |axis: &&iotomy_record::SweepAxis| axis.values.len() == 1;
    let fixed: Vec<String> = record
        .axes
        .iter()
        .filter(one)
        .map(|axis| {
            let shown = super::value(page, axis, &axis.values[0]);
            match axis.values[0] {
                AxisValue::Number(_) => format!("{} {shown}", page.name(&axis.name, NAME)),
                AxisValue::Name(_) => shown,
            }
        })
        .collect();
    let as_usual: Vec<String> = super::usual_of(record)
        .map(|(axis, usual)| {
            format!("{} {}", page.name(&axis.name, NAME), super::value(page, axis, usual))
        })
        .collect();
    if !as_usual.is_empty() {
        let text = format!("defaults: {}", as_usual.join(", "));
        page.wrapped(&[(Ink::Plain, "    ")], Ink::Dim, &text);
    }
    if !fixed.is_empty() {
        page.wrapped(&[(Ink::Plain, "    ")], Ink::Dim, &format!("in all: {}", fixed.join(", ")));
    }
}
