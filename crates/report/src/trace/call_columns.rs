//! The columns of tables of calls: those that statistics of [`Call`](iotomy_record::Call) declare, and what follows from
//! several of these.

use super::call_sum::CallSum;
use super::sample;
use crate::columns::{Columns, Extent};
use crate::numbers::{decimals_for, figure, percent, thousands};
use crate::page::Page;
use crate::sheet::{Cell, Field};

/// The table of a record whose calls are `total` in all.
pub(crate) fn columns<'a, 'r>(
    page: &'a Page<'_>,
    total: &CallSum<'_>,
    extent: Extent,
) -> Columns<'a, CallSum<'r>> {
    let wall = total.wall();
    let decimals = decimals_for(wall as f64 / 1e6);
    let name = move |sum: &CallSum<'_>| page.name(sum.name, extent.name);
    let open = Field::number("open", "open", "").worth(5);
    let share = Field::number("wall_percent", "share", "%").worth(4);
    let mean = Field::number("mean_ns", "mean", "µs").worth(3);
    let max = Field::number("max_ns", "max", "µs").worth(2);
    let columns = Columns::new()
        .text(Field::text("call", "call").worth(11), name)
        .declared(decimals, |sum: &CallSum<'_>| Some(&sum.numbers))
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
        .text(Field::remarks(), |sum| remarks(page, sum).join(", "));
    sample::columns(columns, total, decimals)
}

/// The calls that did not return, and the errors, the most frequent first.
fn remarks(page: &Page<'_>, sum: &CallSum<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    if matches!(sum.name, "exit" | "exit_group") {
        remarks.push("never returns".to_string());
    } else {
        let entered_before = sum.numbers.entered_before;
        if entered_before > 0 {
            remarks.push(format!("{} entered before the watch", thousands(entered_before.into())));
        }
        if sum.open > 0 {
            remarks.push(format!("{} did not return", thousands(sum.open)));
        }
    }
    let mut kinds: Vec<_> = sum.error_kinds.iter().collect();
    kinds.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    remarks.extend(
        kinds.iter().map(|(kind, n)| format!("{} {}", page.name(kind, 24), thousands(**n))),
    );
    remarks
}
