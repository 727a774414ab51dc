//! A [`Trace`] as text: the answer in one line, where the time went, the calls, the advice.

mod brief;
pub(crate) mod call_columns;
mod call_sum;
mod calls;
mod charts;
mod distributions;
mod files;
mod groups;
mod headline;
pub(crate) mod images;
pub(crate) mod ledger;
mod listeners;
mod nothing;
mod overhead;
mod paths;
pub(crate) mod peers;
mod processes;
pub(crate) mod requests;
pub(crate) mod rings;
mod sample;
mod section;
pub(crate) mod slowest;
mod threads;
mod times;
pub(crate) mod until;

use iotomy_record::{SortKey, Trace};

use crate::columns::Extent;
use crate::page::Page;
use crate::table::print_hidden;
use crate::{Style, findings};
pub use brief::trace_brief;
pub(crate) use brief::{ROWS as BRIEF_ROWS, brief};
pub(crate) use call_sum::CallSum;
pub(crate) use charts::{capital, side_by_side};
pub(crate) use headline::{Warning, refusals};
use images::Image;
pub(crate) use section::{facts, results, section, title};

/// The default number of rows of a table of calls or files.
const USUAL_ROWS: usize = 10;

/// The default number of program images that are listed.
const USUAL_IMAGES: usize = 4;

/// Unless a number of rows was requested, a row of less than one part in this many of the whole
/// time is left out, and an image of less than one in [`SMALL_IMAGE`]; but never the first five.
const SMALL_ROW: u128 = 1_000;
const SMALL_IMAGE: u128 = 50;
const ALWAYS: usize = 5;

/// The record as the text a terminal shows, ending in a line break.
///
/// The view of the record decides the content: the order of the rows (`sort`), how many there are
/// (`top`; 0 for all), which distributions (`quantize`) and whether files are shown (`files`). Any
/// record renders, a hostile one included.
pub fn trace(record: &Trace, style: &Style) -> String {
    let record = &*record.scaled();
    let mut page = Page::new(style);
    let images = images::list(record);
    headline::print(&mut page, record, &images);
    until::print(&mut page, record);
    ledger::print(&mut page, record, &images);
    processes::print(&mut page, record, &images);
    threads::print(&mut page, record, &images);
    calls::print(&mut page, record, &images);
    rings::print(&mut page, record, &images);
    times::print(&mut page, record);
    distributions::print(&mut page, record, &images);
    files::print(&mut page, record, &images);
    peers::print(&mut page, record);
    listeners::print(&mut page, record);
    requests::print(&mut page, record);
    paths::print(&mut page, record);
    slowest::print(&mut page, record);
    groups::print(&mut page, record);
    findings::print(&mut page, &record.findings);
    page.finish()
}

/// The first lines: the command, its end, its requests, the overhead, the limitations.
pub(crate) fn print_headline(page: &mut Page<'_>, record: &Trace) {
    headline::print(page, record, &images::list(record));
}

/// The images that tables are printed for, in their order.
fn shown_images<'a, 'r>(record: &Trace, images: &'a [Image<'r>]) -> &'a [Image<'r>] {
    let most = rows(record, USUAL_IMAGES).min(images.len());
    if record.view.top.is_some() {
        return &images[..most];
    }
    let order = images::order(record);
    if order == SortKey::NAME {
        return &images[..most];
    }
    let value = |image: &Image<'_>| image.value(order);
    let whole: u128 = images.iter().map(value).fold(0, u128::saturating_add);
    let large = |image: &&Image<'_>| value(image).saturating_mul(SMALL_IMAGE) >= whole;
    let large = images[..most].iter().take_while(large).count();
    &images[..large.max(1).min(most)]
}

/// The part of a table that a terminal shows, with names of at most so many columns.
fn extent(record: &Trace, name: usize) -> Extent {
    Extent { rows: rows(record, USUAL_ROWS), name }
}

/// Rows a table may have.
pub(crate) fn rows(record: &Trace, usual: usize) -> usize {
    match record.view.top {
        None => usual,
        Some(0) => usize::MAX,
        Some(rows) => rows,
    }
}

#[cfg(test)]
pub(crate) mod tests;
