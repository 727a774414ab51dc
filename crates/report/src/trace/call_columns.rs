//! The columns of tables of calls: those that statistics of [`Call`](iotomy_record::Call) declare, and what follows from
//! several of these.

use super::call_sum::CallSum;
use super::calls::remarks;
use crate::columns::{Columns, Extent};
use crate::numbers::{decimals_for, figure, percent};
use crate::page::Page;
use crate::sheet::{Cell, Field};

/// The table of a record whose calls took `wall` in all.
pub(crate) fn columns<'a, 'r>(
    page: &'a Page<'_>,
    wall: u128,
    extent: Extent,
) -> Columns<'a, CallSum<'r>> {
    let name = move |sum: &CallSum<'_>| page.name(sum.name, extent.name);
    let open = Field::number("open", "open", "").worth(5);
    let share = Field::number("wall_percent", "share", "%").worth(4);
    let mean = Field::number("mean_ns", "mean", "µs").worth(3);
    let max = Field::number("max_ns", "max", "µs").worth(2);
    Columns::new()
        .text(Field::text("call", "call").worth(11), name)
        .declared(decimals_for(wall as f64 / 1e6), |sum: &CallSum<'_>| Some(&sum.numbers))
        .behind("errors", open, |sum| Cell::count(sum.open).if_any())
        .behind("wall_ns", share, move |sum| {
            let part = i128::try_from(sum.wall()).unwrap_or(i128::MAX);
            Cell::real(sum.wall() as f64 / (wall.max(1) as f64) * 100.0, percent(part, wall))
        })
        .number(mean, |sum| {
            Cell::from_option(sum.mean_us(), |mean| Cell::real(mean * 1e3, figure(mean)))
        })
        .number(max, |sum| {
            Cell::from_option(sum.mean_us(), |_| Cell::whole(sum.max, sum.max_us(page)))
        })
        .text(Field::remarks(), |sum| remarks(page, sum).join(", "))
}
