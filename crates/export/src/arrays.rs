//! The Arrow types of columns, and the arrays of their cells.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, Float64Builder, Int64Builder, ListBuilder, MapBuilder, MapFieldNames,
    StringBuilder,
};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields};
use iotomy_record::{QUANTILES, Times};

use crate::column::{Cell, Type, signed};

/// The names of quantiles: as in the record, but without the dot, which SQL would take for one between names.
fn quantile(name: &str) -> String {
    name.replace('.', "_")
}

fn field(name: &str, of: DataType) -> Field {
    Field::new(name, of, true)
}

fn element(of: DataType) -> Arc<Field> {
    Arc::new(field("element", of))
}

fn map_of(value: DataType) -> DataType {
    let entry = [Field::new("key", DataType::Utf8, false), field("value", value)];
    let entry = Field::new("key_value", DataType::Struct(entry.into_iter().collect()), false);
    DataType::Map(Arc::new(entry), false)
}

fn histogram_fields() -> Fields {
    let buckets = DataType::List(element(DataType::Int64));
    [field("zero", DataType::Int64), field("buckets", buckets)].into_iter().collect()
}

fn quantile_fields() -> Fields {
    let names = QUANTILES.iter().map(|(name, _)| quantile(name)).chain(["max".to_owned()]);
    names.map(|name| field(&name, DataType::Int64)).collect()
}

/// The type of a column.
pub(crate) fn data_type(of: Type) -> DataType {
    match of {
        Type::Text => DataType::Utf8,
        Type::Integer => DataType::Int64,
        Type::Float => DataType::Float64,
        Type::Bool => DataType::Boolean,
        Type::Texts => DataType::List(element(DataType::Utf8)),
        Type::Integers => DataType::List(element(DataType::Int64)),
        Type::Floats => DataType::List(element(DataType::Float64)),
        Type::TextByName => map_of(DataType::Utf8),
        Type::IntegerByName => map_of(DataType::Int64),
        Type::FloatByName => map_of(DataType::Float64),
        Type::Histogram => DataType::Struct(histogram_fields()),
        Type::Quantiles => DataType::Struct(quantile_fields()),
    }
}

/// Takes the content of cells of one type; a cell of another is NULL.
macro_rules! contents {
    ($cells:expr, $of:ident) => {
        $cells.map(|cell| if let Cell::$of(content) = cell { content } else { None })
    };
    ($cells:expr, $of:ident whole) => {
        $cells.map(|cell| if let Cell::$of(content) = cell { Some(content) } else { None })
    };
}

/// The array of the cells of a column.
pub(crate) fn array<'r>(of: Type, cells: impl Iterator<Item = Cell<'r>>) -> ArrayRef {
    match of {
        Type::Text => Arc::new(contents!(cells, Text).collect::<StringArray>()),
        Type::Integer => Arc::new(contents!(cells, Integer).collect::<Int64Array>()),
        Type::Float => Arc::new(contents!(cells, Float).collect::<Float64Array>()),
        Type::Bool => Arc::new(contents!(cells, Bool).collect::<BooleanArray>()),
        Type::Texts => {
            let mut lists =
                ListBuilder::new(StringBuilder::new()).with_field(element(DataType::Utf8));
            for texts in contents!(cells, Texts) {
                lists.append_option(texts.map(|texts| texts.iter().map(Some)));
            }
            Arc::new(lists.finish())
        }
        Type::Integers => {
            let mut lists =
                ListBuilder::new(Int64Builder::new()).with_field(element(DataType::Int64));
            for bits in contents!(cells, Bits) {
                let integers = bits.map(|bits| bits.iter().map(|one| Some(one.cast_signed())));
                lists.append_option(integers);
            }
            Arc::new(lists.finish())
        }
        Type::Floats => {
            let mut lists =
                ListBuilder::new(Float64Builder::new()).with_field(element(DataType::Float64));
            for floats in contents!(cells, Floats) {
                lists.append_option(floats.map(|floats| floats.iter().copied().map(Some)));
            }
            Arc::new(lists.finish())
        }
        Type::TextByName => maps(
            StringBuilder::new(),
            contents!(cells, TextByName whole),
            |map| map,
            |to, text| to.append_value(text),
        ),
        Type::IntegerByName => maps(
            Int64Builder::new(),
            contents!(cells, IntegerByName whole),
            |map| map.iter().map(|(name, count)| (name.as_str(), *count)).collect(),
            |to, count| to.append_value(signed(count)),
        ),
        Type::FloatByName => maps(
            Float64Builder::new(),
            contents!(cells, FloatByName whole),
            |map| map.iter().map(|(name, float)| (name.as_str(), *float)).collect(),
            |to, float| to.append_value(float),
        ),
        Type::Histogram => {
            let histograms: Vec<_> = contents!(cells, Histogram).collect();
            let zeroes = histograms.iter().map(|one| Some(signed((*one)?.zero)));
            let mut buckets =
                ListBuilder::new(Int64Builder::new()).with_field(element(DataType::Int64));
            for one in &histograms {
                let counts = one.map(|one| {
                    let used = one.buckets.iter().rposition(|count| *count > 0);
                    let used = used.map_or(0, |last| last + 1);
                    one.buckets.iter().take(used).map(|count| Some(signed(*count)))
                });
                buckets.append_option(counts);
            }
            let parts: Vec<ArrayRef> =
                vec![Arc::new(zeroes.collect::<Int64Array>()), Arc::new(buckets.finish())];
            let known = histograms.iter().map(Option::is_some).collect();
            Arc::new(StructArray::new(histogram_fields(), parts, Some(known)))
        }
        Type::Quantiles => {
            let times: Vec<Option<&Times>> = contents!(cells, Quantiles).collect();
            let column = |of: &dyn Fn(&Times) -> u64| -> ArrayRef {
                Arc::new(
                    times.iter().map(|one| one.map(|one| signed(of(one)))).collect::<Int64Array>(),
                )
            };
            let quantiles = QUANTILES.iter().map(|(_, share)| column(&|one| one.quantile(*share)));
            let parts = quantiles.chain([column(&|one| one.max_ns)]).collect();
            let known = times.iter().map(Option::is_some).collect();
            Arc::new(StructArray::new(quantile_fields(), parts, Some(known)))
        }
    }
}

/// The array of maps from texts.
fn maps<'r, M, V, B: ArrayBuilder>(
    values: B,
    each: impl Iterator<Item = Option<M>>,
    entries: impl Fn(M) -> Vec<(&'r str, V)>,
    append: impl Fn(&mut B, V),
) -> ArrayRef {
    let names = MapFieldNames {
        entry: "key_value".to_owned(),
        key: "key".to_owned(),
        value: "value".to_owned(),
    };
    let mut maps = MapBuilder::new(Some(names), StringBuilder::new(), values);
    for map in each {
        let is_known = map.is_some();
        for (name, value) in map.map(&entries).unwrap_or_default() {
            maps.keys().append_value(name);
            append(maps.values(), value);
        }
        // As many names as values have been appended.
        maps.append(is_known).expect("every name of a map has a value");
    }
    Arc::new(maps.finish())
}
