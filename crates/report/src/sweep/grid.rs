//! Medians with their error bars: a row each value of one axis, a column each of another; a table for
//! each combination of the rest.

use std::collections::BTreeMap;

use iotomy_record::{AxisValue, Case, Sweep, SweepAxis};

use super::scale::Scale;
use super::{NAME, label, usual, value};
use crate::page::{Ink, Page, columns};
use crate::table::{Column, Row, Table};

/// The cases of one combination of the other axes' values.
pub(super) struct Grid<'a> {
    pub(super) along: Option<&'a SweepAxis>,
    pub(super) lines: Option<&'a SweepAxis>,
    rest: BTreeMap<&'a str, &'a AxisValue>,
    pub(super) cases: Vec<&'a Case>,
}

impl<'a> Grid<'a> {
    /// A grid a combination, those with anything measured.
    pub(super) fn all(record: &'a Sweep) -> Vec<Self> {
        let named = |name: &str| record.axes.iter().find(|axis| axis.name == name);
        let along = named(&record.about.along).or(record.axes.last());
        let others =
            || record.axes.iter().filter(|axis| Some(axis.name.as_str()) != name_of(along));
        let lines = others().find(|axis| axis.name == record.about.lines).or(others().next());
        let mut grids: Vec<Self> = Vec::new();
        for case in record.cases.iter().filter(|case| case.median.is_some()) {
            let is_rest = |name: &str| Some(name) != name_of(along) && Some(name) != name_of(lines);
            let rest: BTreeMap<_, _> = case
                .params
                .iter()
                .filter(|(name, _)| is_rest(name))
                .map(|(name, value)| (name.as_str(), value))
                .collect();
            match grids.iter_mut().find(|grid| grid.rest == rest) {
                Some(grid) => grid.cases.push(case),
                None => grids.push(Self { along, lines, rest, cases: vec![case] }),
            }
        }
        grids
    }

    /// The values of an axis that have a case here, in the axis' order.
    fn values(&self, axis: Option<&'a SweepAxis>) -> Vec<&'a AxisValue> {
        let Some(axis) = axis else { return Vec::new() };
        let has = |value: &&AxisValue| {
            self.cases.iter().any(|case| case.params.get(&axis.name) == Some(*value))
        };
        axis.values.iter().filter(has).collect()
    }

    /// The values a row or a point of the chart each.
    pub(super) fn rows(&self) -> Vec<&'a AxisValue> {
        self.values(self.along)
    }

