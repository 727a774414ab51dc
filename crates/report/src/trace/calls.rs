//! The tables of calls: over all images first where there are several, then one an image.
//!
//! Computed by `count_return` in `crates/observe/src/bpf/calls.bpf.h`.

use std::iter;

use iotomy_record::{Call, Trace};

use super::call_columns::{self, Whole};
use super::call_sum::CallSum;
use super::images::{Image, command_line};
use super::{ALWAYS, SMALL_ROW, USUAL_ROWS, print_hidden, rows, shown_images};
use crate::numbers::{decimals_for, fixed, thousands};
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table};

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
    let shown = usual_rows(record, &sums, total.wall());
    // A row "1 more" takes the place of the row itself.
    let shown =
        if record.view.top.is_none() && shown + 1 == sums.len() { sums.len() } else { shown };
    let decimals = decimals_for(ms(total.wall()));
    let columns = call_columns::all();
    let mut heads = vec![Column::text("call", 11)];
    heads.extend(columns.iter().map(|column| column.column()));
    let mut table = Table::new(&heads);
    let whole = Whole { wall: total.wall(), decimals };
    let cells = |page: &Page<'_>, name: String, sum: &CallSum<'_>| {
        let cells = columns.iter().map(|column| column.cell(page, sum, whole).text);
        iter::once(name).chain(cells).collect()
    };
    for sum in &sums[..shown] {
        let cells = cells(page, page.name(sum.name, 28), sum);
        table.push(Row { cells, remarks: remarks(page, sum), ink: Ink::Plain });
    }
    if sums.len() > 1 {
        let cells = cells(page, "all".into(), &total);
        table.push(Row { cells, ink: Ink::Bold, ..Row::default() });
    }
    table.print(page);
    let hidden: u128 = sums[shown..].iter().map(CallSum::wall).sum();
    let what = format!(", {} ms in total", fixed(ms(hidden), decimals));
    print_hidden(page, shown, sums.len(), &what);
}

/// The number of rows: the requested one, or the default without rows that are too small to matter,
/// where the order is by time.
fn usual_rows(record: &Trace, sums: &[CallSum<'_>], whole: u128) -> usize {
    let most = rows(record, USUAL_ROWS).min(sums.len());
    if record.view.top.is_some() || !record.view.sort.is_time() {
        return most;
    }
    let large = |sum: &&CallSum<'_>| sum.wall().saturating_mul(SMALL_ROW) >= whole;
    let large = sums[..most].iter().take_while(large).count();
    large.max(ALWAYS).min(most)
}

/// The calls that did not return, and the errors, the most frequent first.
pub(super) fn remarks(page: &Page<'_>, sum: &CallSum<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    if matches!(sum.name, "exit" | "exit_group") {
        remarks.push("never returns".to_string());
    } else {
        if sum.entered_before() > 0 {
            remarks.push(format!("{} entered before the watch", thousands(sum.entered_before())));
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
