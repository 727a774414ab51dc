//! A table before it has a format: the text of each cell, and the value behind it.
//!
//! HTML and Markdown show the text, in one unit a column; sorting and CSV take the value, in the
//! record's own unit.

use crate::numbers::{bytes, thousands};
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table, print_hidden};

/// The largest number of rows of a table in a page: more are not read, and cost the browser time.
pub(crate) const MOST_ROWS: usize = 400;

/// The content of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Text,
    /// Figures.
    Number,
}

/// A column.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// Its name in CSV, with the record's unit.
    pub(crate) key: String,
    pub(crate) head: String,
    /// The unit of the text.
    pub(crate) unit: String,
    pub(crate) align: Align,
    /// Of two columns on a narrow terminal, the one of less worth disappears first. One of no worth is only in pages.
    pub(crate) worth: u8,
    /// The width that it keeps on a terminal.
    kept: usize,
    /// What else holds for the column there.
    on_terminal: fn(Column<'_>) -> Column<'_>,
}

/// The column of words that a terminal shows beside or under the rows.
const REMARKS: &str = "remarks";

impl Field {
    pub(crate) fn text(key: &str, head: &str) -> Self {
        let (key, head, unit) = (key.into(), head.into(), String::new());
        Self {
            key,
            head,
            unit,
            align: Align::Text,
            worth: 0,
            kept: 0,
            on_terminal: |column| column,
        }
    }

    pub(crate) fn number(key: &str, head: &str, unit: &str) -> Self {
        Self { unit: unit.into(), align: Align::Number, ..Self::text(key, head) }
    }

    pub(crate) fn remarks() -> Self {
        Self::text(REMARKS, REMARKS)
    }

    /// Whether it has words that are of single rows.
    pub(crate) fn is_words(&self) -> bool {
        self.align == Align::Text && self.key != REMARKS
    }

    /// The same on terminals.
    pub(crate) fn worth(self, worth: u8) -> Self {
        Self { worth, ..self }
    }

    /// The same, at least so wide on a terminal, whatever is in it.
    pub(crate) fn at_least(self, kept: usize) -> Self {
        Self { kept, ..self }
    }

    /// The same, with this changed on a terminal.
    pub(crate) fn on_terminal(self, on_terminal: fn(Column<'_>) -> Column<'_>) -> Self {
        Self { on_terminal, ..self }
    }

    /// The column of a terminal, if it is in one.
    fn column(&self) -> Option<Column<'_>> {
        let column = match self.align {
            Align::Text => Column::text(&self.head, self.worth),
            Align::Number => Column::number(&self.head, &self.unit, self.worth),
        };
        (self.worth > 0).then(|| (self.on_terminal)(column.at_least(self.kept)))
    }
}

impl Column<'_> {
    /// The same in a page.
    pub(crate) fn field(&self) -> Field {
        match self.left {
            true => Field::text(self.head, self.head),
            false => Field::number(self.head, self.head, self.unit),
        }
    }
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) value: Value,
}

/// The value behind a text.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum Value {
    /// The text is all there is.
    #[default]
    Text,
    /// Nothing is known.
    Absent,
    /// An exact number.
    Whole(i128),
    /// A measured one.
    Real(f64),
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: Value::Text }
    }

    pub(crate) fn absent() -> Self {
        Self { text: String::new(), value: Value::Absent }
    }

    pub(crate) fn whole(value: impl TryInto<i128>, text: impl Into<String>) -> Self {
        let value = value.try_into().unwrap_or(i128::MAX);
        Self { text: text.into(), value: Value::Whole(value) }
    }

    pub(crate) fn real(value: f64, text: impl Into<String>) -> Self {
        Self { text: text.into(), value: Value::Real(value) }
    }

    /// A count.
    pub(crate) fn count(n: impl Into<u128>) -> Self {
        let n = n.into();
        Self::whole(n, thousands(n))
    }

    /// A number of bytes.
    pub(crate) fn size(n: impl Into<u128>) -> Self {
        let n = n.into();
        Self::whole(n, bytes(n))
    }

    /// The same, with nothing to be seen where it is 0.
    pub(crate) fn if_any(self) -> Self {
        match self.value {
            Value::Whole(0) => Self { text: String::new(), ..self },
            _ => self,
        }
    }

    /// The value, if it is known.
    pub(crate) fn from_option<T>(known: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        known.map_or_else(Self::absent, cell)
    }

    /// The two ends of an interval, if there is one.
    pub(crate) fn ends(interval: Option<[f64; 2]>, cell: impl Fn(f64) -> Self) -> [Self; 2] {
        interval.map_or([Self::absent(), Self::absent()], |ends| ends.map(cell))
    }

    /// The value for a machine; of a text, the text.
    pub(crate) fn raw(&self) -> String {
        match self.value {
            Value::Text => self.text.clone(),
            Value::Absent => String::new(),
            Value::Whole(value) => value.to_string(),
            Value::Real(value) => value.to_string(),
        }
    }
}

