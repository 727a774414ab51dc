//! Tables of right-aligned figures that fit a width.
//!
//! The order in which parts of a table that is too wide are given up: long text of the first
//! column, the gap between columns, the place of remarks, whole columns from the least important
//! on. A column without any value is not shown at all.

use crate::page::{Ink, Page, columns, elide, elide_front, wrap};

/// The width to which the first column may shrink so that the gaps stay wide, unless it sets
/// another, and when nothing else helps.
const FIRST_USUAL: usize = 30;
const FIRST_AT_LEAST: usize = 14;

/// Remarks up to this width get room behind their row if narrow gaps give it.
const SHORT_REMARKS: usize = 26;

/// Space before a remark.
const REMARK_GAP: usize = 3;

/// How to see the columns that there is no room for.
const HAS_ROOM: &str = "a wider terminal has room; in a file or pipe, COLUMNS=200";

/// Space before every row.
const INDENT: usize = 2;

/// A column of a [`Table`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<'a> {
    pub(crate) head: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) left: bool,
    /// The lowest disappears first; the first column never does.
    worth: u8,
    /// The width it keeps, and is shown with, whatever its content.
    kept: usize,
    /// The width up to which the first column is complete as long as gaps and remarks can shrink.
    usual: usize,
    /// The width that the first column does not fall below while another can be left out.
    least: usize,
    /// Whether a first column that is cut loses its beginning instead of its middle.
    keeps_end: bool,
}

impl<'a> Column<'a> {
    /// A column of text.
    pub(crate) const fn text(head: &'a str, worth: u8) -> Self {
        let (usual, least) = (FIRST_USUAL, FIRST_AT_LEAST);
        Self { head, unit: "", left: true, worth, kept: 0, usual, keeps_end: false, least }
    }

    /// A column of numbers in one unit, which stands under the head.
    pub(crate) const fn number(head: &'a str, unit: &'a str, worth: u8) -> Self {
        Self { left: false, unit, ..Self::text(head, worth) }
    }

    /// The same, shown this wide also where its rows have little or nothing, so that a table drawn
    /// again and again stays where it is. A first column is not cut to less.
    pub(crate) const fn at_least(self, kept: usize) -> Self {
        Self { kept, ..self }
    }

    /// The same, complete up to this width before gaps and remarks get theirs: for a first column
    /// whose names are useless when cut.
    pub(crate) const fn usually(self, usual: usize) -> Self {
        Self { usual, ..self }
    }

    /// The same, kept up to this width even if other columns have to be left out.
    pub(crate) const fn no_less_than(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// The same, cut at its beginning: for paths that have that in common.
    pub(crate) const fn keeping_end(self) -> Self {
        Self { keeps_end: true, ..self }
    }
}

/// A row: its cells, and remarks beside it or, where there is no room, under it.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    pub(crate) remarks: Vec<String>,
    pub(crate) ink: Ink,
}

impl Row {
    fn texts(&self) -> Vec<&str> {
        self.cells.iter().map(String::as_str).collect()
    }
}

/// Rows under heads.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    columns: Vec<Column<'a>>,
    rows: Vec<Row>,
}

