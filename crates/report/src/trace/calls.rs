//! The tables of calls: over all images first where there are several, then one an image.
//!
//! Computed by `count_return` in `crates/observe/src/bpf/calls.bpf.h`.

use iotomy_record::{Call, SortKey, Trace};

use super::images::{CallSum, Image, command_line};
use super::{ALWAYS, SMALL_ROW, USUAL_ROWS, print_hidden, rows, shown_images};
use crate::numbers::{bytes, decimals_for, figure, fixed, percent, thousands};
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table};

const COLUMNS: [Column; 12] = [
    Column::text("call", 11),
    Column::number("calls", "", 10),
    Column::number("errors", "", 5),
    Column::number("open", "", 5),
    Column::number("bytes", "", 6),
    Column::number("wall", "ms", 9),
    Column::number("share", "%", 4),
    Column::number("on-CPU", "ms", 8),
    Column::number("blocked", "ms", 7),
    Column::number("runq", "ms", 1),
    Column::number("mean", "µs", 3),
    Column::number("max", "µs", 2),
];

pub(super) fn print(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    if images.len() > 1 && !record.calls.is_empty() {
        page.blank();
        page.line(&[(Ink::Plain, "  "), (Ink::Bold, "all processes")]);
        print_table(page, record, &record.calls.iter().collect::<Vec<_>>());
    }
    let shown = shown_images(record, images);
    for image in shown.iter().filter(|image| !image.calls.is_empty()) {
        page.blank();
        if images.len() > 1 {
            print_title(page, image);
        }
        print_table(page, record, &image.calls);
    }
    if shown.len() < images.len() {
        page.blank();
        let what = if images.len() - shown.len() == 1 { " process" } else { " processes" };
        print_hidden(page, shown.len(), images.len(), what);
    }
}

/// The image and, as far as there is room, the arguments it was started with.
fn print_title(page: &mut Page<'_>, image: &Image<'_>) {
    let mut label = image.label(page);
    if let Some(binary) = image.binary(page) {
        label += &format!(" [{binary}]");
    }
    let alone = image.process.filter(|process| process.count() == 1 && !process.before_exec);
    let room = page.width().saturating_sub(crate::page::columns(&label) + 5);
    let argv = alone.map(|one| command_line(page, &one.argv, one.argv_words, room));
    let argv = argv.unwrap_or_default();
    page.line(&[(Ink::Plain, "  "), (Ink::Bold, &label), (Ink::Plain, "   "), (Ink::Dim, &argv)]);
}

fn print_table(page: &mut Page<'_>, record: &Trace, calls: &[&Call]) {
    let sums = CallSum::by_name(calls.iter().copied(), record.view.sort);
    let total = CallSum::total("all", calls.iter().copied());
    let shown = usual_rows(record, &sums, total.wall);
    // A row "1 more" takes the place of the row itself.
    let shown =
        if record.view.top.is_none() && shown + 1 == sums.len() { sums.len() } else { shown };
    let decimals = decimals_for(ms(total.wall));
    let mut table = Table::new(&COLUMNS);
    for sum in &sums[..shown] {
        table.push(Row {
            cells: cells(page, page.name(sum.name, 28), sum, total.wall, decimals),
            remarks: remarks(page, sum),
            ink: Ink::Plain,
        });
    }
    if sums.len() > 1 {
        table.push(Row {
            cells: cells(page, "all".into(), &total, total.wall, decimals),
            ink: Ink::Bold,
            ..Row::default()
        });
    }
    table.print(page);
    let hidden =
        CallSum { wall: sums[shown..].iter().map(|sum| sum.wall).sum(), ..CallSum::default() };
    let what = format!(", {} ms in total", fixed(ms(hidden.wall), decimals));
    print_hidden(page, shown, sums.len(), &what);
}

/// The number of rows: the requested one, or the default without rows that are too small to matter,
/// where the order is by time.
fn usual_rows(record: &Trace, sums: &[CallSum<'_>], whole: u128) -> usize {
    let most = rows(record, USUAL_ROWS).min(sums.len());
    let by_time = matches!(record.view.sort, SortKey::Wall | SortKey::OnCpu | SortKey::Blocked);
    if record.view.top.is_some() || !by_time {
        return most;
    }
    let large = |sum: &&CallSum<'_>| sum.wall.saturating_mul(SMALL_ROW) >= whole;
    let large = sums[..most].iter().take_while(large).count();
    large.max(ALWAYS).min(most)
}

fn cells(
    page: &Page<'_>,
    name: String,
    sum: &CallSum<'_>,
    whole: u128,
    decimals: usize,
) -> Vec<String> {
    let known = |ns: Option<u128>| ns.map_or_else(String::new, |ns| fixed(ms(ns), decimals));
    vec![
        name,
        thousands(sum.calls),
        if sum.errors > 0 { thousands(sum.errors) } else { String::new() },
        if sum.open > 0 { thousands(sum.open) } else { String::new() },
        if sum.bytes > 0 { bytes(sum.bytes) } else { String::new() },
        fixed(ms(sum.wall), decimals),
        percent(i128::try_from(sum.wall).unwrap_or(i128::MAX), whole),
        known(sum.on_cpu),
        known(sum.blocked),
        known(sum.runnable),
        sum.mean_us().map_or_else(String::new, figure),
        sum.max_us(page),
    ]
}

/// The calls that did not return, and the errors, the most frequent first.
pub(super) fn remarks(page: &Page<'_>, sum: &CallSum<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    if matches!(sum.name, "exit" | "exit_group") {
        remarks.push("never returns".to_string());
    } else {
        if sum.entered_before > 0 {
            remarks.push(format!("{} entered before the watch", thousands(sum.entered_before)));
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

fn ms(ns: u128) -> f64 {
    ns as f64 / 1e6
}
