//! A table of a record, declared once for terminals and pages: its columns, and what a row has in each.

use std::cmp::Reverse;

use iotomy_record::SortKey;
use iotomy_record::statistic::{Joins, Statistic, Statistics, Unit};

use crate::numbers::{figure, fixed};
use crate::sheet::{Cell, Field, Sheet};

/// The columns of a table whose rows are `S`, from left to right.
pub(crate) struct Columns<'a, S>(Vec<(Field, CellOf<'a, S>)>);

type CellOf<'a, S> = Box<dyn Fn(&S) -> Cell + 'a>;

/// How much of a record a table has.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    /// Rows.
    pub(crate) rows: usize,
    /// Columns of a name.
    pub(crate) name: usize,
}

impl Extent {
    /// All that a page has.
    pub(crate) const PAGE: Self = Self { rows: usize::MAX, name: 300 };

    pub(crate) fn is_page(self) -> bool {
        self.name == Self::PAGE.name
    }
}

/// Sorts rows, which come by name, by the statistic of this key, the largest first; without it, in the table's own order.
pub(crate) fn sort<R: Statistics, S, K: Ord>(
    rows: &mut [S],
    key: SortKey,
    of: impl Fn(&S) -> &R,
    usual: impl Fn(&R) -> K,
) {
    // The longest may be a bound, and then its column is none of those that the statistics declare.
    let statistic = match key {
        SortKey::MAX => R::statistic("max_ns"),
        key => key.statistic::<R>(),
    };
    match statistic {
        _ if key == SortKey::NAME => {}
        Some(statistic) => rows.sort_by_key(|row| Reverse((statistic.field.number)(of(row)))),
        None => rows.sort_by_key(|row| Reverse(usual(of(row)))),
    }
}

impl<'a, S> Columns<'a, S> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// A column of words: the first one names the rows.
    pub(crate) fn text(self, field: Field, text: impl Fn(&S) -> String + 'a) -> Self {
        self.number(field, move |row| Cell::text(text(row)))
    }

    pub(crate) fn number(mut self, field: Field, cell: impl Fn(&S) -> Cell + 'a) -> Self {
        self.0.push((field, Box::new(cell)));
        self
    }

    /// The columns that the statistics of `R` declare: numbers of what `of` has of a row, if anything. Sums of times have so
    /// many decimals.
    pub(crate) fn declared<R: Statistics>(
        mut self,
        decimals: usize,
        of: impl Fn(&S) -> Option<&R> + Copy + 'a,
    ) -> Self {
        for (statistic, column) in R::shown() {
            let unit =
                column.under.unwrap_or(match (statistic.shape.unit, statistic.shape.joins) {
                    (Unit::Time, Joins::Most) => "µs",
                    (Unit::Time, _) => "ms",
                    (Unit::Count | Unit::Bytes, _) => "",
                });
            let field = Field::number(statistic.name, column.head, unit).worth(column.worth);
            self = self.number(field, move |row| {
                let cell = Cell::from_option(of(row), |row| cell(statistic, row, decimals));
                if column.blank { cell.if_any() } else { cell }
            });
        }
        self
    }

    /// Another column behind the one of this key.
    pub(crate) fn behind(
        mut self,
        key: &str,
        field: Field,
        cell: impl Fn(&S) -> Cell + 'a,
    ) -> Self {
        let at = self.0.iter().position(|(field, _)| field.key == key);
        self.0.insert(at.map_or(self.0.len(), |at| at + 1), (field, Box::new(cell)));
        self
    }

    /// The columns whose fields `is_kept` accepts.
    pub(crate) fn only(mut self, is_kept: impl Fn(&Field) -> bool) -> Self {
        self.0.retain(|(field, _)| is_kept(field));
        self
    }

    /// With the width that each column keeps, by its key.
    pub(crate) fn at_least(self, width: impl Fn(&str) -> usize) -> Self {
        let each = self.0.into_iter();
        Self(each.map(|(field, cell)| (field.clone().at_least(width(&field.key)), cell)).collect())
    }

    /// The table of these rows, as far as the extent goes; of several, with the row that sums them up, if there is one.
    pub(crate) fn sheet<'s>(
        &self,
        id: &str,
        title: &str,
        rows: &'s [S],
        total: Option<&S>,
        extent: Extent,
    ) -> Sheet
    where
        S: 's,
    {
        let fields = self.0.iter().map(|(field, _)| field.clone()).collect();
        let mut sheet = Sheet::new(id, title, fields);
        let shown = extent.rows.min(rows.len());
        for row in &rows[..shown] {
            sheet.push(self.0.iter().map(|(_, cell)| cell(row)).collect());
        }
        sheet.hidden = rows.len() - shown;
        sheet.total = total.filter(|_| rows.len() > 1).map(|total| self.total(total));
        sheet
    }

    /// Numbers behind a name, and remarks.
    fn total(&self, row: &S) -> Vec<Cell> {
        let cells = self.0.iter().enumerate().map(|(at, (field, cell))| match field.is_words() {
            true => Cell::text(if at == 0 { "all" } else { "" }),
            false => cell(row),
        });
        cells.collect()
    }
}

/// A number, if it is known.
fn cell<R>(statistic: &Statistic<R>, row: &R, decimals: usize) -> Cell {
    Cell::from_option((statistic.field.number)(row), |number| {
        match (statistic.shape.unit, statistic.shape.joins) {
            (Unit::Count, _) => Cell::count(number),
            (Unit::Bytes, _) => Cell::size(number),
            (Unit::Time, Joins::Most) => Cell::whole(number, figure(number as f64 / 1e3)),
            (Unit::Time, _) => Cell::whole(number, fixed(number as f64 / 1e6, decimals)),
        }
    })
}