    /// The values a column or a line of the chart each; one `None` without such an axis.
    pub(super) fn columns(&self) -> Vec<Option<&'a AxisValue>> {
        let values = self.values(self.lines);
        if values.is_empty() { vec![None] } else { values.into_iter().map(Some).collect() }
    }

    pub(super) fn case(&self, row: &AxisValue, column: Option<&AxisValue>) -> Option<&'a Case> {
        let is = |case: &Case, axis: Option<&SweepAxis>, value: Option<&AxisValue>| {
            axis.is_none_or(|axis| case.params.get(&axis.name) == value)
        };
        let here = |case: &&&Case| is(case, self.along, Some(row)) && is(case, self.lines, column);
        self.cases.iter().find(here).copied()
    }

    /// Whether there is nothing to hold against each other in it.
    pub(super) fn is_one_case(&self) -> bool {
        self.cases.len() == 1
    }

    pub(super) fn scale(&self) -> Scale {
        let unit = self.cases.first().map_or("", |case| case.unit.as_str());
        Scale::for_figures(unit, self.cases.iter().filter_map(|case| case.median))
    }

    pub(super) fn head(&self, page: &Page<'_>, column: Option<&AxisValue>) -> String {
        match (self.lines, column) {
            (Some(axis), Some(one)) => value(page, axis, one),
            _ => String::new(),
        }
    }

    pub(super) fn row_name(&self, page: &Page<'_>, row: &AxisValue) -> String {
        self.along.map_or(String::new(), |axis| value(page, axis, row))
    }

    /// The metric, and the values of the other axes.
    pub(super) fn title(&self, page: &Page<'_>, record: &Sweep) -> String {
        let metric = self.cases.first().map_or("", |case| case.metric.as_str());
        let mut title = page.name(metric, 60);
        for axis in &record.axes {
            if let Some(one) = self
                .rest
                .get(axis.name.as_str())
                .filter(|one| usual(record, &axis.name).is_none_or(|usual| usual != **one))
            {
                title += &format!(" · {} {}", page.name(&axis.name, NAME), value(page, axis, one));
            }
        }
        title
    }

    pub(super) fn print(&self, page: &mut Page<'_>, record: &Sweep) {
        let scale = self.scale();
        page.blank();
        let unit = if scale.unit.is_empty() { String::new() } else { format!("{}, ", scale.unit) };
        let title = self.title(page, record);
        let text = format!("{unit}median and half of its 95 % confidence interval");
        if columns(&title) + " · ".len() + columns(&text) <= page.width() {
            page.wrapped(&[(Ink::Bold, &title), (Ink::Dim, " · ")], Ink::Dim, &text);
        } else {
            page.wrapped(&[], Ink::Bold, &title);
            page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &text);
        }
        let heads: Vec<String> =
            self.columns().into_iter().map(|column| self.head(page, column)).collect();
        let along = self.along.map_or(String::new(), |axis| page.name(&axis.name, NAME));
        let mut shape = vec![Column::number(&along, "", 9)];
        // Of columns of equal rank the last disappears first.
        shape.extend(heads.iter().map(|head| Column::number(head, "", 5)));
        let mut table = Table::new(&shape);
        let cells = self.cells(page, scale);
        for (row, cells) in self.rows().into_iter().zip(cells) {
            let first = self.along.map_or(String::new(), |axis| value(page, axis, row));
            let all: Vec<String> = [first].into_iter().chain(cells).collect();
            table.push(Row { cells: all, ..Row::default() });
        }
        table.print(page);
    }

    /// Medians and error bars, each in line with those above and below.
    fn cells(&self, page: &Page<'_>, scale: Scale) -> Vec<Vec<String>> {
        let sign = if page.unicode() { "±" } else { "+-" };
        let mut columns_of: Vec<Vec<String>> = Vec::new();
        for column in self.columns() {
            let pairs: Vec<(String, String)> = self
                .rows()
                .into_iter()
                .map(|row| {
                    let Some(case) = self.case(row, column) else {
                        return (String::new(), String::new());
                    };
                    let half = case.ci95.map(|[low, high]| scale.shown((high - low) / 2.0));
                    (
                        case.median.map_or(String::new(), |of| scale.shown(of)),
                        half.unwrap_or_default(),
                    )
                })
                .collect();
            let widest = pairs.iter().map(|(_, bar)| columns(bar)).max().unwrap_or(0);
            let cell = |(median, bar): &(String, String)| match (median.as_str(), bar.as_str()) {
                ("", _) => String::new(),
                (median, "") if widest == 0 => median.to_owned(),
                (median, "") => format!("{median}   {}", " ".repeat(widest)),
                (median, bar) => format!("{median} {sign} {bar:>widest$}"),
            };
            columns_of.push(pairs.iter().map(cell).collect());
        }
        (0..self.rows().len())
            .map(|row| columns_of.iter().map(|column| column[row].clone()).collect())
            .collect()
    }
}

/// Grids of one case each, in one table.
pub(super) fn print_alone(page: &mut Page<'_>, record: &Sweep, grids: &[Grid<'_>]) {
    let cases: Vec<&Case> = grids.iter().flat_map(|grid| grid.cases.iter().copied()).collect();
    let Some(first) = cases.first() else { return };
    let scale = Scale::for_figures(&first.unit, cases.iter().filter_map(|case| case.median));
    page.blank();
    let unit = if scale.unit.is_empty() { String::new() } else { format!("{}, ", scale.unit) };
    let title = page.name(&first.metric, 60) + ", others";
    let text = format!("{unit}median and half of its 95 % confidence interval");
    page.wrapped(&[(Ink::Bold, &title), (Ink::Dim, " · ")], Ink::Dim, &text);
    let shape = [Column::text("", 9), Column::number("median", "", 8), Column::number("±", "", 7)];
    let mut table = Table::new(&shape);
    for case in cases {
        let half = case.ci95.map(|[low, high]| scale.shown((high - low) / 2.0));
        let cells = vec![
            label(page, record, &case.params),
            case.median.map_or(String::new(), |of| scale.shown(of)),
            half.unwrap_or_default(),
        ];
        table.push(Row { cells, ..Row::default() });
    }
    table.print(page);
}

fn name_of(axis: Option<&SweepAxis>) -> Option<&str> {
    axis.map(|axis| axis.name.as_str())
}
