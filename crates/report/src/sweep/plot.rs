//! A chart of a grid: a mark a case, with its error bar where that is longer than a line is high.
//!
//! An axis is logarithmic where its largest value is at least twenty times its smallest, and is
//! labelled so.

use iotomy_record::{AxisValue, Case};

use super::NAME;
use super::grid::Grid;
use crate::axis::Axis;
use crate::page::{Ink, Page, columns};

/// Lines and columns of the field.
const HIGH: usize = 12;
const WIDE: usize = 64;

/// Columns below which there is no chart.
const LEAST_WIDE: usize = 24;

/// Points along the axis below which a chart shows no more than the table.
const LEAST_POINTS: usize = 3;

const MARKS: [&str; 8] = ["●", "○", "■", "□", "▲", "△", "◆", "◇"];
const ASCII_MARKS: [&str; 8] = ["o", "x", "#", "=", "A", "v", "+", "*"];

pub(super) fn print(page: &mut Page<'_>, grid: &Grid<'_>) {
    let (Some(along), rows) = (grid.along, grid.rows()) else { return };
    let numbers: Vec<f64> = rows.iter().filter_map(|row| number(row)).collect();
    if numbers.len() < LEAST_POINTS || numbers.len() < rows.len() {
        return;
    }
    let cases: Vec<&Case> = rows
        .iter()
        .flat_map(|row| grid.columns().into_iter().filter_map(|column| grid.case(row, column)))
        .collect();
    let medians = cases.iter().filter_map(|case| case.median);
    let (Some(x), Some(y)) =
        (Axis::from_values(numbers.iter().copied()), Axis::from_values(medians))
    else {
        return;
    };
    let scale = grid.scale();
    let labels = [1.0, 0.5, 0.0].map(|share| scale.shown(y.at(share)));
    let label = labels.iter().map(|label| columns(label)).max().unwrap_or(0);
    let wide = WIDE.min(page.width().saturating_sub(label + 6));
    if wide < LEAST_WIDE {
        return;
    }
    let field = field(page, grid, (&x, &y), wide);
    page.blank();
    for (line, row) in field.iter().enumerate() {
        let text = match line {
            0 => &labels[0],
            line if line == HIGH / 2 => &labels[1],
            line if line == HIGH - 1 => &labels[2],
            _ => "",
        };
        let edge = if page.unicode() { "│" } else { "|" };
        let space = " ".repeat(label.saturating_sub(columns(text)));
        page.line(&[(Ink::Dim, &format!("  {space}{text} {edge} ")), (Ink::Plain, &row.concat())]);
    }
    let (first, last) = (numbers.first(), numbers.last());
    let ends = [first, last].map(|end| {
        let end = AxisValue::Number(end.copied().unwrap_or(0.0) as u64);
        super::value(page, along, &end)
    });
    let gap = " ".repeat(wide.saturating_sub(columns(&ends[0]) + columns(&ends[1])));
    page.line(&[(Ink::Dim, &format!("  {}   {}{gap}{}", " ".repeat(label), ends[0], ends[1]))]);
    let legend = legend(page, grid);
    let logs = match (x.is_log, y.is_log) {
        (true, true) => ", both logarithmic",
        (true, false) => ", which is logarithmic",
        (false, true) => "; the vertical axis is logarithmic",
        (false, false) => "",
    };
    let name = page.name(&along.name, NAME);
    let unit = if scale.unit.is_empty() { String::new() } else { format!("{} ", scale.unit) };
    let metric = page.name(cases.first().map_or("", |case| case.metric.as_str()), 60);
    let text = format!("{legend} · {metric}, {unit}over {name}{logs}");
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, text.trim_start_matches(" · "));
}

fn number(value: &AxisValue) -> Option<f64> {
    match value {
        AxisValue::Number(number) => Some(*number as f64),
        AxisValue::Name(_) => None,
    }
}

fn mark(page: &Page<'_>, at: usize) -> &'static str {
    let marks = if page.unicode() { MARKS } else { ASCII_MARKS };
    marks[at % marks.len()]
}

fn legend(page: &Page<'_>, grid: &Grid<'_>) -> String {
    let columns = grid.columns();
    if columns == [None] {
        return String::new();
    }
    let each = columns.iter().enumerate();
    let each = each.map(|(at, column)| format!("{} {}", mark(page, at), grid.head(page, *column)));
    each.collect::<Vec<String>>().join(", ")
}

/// The field, its lines from the top: error bars first, so that marks lie on them.
fn field(
    page: &Page<'_>,
    grid: &Grid<'_>,
    (x, y): (&Axis, &Axis),
    wide: usize,
) -> Vec<Vec<&'static str>> {
    let mut field = vec![vec![" "; wide]; HIGH];
    let bar = if page.unicode() { "┊" } else { ":" };
    for is_marks in [false, true] {
        for row in grid.rows() {
            let Some(at) = number(row).map(|number| x.place(number, wide)) else { continue };
            for (index, column) in grid.columns().into_iter().enumerate() {
                let Some(case) = grid.case(row, column) else { continue };
                let line = |value: f64| HIGH - 1 - y.place(value, HIGH);
                match (is_marks, case.median, case.ci95) {
                    (true, Some(median), _) => field[line(median)][at] = mark(page, index),
                    (false, _, Some([low, high])) => {
                        for cells in &mut field[line(high)..=line(low)] {
                            cells[at] = bar;
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    field
}