/// A table.
#[derive(Debug, Clone)]
pub(crate) struct Sheet {
    /// Its name among the parts of the record.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// The row that sums the others up.
    pub(crate) total: Option<Vec<Cell>>,
    pub(crate) notes: Vec<String>,
    /// Rows the record has and the table has not.
    pub(crate) hidden: usize,
    /// Whether it is shown only on request.
    pub(crate) folded: bool,
}

impl Sheet {
    pub(crate) fn new(id: &str, title: &str, fields: Vec<Field>) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            fields,
            rows: Vec::new(),
            total: None,
            notes: Vec::new(),
            hidden: 0,
            folded: false,
        }
    }

    /// Adds a row, which has a cell a field.
    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.fields.len());
        self.rows.push(row);
    }

    /// Prints it on a terminal, and the number of rows that it has not, whose kind is `what`.
    pub(crate) fn print(self, page: &mut Page<'_>, what: &str) {
        let (shown, all) = (self.rows.len(), self.rows.len() + self.hidden);
        self.print_inked(page, |_| Ink::Plain);
        print_hidden(page, shown, all, what);
    }

    /// Prints its rows, each in its ink.
    pub(crate) fn print_inked(self, page: &mut Page<'_>, ink: impl Fn(usize) -> Ink) {
        let columns: Vec<Option<Column<'_>>> = self.fields.iter().map(Field::column).collect();
        let mut table = Table::new(&columns.iter().copied().flatten().collect::<Vec<_>>());
        let remarks = self.fields.iter().position(|field| field.key == REMARKS);
        let texts = |row: Vec<Cell>| {
            let shown = row.into_iter().zip(&columns).filter(|(_, column)| column.is_some());
            shown.map(|(cell, _)| cell.text).collect()
        };
        for (at, row) in self.rows.into_iter().enumerate() {
            let remarks = remarks.map(|at| row[at].text.clone()).filter(|text| !text.is_empty());
            let remarks = remarks.into_iter().collect();
            table.push(Row { cells: texts(row), remarks, ink: ink(at) });
        }
        if let Some(total) = self.total {
            table.push(Row { cells: texts(total), ink: Ink::Bold, ..Row::default() });
        }
        table.print(page);
    }

    /// Takes off the columns in which no row has anything, but never the first.
    pub(crate) fn without_empty_columns(mut self) -> Self {
        let has = |at: usize| at == 0 || self.rows.iter().any(|row| !row[at].text.is_empty());
        let kept: Vec<bool> = (0..self.fields.len()).map(has).collect();
        let keep = |row: &mut Vec<Cell>| {
            let mut at = 0;
            row.retain(|_| {
                at += 1;
                kept[at - 1]
            });
        };
        self.rows.iter_mut().for_each(keep);
        self.total.iter_mut().for_each(keep);
        let mut at = 0;
        self.fields.retain(|_| {
            at += 1;
            kept[at - 1]
        });
        self
    }
}

/// Printable text of a record at the width of a page.
pub(crate) fn wide_style() -> crate::Style {
    crate::Style { width: 400, ..crate::Style::default() }
}

/// The class of an answer or a finding.
pub(crate) fn tone(ink: Ink) -> &'static str {
    match ink {
        Ink::Red => "bad",
        Ink::Yellow => "doubt",
        Ink::Green => "good",
        Ink::Plain | Ink::Bold | Ink::Dim => "plain",
    }
}

/// Columns a name takes at most on a page.
const NAME: usize = 300;

/// A name of the record, safe to show.
pub(crate) fn name(page: &Page<'_>, text: &str) -> String {
    page.name(text, NAME)
}
