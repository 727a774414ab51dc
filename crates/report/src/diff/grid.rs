//! A table of a comparison, for a terminal or a page.

use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet};
use crate::table::{Column, Row, Table};

/// A table.
pub(super) struct Grid {
    pub(super) id: &'static str,
    pub(super) title: String,
    /// What it comes to, in a line.
    pub(super) lead: Option<String>,
    pub(super) columns: &'static [Column<'static>],
    pub(super) rows: Vec<GridRow>,
    /// How many rows there are besides, and how to see them.
    pub(super) more: Option<String>,
}

/// A row, with the remarks beside it.
pub(super) struct GridRow {
    pub(super) cells: Vec<String>,
    pub(super) remarks: Vec<String>,
    pub(super) ink: Ink,
}

impl Grid {
    pub(super) fn print(self, page: &mut Page<'_>) {
        if let Some(lead) = self.lead {
            page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &lead);
        }
        let mut table = Table::new(self.columns);
        for row in self.rows {
            table.push(Row { cells: row.cells, remarks: row.remarks, ink: row.ink });
        }
        table.print(page);
        if let Some(more) = self.more {
            page.line(&[(Ink::Dim, &format!("  … {more}"))]);
        }
    }

    /// With the remarks in a column of their own.
    pub(super) fn into_sheet(self) -> Sheet {
        let mut fields: Vec<Field> = self.columns.iter().map(Column::field).collect();
        fields.push(Field::text("remarks", "remarks"));
        let mut sheet = Sheet::new(self.id, &self.title, fields);
        for row in self.rows {
            let remarks = row.remarks.join(", ");
            sheet.push(row.cells.into_iter().chain([remarks]).map(Cell::text).collect());
        }
        sheet.notes.extend(self.lead.into_iter().chain(self.more));
        sheet.without_empty_columns()
    }
}
