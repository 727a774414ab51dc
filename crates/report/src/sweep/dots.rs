//! Cases that stand alone as a picture: a row each, from top to bottom, with its interval. It suits
//! an experiment that changes one parameter at a time.

use iotomy_record::{Case, Sweep};

use super::grid::Grid;
use super::{label, usual, usual_of};
use crate::axis::{Axis, Unit};
use crate::chart::{Chart, Drawing, WIDE, fit, labels_below};
use crate::page::Page;

/// Rows that are drawn, at most.
const ROWS: usize = 48;
const ROW: f64 = 22.0;
const LABELS: f64 = 286.0;
const FROM: f64 = 300.0;
const TO: f64 = WIDE - 88.0;

/// The picture of the cases of grids without a line; none where there are not two that can stand on
/// one axis.
pub(super) fn dots(page: &Page<'_>, record: &Sweep, grids: &[Grid<'_>], id: &str) -> Option<Chart> {
    let first = *grids.first()?.cases.first()?;
    let is_alike = |case: &&&Case| (&case.metric, &case.unit) == (&first.metric, &first.unit);
    let common = usual_case(record).filter(|case| is_alike(&case));
    let alone = grids.iter().flat_map(|grid| grid.cases.iter().copied());
    let is_other = |case: &Case| common.is_none_or(|common| !std::ptr::eq(common, case));
    let alone = alone.filter(|case| is_alike(&case) && is_other(case));
    let all: Vec<&Case> = common.into_iter().chain(alone).collect();
    let shown = &all[..all.len().min(ROWS)];
    if shown.len() < 2 {
        return None;
    }
    let (axis, floor) = (along(shown)?, 8.0 + ROW * shown.len() as f64);
    let place = |value: f64| FROM + axis.share(value) * (TO - FROM);
    let unit = Unit::for_unit(&first.unit);
    let mut drawing = Drawing::new(WIDE, floor + 28.0);
    for tick in axis.ticks(6) {
        drawing.line([place(tick), 4.0, place(tick), floor], "grid");
    }
    let labels = axis.ticks(6).into_iter().map(|tick| (place(tick), unit.shown(tick)));
    labels_below(&mut drawing, floor + 16.0, labels);
    if let Some(median) = common.and_then(|case| case.median) {
        drawing.line([place(median), 4.0, place(median), floor], "s0 fit");
    }
    let mut says = Vec::new();
    for (at, case) in shown.iter().enumerate() {
        let Some(median) = case.median else { continue };
        let (y, label) = (17.0 + ROW * at as f64, label(page, record, &case.params));
        drawing.text(LABELS, y + 4.0, "end", &fit(&label, LABELS - 4.0));
        let mut tip = format!("{label}: {}", unit.shown(median));
        if let Some([low, high]) = case.ci95 {
            let (from, to) = (place(low), place(high));
            drawing.line([from, y, to, y], "s0 error");
            drawing.line([from, y - 3.0, from, y + 3.0], "s0 error");
            drawing.line([to, y - 3.0, to, y + 3.0], "s0 error");
            tip += &format!(" (95 % CI: {} … {})", unit.shown(low), unit.shown(high));
        }
        tip += &format!(", {} samples", case.samples.len());
        drawing.mark(0, place(median), y, &tip);
        drawing.text(WIDE - 8.0, y + 4.0, "end num", &unit.shown(median));
        says.push(format!("{label} {}", unit.shown(median)));
    }
    let metric = page.name(&first.metric, 60);
    let title = if id == "chart" { metric } else { format!("{metric}, one change at a time") };
    Some(Chart {
        id: id.to_owned(),
        title,
        says: says.join("; "),
        legend: Vec::new(),
        notes: notes(page, record, &axis, (common.is_some(), all.len() - shown.len())),
        drawing,
    })
}

/// The case in which nothing is changed.
fn usual_case(record: &Sweep) -> Option<&Case> {
    usual_of(record).next()?;
    let is_usual = |case: &&Case| {
        let mut axes = record.axes.iter().filter(|axis| axis.values.len() > 1);
        case.median.is_some()
            && axes.all(|axis| case.params.get(&axis.name) == usual(record, &axis.name))
    };
    record.cases.iter().find(is_usual)
}

/// The axis of the medians. The end of an interval far below them would stretch it without end.
fn along(cases: &[&Case]) -> Option<Axis> {
    let mut values: Vec<f64> = cases.iter().filter_map(|case| case.median).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let ends = cases.iter().filter_map(|case| case.ci95).flatten();
    values.extend(ends.filter(|end| *end > least / 10.0));
    Axis::from_values(values.into_iter()).map(Axis::roomy)
}

fn notes(
    page: &Page<'_>,
    record: &Sweep,
    axis: &Axis,
    (has_usual, hidden): (bool, usize),
) -> Vec<String> {
    let mut note = "medians with their 95 % confidence intervals".to_owned();
    if axis.is_log {
        note += "; the axis is logarithmic";
    }
    let mut notes = vec![note];
    if has_usual {
        let usual = usual_of(record)
            .map(|(axis, one)| {
                format!("{} {}", page.name(&axis.name, 30), super::value(page, axis, one))
            })
            .collect::<Vec<String>>();
        notes.push(format!("defaults (the dashed line): {}", usual.join(", ")));
    }
    if hidden > 0 {
        notes.push(format!("{hidden} more are in the table of cases"));
    }
    notes
}
