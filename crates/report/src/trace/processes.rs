//! One row a program image, when there is more than one.
//!
//! Computed by `outcome` in `crates/observe/src/bpf/outcome.rs`.

use iotomy_record::Trace;

use super::call_sum::CallSum;
use super::images::{Image, Ledger};
use super::{print_hidden, shown_images};
use crate::numbers::{bytes, decimals_for, fixed, thousands};
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table};

const COLUMNS: [Column; 10] = [
    Column::text("process", 9),
    Column::number("threads", "", 2),
    Column::number("time", "ms", 8),
    Column::number("user", "ms", 6),
    Column::number("in calls", "ms", 7),
    Column::number("blocked", "ms", 6),
    Column::number("runq", "ms", 4),
    Column::number("residual", "ms", 3),
    Column::number("calls", "", 8),
    Column::number("bytes", "", 5),
];

pub(super) fn print(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    if images.len() < 2 {
        return;
    }
    let shown = shown_images(record, images);
    let total = Ledger::sum(images);
    let decimals = decimals_for(total.map_or(0.0, |t| t.thread as f64 / 1e6));
    let mut table = Table::new(&COLUMNS);
    for image in shown {
        let threads = image.process.map(|_| thousands(image.threads.into())).unwrap_or_default();
        let calls = CallSum::total("", image.calls.iter().copied());
        table.push(Row {
            cells: cells(image.label(page), threads, image.ledger, &calls, decimals),
            ..Row::default()
        });
    }
    // Less than the rows add up to: a thread that executes a program is in both images.
    let threads = u128::from(record.thread_count());
    let calls = CallSum::total("", &record.calls);
    table.push(Row {
        cells: cells("all".into(), thousands(threads), total, &calls, decimals),
        ink: Ink::Bold,
        ..Row::default()
    });
    page.blank();
    table.print(page);
    print_hidden(page, shown.len(), images.len(), "");
}

fn cells(
    label: String,
    threads: String,
    ledger: Option<Ledger>,
    calls: &CallSum<'_>,
    decimals: usize,
) -> Vec<String> {
    let ms = |part: fn(&Ledger) -> i128| {
        ledger.map_or_else(String::new, |ledger| fixed(part(&ledger) as f64 / 1e6, decimals))
    };
    vec![
        label,
        threads,
        ms(|l| l.thread),
        ms(|l| l.user),
        ms(|l| l.calls),
        ms(|l| l.blocked),
        ms(|l| l.runnable),
        ms(Ledger::residual),
        thousands(calls.calls()),
        if calls.bytes() > 0 { bytes(calls.bytes()) } else { String::new() },
    ]
}