impl<'a> Table<'a> {
    pub(crate) fn new(columns: &[Column<'a>]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, which has a cell a column; there is at least one column.
    pub(crate) fn push(&mut self, row: Row) {
        debug_assert_eq!(row.cells.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Adds a remark to the row added last.
    pub(crate) fn remark(&mut self, remark: String) {
        if let Some(row) = self.rows.last_mut() {
            row.remarks.push(remark);
        }
    }

    /// Its heads and its rows as lines without ink and without remarks.
    pub(crate) fn lines(mut self, page: &Page<'_>) -> ([String; 2], Vec<String>) {
        let layout = self.fit(page);
        let heads = self.heads().map(|line| self.line(&layout, &line));
        let rows = self.rows.iter().map(|row| self.line(&layout, &row.texts())).collect();
        (heads, rows)
    }

    fn fit(&mut self, page: &Page<'_>) -> Layout<'a> {
        let layout = self.layout(page.table_width());
        for row in &mut self.rows {
            let cut = if self.columns[0].keeps_end { elide_front } else { elide };
            row.cells[0] = cut(&row.cells[0], layout.widths[0], page.ellipsis());
        }
        layout
    }

    fn heads(&self) -> [Vec<&'a str>; 2] {
        let heads = self.columns.iter().map(|c| c.head).collect();
        [heads, self.columns.iter().map(|c| c.unit).collect()]
    }

    /// Prints the table.
    pub(crate) fn print(mut self, page: &mut Page<'_>) {
        let layout = self.fit(page);
        for line in self.heads() {
            let line = self.line(&layout, &line);
            if !line.trim().is_empty() {
                page.line(&[(Ink::Dim, &line)]);
            }
        }
        for row in &self.rows {
            let line = self.line(&layout, &row.texts());
            print_row(page, row, &line);
        }
        if !layout.given_up.is_empty() {
            let text = format!("too narrow to show: {} ({HAS_ROOM})", layout.given_up.join(", "));
            page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &text);
        }
    }

    /// Which columns are shown, and how wide.
    fn layout(&self, width: usize) -> Layout<'a> {
        let (mut widths, mut shown) = self.natural();
        let remarks = self.short_remarks();
        let mut given_up = Vec::new();
        loop {
            let others: Vec<usize> = (1..widths.len()).filter(|i| shown[*i]).collect();
            let taken =
                |gap: usize| INDENT + others.iter().map(|i| widths[*i] + gap).sum::<usize>();
            let first = widths[0];
            let least = self.columns[0].least.max(self.columns[0].kept);
            let (usual, least) = (first.min(self.columns[0].usual), first.min(least));
            let tries = [
                (2, first, remarks),
                (2, usual, remarks),
                (1, usual, remarks),
                (2, usual, 0),
                (1, usual, 0),
                (1, least, 0),
            ];
            let fits = tries.iter().find(|(gap, first, more)| taken(*gap) + first + more <= width);
            if let Some((gap, _, remarks)) = fits {
                // The first column keeps the width that it need not give up.
                widths[0] = first.min(width - taken(*gap) - remarks);
                return Layout { widths, shown, gap: *gap, given_up };
            }
            // Of equals the one on the right goes.
            let worth = |i: &usize| (self.columns[*i].worth, widths.len() - i);
            let Some(worst) = others.iter().copied().min_by_key(worth) else {
                widths[0] = width.saturating_sub(INDENT);
                return Layout { widths, shown, gap: 1, given_up };
            };
            shown[worst] = false;
            given_up.extend(Some(self.columns[worst].head).filter(|head| !head.is_empty()));
        }
    }

    /// The natural width of each column, and which columns have a value.
    fn natural(&self) -> (Vec<usize>, Vec<bool>) {
        let heads = self.columns.iter().map(|c| columns(c.head).max(columns(c.unit)).max(c.kept));
        let mut widths: Vec<usize> = heads.collect();
        let mut shown: Vec<bool> = self.columns.iter().map(|c| c.kept > 0).collect();
        shown[0] = true;
        for row in &self.rows {
            for (i, cell) in row.cells.iter().enumerate() {
                widths[i] = widths[i].max(columns(cell));
                shown[i] |= !cell.is_empty();
            }
        }
        (widths, shown)
    }

    /// The width of the remarks that are short enough for a place beside their rows.
    fn short_remarks(&self) -> usize {
        let widths = self.rows.iter().map(|row| columns(&row.remarks.join(", ")));
        widths
            .filter(|width| (1..=SHORT_REMARKS).contains(width))
            .max()
            .map_or(0, |w| w + REMARK_GAP)
    }

    fn line(&self, layout: &Layout<'_>, cells: &[&str]) -> String {
        let mut line = " ".repeat(INDENT);
        for (i, cell) in cells.iter().enumerate().filter(|(i, _)| layout.shown[*i]) {
            if i > 0 {
                line += &" ".repeat(layout.gap);
            }
            let space = " ".repeat(layout.widths[i].saturating_sub(columns(cell)));
            if self.columns[i].left {
                line += cell;
                line += &space;
            } else {
                line += &space;
                line += cell;
            }
        }
        line
    }
}

struct Layout<'a> {
    widths: Vec<usize>,
    shown: Vec<bool>,
    gap: usize,
    /// Heads of the columns there is no room for.
    given_up: Vec<&'a str>,
}

fn print_row(page: &mut Page<'_>, row: &Row, line: &str) {
    let remarks = row.remarks.join(", ");
    if remarks.is_empty() {
        page.line(&[(row.ink, line)]);
        return;
    }
    let room = page.table_width().saturating_sub(columns(line) + REMARK_GAP);
    if columns(&remarks) <= room {
        page.line(&[(row.ink, line), (Ink::Plain, "   "), (Ink::Dim, &remarks)]);
        return;
    }
    page.line(&[(row.ink, line)]);
    let space = " ".repeat(INDENT + 4);
    let room = page.width() - space.len();
    for part in wrap(&remarks, room, room) {
        page.line(&[(Ink::Plain, &space), (Ink::Dim, &part)]);
    }
}

/// A bar of at most `cells` columns for `part` of `whole`, in eighths of a block or in `#`.
pub(crate) fn bar(part: i128, whole: u128, cells: usize, unicode: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if part <= 0 || whole == 0 {
        return String::new();
    }
    let length = (part as f64 / whole as f64).min(1.0) * cells as f64;
    if !unicode {
        return "#".repeat(length.round() as usize);
    }
    let eighths = (length * 8.0).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// Prints how many rows of `all` a table leaves out, their kind, and how to see them.
pub(crate) fn print_hidden(page: &mut Page<'_>, shown: usize, all: usize, what: &str) {
    if shown < all {
        let text = format!("  … {} more{what} (--top {all})", all - shown);
        page.line(&[(Ink::Dim, &text)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;

    fn printed(width: usize) -> String {
        on(&Style { width, ..Style::default() })
    }

    fn on(style: &Style) -> String {
        let mut table = Table::new(&[
            Column::text("call", 9),
            Column::number("calls", "", 8),
            Column::number("wall", "ms", 7),
            Column::number("never", "", 6),
            Column::number("max", "µs", 1),
        ]);
        for (name, remark) in [("read", ""), ("a_rather_long_name", "ENOENT 2 and some more")] {
            table.push(Row {
                cells: vec![name.into(), "8,192".into(), "98.2".into(), "".into(), "1,204".into()],
                remarks: Some(remark.to_string()).filter(|r| !r.is_empty()).into_iter().collect(),
                ink: Ink::Plain,
            });
        }
        let mut page = Page::new(style);
        table.print(&mut page);
        page.finish()
    }

    #[test]
    fn a_table_takes_the_width_that_it_needs_and_text_does_not() {
        let narrow = Style { width: 24, ..Style::default() };
        assert!(on(&narrow).contains("too narrow to show:"), "{}", on(&narrow));
        for table_width in [72, 200] {
            let style = Style { table_width, ..narrow.clone() };
            assert_eq!(on(&style), printed(table_width));
            let mut page = Page::new(&style);
            page.wrapped(&[], Ink::Plain, "a text that is longer than that");
            assert_eq!(page.finish(), "a text that is longer\nthan that\n");
        }
    }

    #[test]
    fn a_table_gives_way_in_order() {
        insta::assert_snapshot!([72, 42, 32, 24].map(printed).join("--\n"));
    }

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(bar(1, 2, 4, true), "██");
        assert_eq!(bar(9, 16, 4, true), "██▎");
        assert_eq!(bar(5, 2, 4, true), "████");
        assert_eq!(bar(-1, 2, 4, true), "");
        assert_eq!(bar(1, 0, 4, true), "");
        assert_eq!(bar(1, 2, 4, false), "##");
    }
}
