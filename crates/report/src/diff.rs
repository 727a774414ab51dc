//! A [`Diff`] as text: the answer in a line, the figures of the whole runs, then what differs, most
//! time first, and what this rests on.
//!
//! Computed by `diff` in `crates/diff/src/lib.rs`.

mod csv;
mod details;
mod findings;
mod grid;
mod grounds;
mod headline;
mod requests;
mod rings;
mod rows;
mod slowest;
mod times;

use iotomy_record::statistic::Statistic;
use iotomy_record::{Diff, DiffRow, Exchange, SortKey};

pub use csv::diff_csv;

use self::grid::Grid;
use crate::Style;
use crate::markdown::Writer;
use crate::page::{Ink, Page};
use crate::sheet::wide_style;

/// The rows of a comparison that are shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiffView {
    /// The key by which rows are sorted; time, unless another is given.
    pub sort: Option<SortKey>,
    /// Rows of a table; `None` for the usual number, 0 for all.
    pub top: Option<usize>,
    /// Whether rows without a difference are shown, too.
    pub all: bool,
}

/// The usual number of rows of a table.
const USUAL_ROWS: usize = 10;

impl DiffView {
    fn rows(&self) -> usize {
        match self.top {
            None => USUAL_ROWS,
            Some(0) => usize::MAX,
            Some(rows) => rows,
        }
    }
}

/// The comparison as the text a terminal shows, ending in a line break.
pub fn diff(record: &Diff, view: DiffView, style: &Style) -> String {
    let mut page = Page::new(style);
    headline::print(&mut page, record);
    for grid in grids(&page, record, view) {
        page.blank();
        page.line(&[(Ink::Plain, "  "), (Ink::Bold, &grid.title)]);
        grid.print(&mut page);
    }
    findings::print(&mut page, record);
    page.blank();
    for text in grounds::equal(record, view).into_iter().chain(grounds::grounds(record)) {
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &text);
    }
    page.finish()
}

/// The same tables as Markdown.
pub fn diff_markdown(record: &Diff, view: DiffView) -> String {
    let style = wide_style();
    let page = Page::new(&style);
    let mut to = Writer::default();
    to.lines(&headline::lines(&page, record));
    for grid in grids(&page, record, view) {
        to.sheet(&grid.into_sheet(), usize::MAX);
    }
    if let Some(sheet) = findings::sheet(&page, record) {
        to.sheet(&sheet, usize::MAX);
    }
    to.lines(&grounds::equal(record, view));
    to.lines(&grounds::grounds(record));
    to.finish()
}

fn grids(page: &Page<'_>, record: &Diff, view: DiffView) -> Vec<Grid> {
    let mut grids = vec![headline::totals(record, view)];
    grids.extend(rows::programs(page, record, view));
    grids.extend(rows::calls(page, record, view));
    grids.push(rings::ring_operations(page, record, view));
    grids.extend(times::times(page, record, view));
    grids.push(slowest::slowest(page, record));
    grids.push(details::threads(page, record, view));
    grids.extend(rows::layers(page, record, view));
    grids.extend(rows::functions(page, record, view));
    grids.push(details::files(page, record, view));
    grids.push(details::peers(page, record, view));
    grids.push(requests::latency(page, record, view));
    grids.push(requests::parts(page, record, view));
    grids.push(details::groups(page, record, view));
    grids.push(details::paths(page, record, view));
    grids.into_iter().filter(|grid| !grid.rows.is_empty()).collect()
}

/// The rows of a table that are to be shown, in their order, however many.
fn shown(rows: &[DiffRow], view: DiffView) -> Vec<&DiffRow> {
    let mut shown: Vec<&DiffRow> =
        rows.iter().filter(|row| view.all || row.verdict.is_shown()).collect();
    let by = |row: &DiffRow, names: &[&str]| -> f64 {
        names.iter().map(|name| row.delta(name).abs()).sum()
    };
    let Some(sort) = view.sort.filter(|sort| *sort != SortKey::WALL) else { return shown };
    if sort == SortKey::NAME {
        shown.sort_by_key(|row| (&row.program, &row.name, &row.of));
        return shown;
    }
    // What further tables call it.
    let mut names = match sort {
        SortKey::ON_CPU => vec!["on_cpu_ns", "calls_on_cpu_ns", "user_ns"],
        SortKey::CALLS => vec![
            "calls",
            "submitted",
            "read_calls",
            "write_calls",
            "map_calls",
            "connections",
            "opened",
            "requests",
        ],
        SortKey::MAX => vec!["wall_max_ns", "max_ns"],
        SortKey::BYTES => vec!["bytes", "read_bytes", "write_bytes", "mapped_bytes"],
        other => other.names(),
    };
    // Of requests, the parts of the latency are means.
    let part: Option<&Statistic<Exchange>> = sort.statistic();
    names.extend(part.and_then(|part| part.shape.mean));
    shown.sort_by(|a, b| by(b, &names).total_cmp(&by(a, &names)));
    shown
}

#[cfg(test)]
mod tests;
