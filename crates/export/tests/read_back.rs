//! The rows of a Parquet file as JSON, by the reader of the parquet crate.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};

/// The rows of a file, each an object by the names of columns.
pub(crate) fn rows(file: &Path) -> Vec<Map<String, Value>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file).unwrap()).unwrap();
    let mut rows = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let (schema, columns) = (batch.schema(), batch.columns());
        rows.extend((0..batch.num_rows()).map(|at| {
            let names = schema.fields().iter().map(|field| field.name().clone());
            names.zip(columns.iter().map(|column| cell(column, at))).collect()
        }));
    }
    rows
}

/// What stands in a row of a column: a map and a struct are objects.
fn cell(column: &ArrayRef, at: usize) -> Value {
    if column.is_null(at) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(at).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(at).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(at).into(),
        DataType::Boolean => column.as_boolean().value(at).into(),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(at);
            (0..items.len()).map(|at| cell(&items, at)).collect()
        }
        DataType::Map(..) => {
            let entries = column.as_map().value(at);
            let (keys, values) = (entries.column(0).as_string::<i32>(), entries.column(1));
            let entry = |at| (keys.value(at).to_owned(), cell(values, at));
            Value::Object((0..entries.len()).map(entry).collect())
        }
        DataType::Struct(fields) => {
            let parts = column.as_struct().columns();
            let names = fields.iter().map(|field| field.name().clone());
            Value::Object(names.zip(parts.iter().map(|part| cell(part, at))).collect())
        }
        other => panic!("no column has the type {other}"),
    }
}

/// The files below a directory, by their paths in it, in order.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path.strip_prefix(folder).unwrap().to_owned()),
            }
        }
    }
    files.sort();
    files
}
