//! A part of the time that was counted: what is said of it, and the columns of its margins.
//!
//! The other tables and pictures take the estimates as they would take counts: renderers begin with `Trace::scaled`.
//! Margins are those of a call over all processes, so just tables of all of them have such columns.
//!
//! Computed by `estimate` in `crates/stats/src/windows.rs`.

use iotomy_record::{LedgerRow, Margins, Sample, Trace};

use super::call_sum::CallSum;
use crate::columns::Columns;
use crate::numbers::{bytes, counted, duration, fixed, thousands};
use crate::sheet::{Cell, Field};

/// What the figures are, in a line: `10 ms of each 100 ms at random; counts are scaled × 9.98, …`
pub(super) fn line(record: &Trace, sample: &Sample) -> String {
    let window = duration(sample.window_ns as f64);
    let period = duration(sample.window_ns as f64 * f64::from(sample.n));
    let lead = format!("{window} of each {period} at random");
    if sample.windows == 0 {
        let watched = duration(sample.watched_ns as f64);
        return format!(
            "{lead}, of which none came in {watched}: no call was counted; watch longer, or leave out --sample"
        );
    }
    let factor = fixed(sample.factor().ratio(), 2);
    let margin = match sample.margins {
        Some(_) => "± is the 95 % margin".to_owned(),
        None => {
            let windows = counted(sample.windows.into(), "window", "windows");
            format!("their error is not known, of {windows}: watch longer, or leave out --sample")
        }
    };
    let slower = match slowed(record, sample) {
        share if share < 0.01 => String::new(),
        share => format!(
            "; counting slows windows by up to {} %: a program that waits for nothing makes as many more calls outside",
            fixed(share * 100.0, 0)
        ),
    };
    format!("{lead}; counts are scaled × {factor}, {margin}{slower}")
}

/// The share of the CPU time in windows that counting may have taken there, beyond what the watch takes outside.
fn slowed(record: &Trace, sample: &Sample) -> f64 {
    let observer = &record.observer;
    let more_ns = observer.cost_range_ns()[1] - observer.left_out_range_ns()[0];
    let calls = CallSum::total("", &record.calls).calls() as f64;
    let on_cpu = |row: &LedgerRow| row.user_ns as f64 + row.calls_on_cpu_ns as f64;
    let on_cpu: f64 = record.ledger.iter().map(on_cpu).sum();
    // Both are those of the whole, and so in proportion.
    if sample.open_ns == 0 || on_cpu == 0.0 {
        0.0
    } else {
        (more_ns * calls / on_cpu).clamp(0.0, 1.0)
    }
}

/// `16,500 ± 210 calls, 128 ± 2 MiB`, where that is known.
pub(super) fn headline(record: &Trace, total: &CallSum<'_>) -> Option<String> {
    let margins = record.sample.as_ref()?.margins?;
    let [calls, margin] = [total.calls(), margins.calls.into()].map(thousands);
    let mut text = format!("{calls} ± {margin} calls");
    if total.bytes() > 0 {
        text += &format!(", {} ± {}", bytes(total.bytes()), bytes(margins.bytes.into()));
    }
    Some(text)
}

/// Gives the sums over all processes their margins.
pub(super) fn note_margins(record: &Trace, sums: &mut [CallSum<'_>], total: &mut CallSum<'_>) {
    if let Some(sample) = &record.sample {
        sums.iter_mut().for_each(|sum| sum.margins = sample.margins_of(sum.name));
        total.margins = sample.margins;
    }
}

/// The columns, with those of the margins where the sums have some.
pub(super) fn columns<'a, 'r>(
    columns: Columns<'a, CallSum<'r>>,
    total: &CallSum<'_>,
    decimals: usize,
) -> Columns<'a, CallSum<'r>> {
    if total.margins.is_none() {
        return columns;
    }
    let column = |key: &str, unit: &str, worth| Field::number(key, "±", unit).worth(worth);
    let cell = |of: fn(&Margins) -> u64, cell: fn(u64) -> Cell| {
        move |sum: &CallSum<'r>| Cell::from_option(sum.margins, |margins| cell(of(&margins)))
    };
    let time = move |sum: &CallSum<'r>| {
        Cell::from_option(sum.margins, |margins| {
            Cell::whole(margins.wall_ns, fixed(margins.wall_ns as f64 / 1e6, decimals))
        })
    };
    columns
        .behind("calls", column("calls_margin", "", 10), cell(|of| of.calls, |n| Cell::count(n)))
        .behind(
            "errors",
            column("errors_margin", "", 5),
            cell(|of| of.errors, |n| Cell::count(n).if_any()),
        )
        .behind(
            "bytes",
            column("bytes_margin", "", 6),
            cell(|of| of.bytes, |n| Cell::size(n).if_any()),
        )
        .behind("wall_ns", column("wall_margin_ns", "ms", 9), time)
}
