//! The columns of tables of calls: those that statistics of [`Call`] declare, and what follows from several of these.

use iotomy_record::Call;
use iotomy_record::statistic::{self, Statistic, Statistics, Unit};

use super::call_sum::CallSum;
use crate::numbers::{figure, fixed, percent};
use crate::page::Page;
use crate::sheet::{Cell, Field};
use crate::table::Column;

/// A column beside the name of the call.
#[derive(Clone, Copy)]
pub(crate) enum CallColumn {
    /// A statistic.
    Declared(&'static Statistic<Call>, statistic::Column),
    /// Calls that did not return, but for those that never do.
    Open,
    /// Of the wall time of all.
    Share,
    /// Of the calls that ended.
    Mean,
    /// So named, of this share of these; its cells are the caller's.
    Quantile(&'static str, f64),
    /// The longest of these.
    Max,
}

/// What cells are relative to.
#[derive(Clone, Copy)]
pub(crate) struct Whole {
    /// The wall time of all calls.
    pub(crate) wall: u128,
    /// Of times.
    pub(crate) decimals: usize,
}

/// Every column, from left to right.
pub(crate) fn all() -> Vec<CallColumn> {
    let mut columns = Vec::new();
    for (statistic, column) in Call::shown() {
        columns.push(CallColumn::Declared(statistic, column));
        match statistic.name {
            "errors" => columns.push(CallColumn::Open),
            "wall_ns" => columns.push(CallColumn::Share),
            _ => {}
        }
    }
    columns.extend([CallColumn::Mean, CallColumn::Max]);
    columns
}

impl CallColumn {
    /// Its name in CSV.
    fn key(self) -> &'static str {
        match self {
            Self::Declared(statistic, _) => statistic.name,
            Self::Open => "open",
            Self::Share => "wall_percent",
            Self::Mean => "mean_ns",
            Self::Quantile(name, _) => name,
            Self::Max => "max_ns",
        }
    }

    fn head(self) -> &'static str {
        match self {
            Self::Declared(_, column) => column.head,
            Self::Open => "open",
            Self::Share => "share",
            Self::Mean => "mean",
            Self::Quantile(name, _) => name,
            Self::Max => "max",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Declared(statistic, _) if statistic.shape.unit == Unit::Time => "ms",
            Self::Declared(..) | Self::Open => "",
            Self::Share => "%",
            Self::Mean | Self::Max | Self::Quantile(..) => "µs",
        }
    }

    pub(crate) fn worth(self) -> u8 {
        match self {
            Self::Declared(_, column) => column.worth,
            Self::Open => 5,
            Self::Share => 4,
            Self::Mean | Self::Quantile(..) => 3,
            Self::Max => 2,
        }
    }

    /// The width it keeps where a table is drawn again and again.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Declared(_, column) => column.live.1,
            Self::Open => 4,
            Self::Share | Self::Mean | Self::Quantile(..) => 6,
            Self::Max => 8,
        }
    }

    /// The column of a table of text.
    pub(crate) fn column(self) -> Column<'static> {
        Column::number(self.head(), self.unit(), self.worth())
    }

    /// The column of a page.
    pub(crate) fn field(self) -> Field {
        Field::number(self.key(), self.head(), self.unit())
    }

    pub(crate) fn cell(self, page: &Page<'_>, sum: &CallSum<'_>, whole: Whole) -> Cell {
        match self {
            Self::Declared(statistic, column) => {
                let Some(number) = sum.of(statistic) else { return Cell::absent() };
                let cell = match statistic.shape.unit {
                    Unit::Count => Cell::count(number),
                    Unit::Bytes => Cell::size(number),
                    Unit::Time => Cell::whole(number, fixed(number as f64 / 1e6, whole.decimals)),
                };
                if column.blank { cell.if_any() } else { cell }
            }
            Self::Open => Cell::count(sum.open).if_any(),
            Self::Share => {
                let part = i128::try_from(sum.wall()).unwrap_or(i128::MAX);
                let value = sum.wall() as f64 / (whole.wall.max(1) as f64) * 100.0;
                Cell::real(value, percent(part, whole.wall))
            }
            Self::Quantile(..) => Cell::absent(),
            Self::Mean => {
                Cell::from_option(sum.mean_us(), |mean| Cell::real(mean * 1e3, figure(mean)))
            }
            Self::Max => {
                Cell::from_option(sum.mean_us(), |_| Cell::whole(sum.max, sum.max_us(page)))
            }
        }
    }
}
