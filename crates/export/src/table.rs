//! What a table is: its columns, and its rows in a record.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};

use crate::arrays::{array, data_type};
use crate::column::{Column, ColumnFacts};
use crate::exported::Exported;

/// Rows that are turned into arrays at once.
const ROWS: usize = 8192;

/// A table of a data set.
pub struct Table {
    /// Its name, and its directory.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// Its columns, in order, without those of the directories.
    pub columns: fn() -> Vec<ColumnFacts>,
    /// Hands on the rows of a record, in batches; without rows, none.
    pub(crate) batches: fn(&Exported, &mut Take<'_>) -> Result<(), ArrowError>,
}

/// Takes a batch.
pub(crate) type Take<'t> = dyn FnMut(&RecordBatch) -> Result<(), ArrowError> + 't;

/// The declaration of a table.
pub(crate) trait Rows: 'static {
    /// Its name.
    const NAME: &'static str;
    /// What a row is.
    const ROW: &'static str;
    /// A row in a record.
    type Row<'r>: Copy;

    /// The columns, behind those of every table.
    fn columns<'r>(of: &'r Exported) -> Vec<Column<'r, Self::Row<'r>>>;

    /// The rows.
    fn rows(of: &Exported) -> Vec<Self::Row<'_>>;
}

impl Table {
    pub(crate) const fn of<T: Rows>() -> Self {
        Self { name: T::NAME, row: T::ROW, columns: facts::<T>, batches: batches::<T> }
    }

    /// The schema of its files.
    pub(crate) fn schema(&self) -> SchemaRef {
        schema_of(&(self.columns)())
    }
}

fn schema_of(columns: &[ColumnFacts]) -> SchemaRef {
    let fields = columns.iter().map(|one| Field::new(&*one.name, data_type(one.of), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns that every table begins with.
fn common<'r, R: Copy + 'r>(of: &'r Exported) -> [Column<'r, R>; 4] {
    let machine = of.record().machine();
    [
        Column::text("run", "The record: the SHA-256 of its file.", |_| &of.run),
        Column::text("started", "When it began, RFC 3339.", |_| of.record().started()),
        Column::text("kernel", "Kernel name, release and architecture.", |_| &machine.kernel),
        Column::text("cpu", "Processor model.", |_| &machine.cpu),
    ]
}

fn columns<T: Rows>(of: &Exported) -> Vec<Column<'_, T::Row<'_>>> {
    common(of).into_iter().chain(T::columns(of)).collect()
}

fn facts<T: Rows>() -> Vec<ColumnFacts> {
    columns::<T>(&Exported::empty()).into_iter().map(|column| column.facts).collect()
}

fn batches<T: Rows>(of: &Exported, take: &mut Take<'_>) -> Result<(), ArrowError> {
    let columns = columns::<T>(of);
    let facts: Vec<ColumnFacts> = columns.iter().map(|column| column.facts.clone()).collect();
    let schema = schema_of(&facts);
    for rows in T::rows(of).chunks(ROWS) {
        let arrays = columns.iter().map(|column| column_of(column, rows)).collect();
        take(&RecordBatch::try_new(Arc::clone(&schema), arrays)?)?;
    }
    Ok(())
}

fn column_of<'r, R: Copy>(column: &Column<'r, R>, rows: &[R]) -> ArrayRef {
    array(column.facts.of, rows.iter().map(|row| (column.cell)(*row)))
}
