//! The tables of calls: over all images first where there are several, then one an image.
//!
//! Computed by `count_return` in `crates/observe/src/bpf/calls.bpf.h`.

use std::iter;

use iotomy_record::{Call, SortKey, Trace};

use super::call_columns;
use super::call_sum::CallSum;
use super::images::{Image, arguments};
use super::{ALWAYS, SMALL_ROW, USUAL_ROWS, rows, sample, shown_images};
use crate::columns::Extent;
use crate::numbers::{decimals_for, fixed};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet};
use crate::table::print_hidden;

pub(super) fn print(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    if images.len() > 1 && !record.calls.is_empty() {
        page.blank();
        page.line(&[(Ink::Plain, "  "), (Ink::Bold, "all processes")]);
        print_table(page, record, &record.calls.iter().collect::<Vec<_>>(), true);
    }
    let shown = shown_images(record, images);
    for image in shown.iter().filter(|image| !image.calls.is_empty()) {
        page.blank();
        if images.len() > 1 {
            print_title(page, image);
        }
        print_table(page, record, &image.calls, images.len() == 1);
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
    let argv = alone.map(|one| arguments(page, one, room));
    let argv = argv.unwrap_or_default();
    page.line(&[(Ink::Plain, "  "), (Ink::Bold, &label), (Ink::Plain, "   "), (Ink::Dim, &argv)]);
}

/// `is_whole`: the calls are those of all processes.
fn print_table(page: &mut Page<'_>, record: &Trace, calls: &[&Call], is_whole: bool) {
    let mut sums = CallSum::by_name(calls.iter().copied(), record.view.sort);
    let mut total = CallSum::total("", calls.iter().copied());
    if is_whole {
        sample::note_margins(record, &mut sums, &mut total);
    }
    let shown = usual_rows(record, &sums, total.wall());
    // A row "1 more" takes the place of the row itself.
    let shown =
        if record.view.top.is_none() && shown + 1 == sums.len() { sums.len() } else { shown };
    let extent = Extent { rows: shown, name: 28 };
    let sheet = call_columns::columns(page, &total, extent).sheet(
        "calls",
        "Calls",
        &sums,
        Some(&total),
        extent,
    );
    let hidden: u128 = sums[shown..].iter().map(CallSum::wall).sum();
    let decimals = decimals_for(ms(total.wall()));
    sheet.print(page, &format!(", {} ms in total", fixed(ms(hidden), decimals)));
}

/// Over all processes.
pub(super) fn sheet(page: &Page<'_>, record: &Trace) -> Sheet {
    let mut sums = CallSum::by_name(&record.calls, record.view.sort);
    let mut total = CallSum::total("", &record.calls);
    sample::note_margins(record, &mut sums, &mut total);
    call_columns::columns(page, &total, Extent::PAGE)
        .sheet("calls", "Calls", &sums, Some(&total), Extent::PAGE)
        .without_empty_columns()
}

/// Those of each process, a page's second table.
pub(super) fn sheet_of_processes<'r>(
    page: &Page<'_>,
    record: &Trace,
    images: &[Image<'r>],
) -> Sheet {
    let total = CallSum::total("", &record.calls);
    let columns = call_columns::columns(page, &total, Extent::PAGE);
    let of = |sums: &[CallSum<'r>]| {
        columns.sheet("calls-of-processes", "Calls of each process", sums, None, Extent::PAGE)
    };
    let mut sheet = of(&[]);
    sheet.fields.insert(0, Field::text("process", "process"));
    for image in images {
        let label = Cell::text(image.label(page));
        let sums = CallSum::by_name(image.calls.iter().copied(), SortKey::WALL);
        let rows = of(&sums).rows.into_iter();
        sheet.rows.extend(rows.map(|row| iter::once(label.clone()).chain(row).collect::<Vec<_>>()));
    }
    sheet.folded = true;
    sheet.without_empty_columns()
}

/// The number of rows: the requested one, or the default without rows that are too small to matter,
/// where the order is by time.
fn usual_rows(record: &Trace, sums: &[CallSum<'_>], whole: u128) -> usize {
    let most = rows(record, USUAL_ROWS).min(sums.len());
    if record.view.top.is_some() || !record.view.sort.of_calls().is_time() {
        return most;
    }
    let large = |sum: &&CallSum<'_>| sum.wall().saturating_mul(SMALL_ROW) >= whole;
    let large = sums[..most].iter().take_while(large).count();
    large.max(ALWAYS).min(most)
}

fn ms(ns: u128) -> f64 {
    ns as f64 / 1e6
}
