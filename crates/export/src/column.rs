//! The columns of tables: their types, and what of a row stands in them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use iotomy_record::statistic::{self, Kind, Statistics};
use iotomy_record::{Exit, Histogram, Times};

/// The type of a column. Every column may be NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A text.
    Text,
    /// An integer of 64 bits.
    Integer,
    /// A float of 64 bits.
    Float,
    /// True or false.
    Bool,
    /// Texts in order.
    Texts,
    /// Integers of 64 bits in order.
    Integers,
    /// Floats in order.
    Floats,
    /// Texts by name.
    TextByName,
    /// Integers by name.
    IntegerByName,
    /// Floats by name.
    FloatByName,
    /// A distribution by powers of two.
    Histogram,
    /// The quantiles of a distribution of times.
    Quantiles,
}

impl Type {
    /// As SQL has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "bigint",
            Self::Float => "double",
            Self::Bool => "boolean",
            Self::Texts => "list of text",
            Self::Integers => "list of bigint",
            Self::Floats => "list of double",
            Self::TextByName => "map of text to text",
            Self::IntegerByName => "map of text to bigint",
            Self::FloatByName => "map of text to double",
            Self::Histogram => "histogram",
            Self::Quantiles => "quantiles",
        }
    }
}

/// What stands in a column, of its type; `None` is NULL.
pub(crate) enum Cell<'r> {
    Text(Option<Cow<'r, str>>),
    Integer(Option<i64>),
    Float(Option<f64>),
    Bool(Option<bool>),
    Texts(Option<&'r [String]>),
    Bits(Option<&'r [u64]>),
    Floats(Option<&'r [f64]>),
    TextByName(Vec<(&'r str, String)>),
    IntegerByName(&'r BTreeMap<String, u64>),
    FloatByName(&'r BTreeMap<String, f64>),
    Histogram(Option<&'r Histogram>),
    Quantiles(Option<&'r Times>),
}

/// The declaration of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnFacts {
    /// Its name: the record's key.
    pub name: Cow<'static, str>,
    /// Its type.
    pub of: Type,
    /// What stands in it, in a line.
    pub meaning: String,
}

/// A column of rows `R`.
pub(crate) struct Column<'r, R> {
    pub(crate) facts: ColumnFacts,
    pub(crate) cell: Box<dyn Fn(R) -> Cell<'r> + 'r>,
}

impl<'r, R: Copy + 'r> Column<'r, R> {
    fn new(
        name: impl Into<Cow<'static, str>>,
        of: Type,
        meaning: &str,
        cell: impl Fn(R) -> Cell<'r> + 'r,
    ) -> Self {
        let facts = ColumnFacts { name: name.into(), of, meaning: meaning.trim().to_owned() };
        Self { facts, cell: Box::new(cell) }
    }

    /// A text.
    pub(crate) fn text(name: &'static str, meaning: &str, of: impl Fn(R) -> &'r str + 'r) -> Self {
        Self::new(name, Type::Text, meaning, move |row| Cell::Text(Some(of(row).into())))
    }

    /// A text that may be absent.
    pub(crate) fn some_text(
        name: &'static str,
        meaning: &str,
        of: impl Fn(R) -> Option<Cow<'r, str>> + 'r,
    ) -> Self {
        Self::new(name, Type::Text, meaning, move |row| Cell::Text(of(row)))
    }

    /// An integer.
    pub(crate) fn integer(name: &'static str, meaning: &str, of: impl Fn(R) -> u64 + 'r) -> Self {
        Self::some_integer(name, meaning, move |row| Some(of(row)))
    }

    /// An integer that may be absent.
    pub(crate) fn some_integer(
        name: &'static str,
        meaning: &str,
        of: impl Fn(R) -> Option<u64> + 'r,
    ) -> Self {
        Self::new(name, Type::Integer, meaning, move |row| Cell::Integer(of(row).map(signed)))
    }

    /// An integer that may be negative.
    pub(crate) fn signed(name: &'static str, meaning: &str, of: impl Fn(R) -> i64 + 'r) -> Self {
        Self::new(name, Type::Integer, meaning, move |row| Cell::Integer(Some(of(row))))
    }

    /// A float that may be absent.
    pub(crate) fn float(
        name: &'static str,
        meaning: &str,
        of: impl Fn(R) -> Option<f64> + 'r,
    ) -> Self {
        Self::new(name, Type::Float, meaning, move |row| Cell::Float(of(row)))
    }

    /// True or false.
    pub(crate) fn bool(
        name: &'static str,
        meaning: &str,
        of: impl Fn(R) -> Option<bool> + 'r,
    ) -> Self {
        Self::new(name, Type::Bool, meaning, move |row| Cell::Bool(of(row)))
    }

    /// Texts in order.
    pub(crate) fn texts(
        name: &'static str,
        meaning: &str,
        of: impl Fn(R) -> Option<&'r [String]> + 'r,
    ) -> Self {
        Self::new(name, Type::Texts, meaning, move |row| Cell::Texts(of(row)))
    }

    /// Registers in order, their 64 bits as integers with a sign.
    pub(crate) fn bits(
        name: &'static str,
        meaning: &str,
        of: impl Fn(R) -> Option<&'r [u64]> + 'r,
    ) -> Self {
        Self::new(name, Type::Integers, meaning, move |row| Cell::Bits(of(row)))
    }

    /// Floats in order.
    pub(crate) fn floats(
        name: &'static str,
        meaning: &str,
        of: impl Fn(R) -> Option<&'r [f64]> + 'r,
    ) -> Self {
        Self::new(name, Type::Floats, meaning, move |row| Cell::Floats(of(row)))
    }

    /// Texts by name.
    pub(crate) fn text_by_name(
        name: &'static str,
        meaning: &str,
        of: impl Fn(R) -> Vec<(&'r str, String)> + 'r,
    ) -> Self {
        Self::new(name, Type::TextByName, meaning, move |row| Cell::TextByName(of(row)))
    }

    /// Integers by name.
    pub(crate) fn integer_by_name(
        name: &'static str,
        meaning: &str,
        of: impl Fn(R) -> &'r BTreeMap<String, u64> + 'r,
    ) -> Self {
        Self::new(name, Type::IntegerByName, meaning, move |row| Cell::IntegerByName(of(row)))
    }

    /// The quantiles of times; those of no times are absent.
    pub(crate) fn quantiles(
        name: &'static str,
        meaning: &str,
        of: impl Fn(R) -> Option<&'r Times> + 'r,
    ) -> Self {
        Self::new(name, Type::Quantiles, meaning, move |row| {
            Cell::Quantiles(of(row).filter(|times| !times.is_empty()))
        })
    }

    /// Floats by name.
    pub(crate) fn float_by_name(
        name: &'static str,
        meaning: &str,
        of: impl Fn(R) -> &'r BTreeMap<String, f64> + 'r,
    ) -> Self {
        Self::new(name, Type::FloatByName, meaning, move |row| Cell::FloatByName(of(row)))
    }
}

/// The name of a number of `R`, its meaning, and how to reach it.
pub(crate) type Figure<R> = (&'static str, &'static str, fn(&R) -> Option<u64>);

/// The columns of every statistic of `S`, which a row holds.
pub(crate) fn statistics<'r, S: Statistics, R: Copy + 'r>(
    of: fn(R) -> &'r S,
) -> Vec<Column<'r, R>> {
    statistics_behind("", move |row| Some(of(row)))
}

/// The same of rows that may have no `S`, their names behind `prefix`.
pub(crate) fn statistics_behind<'r, S: Statistics, R: Copy + 'r>(
    prefix: &str,
    of: impl Fn(R) -> Option<&'r S> + Copy + 'r,
) -> Vec<Column<'r, R>> {
    let column = |one: &'static statistic::Statistic<S>| {
        let kind = match one.kind {
            Kind::Number | Kind::Signed => Type::Integer,
            Kind::Counts => Type::IntegerByName,
            Kind::Histogram => Type::Histogram,
            Kind::Times => Type::Quantiles,
            Kind::Row => return None,
        };
        let cell = one.field.cell;
        let name = match prefix {
            "" => Cow::Borrowed(one.name),
            _ => Cow::Owned(format!("{prefix}{}", one.name)),
        };
        let of_row = move |row| match of(row) {
            Some(part) => from_statistic(cell(part)),
            None => Cell::Integer(None),
        };
        Some(Column::new(name, kind, one.meaning, of_row))
    };
    S::statistics().filter_map(column).collect()
}

fn from_statistic(cell: statistic::Cell<'_>) -> Cell<'_> {
    match cell {
        statistic::Cell::Number(number) => Cell::Integer(number.map(signed)),
        statistic::Cell::Signed(number) => Cell::Integer(Some(number)),
        statistic::Cell::Counts(counts) => Cell::IntegerByName(counts),
        statistic::Cell::Histogram(histogram) => Cell::Histogram(histogram),
        statistic::Cell::Times(times) => Cell::Quantiles(times.filter(|times| !times.is_empty())),
        statistic::Cell::Row => Cell::Integer(None),
    }
}

/// The columns `exit_code` and `exit_signal`.
pub(crate) fn exit<'r, R: Copy + 'r>(of: fn(R) -> Option<Exit>) -> [Column<'r, R>; 2] {
    let number = move |row: R, is_signal: bool| {
        let number = match of(row)? {
            Exit::Code(code) => (!is_signal).then_some(code),
            Exit::Signal(signal) => is_signal.then_some(signal),
        };
        number.map(i64::from)
    };
    let column = |name, meaning, is_signal| {
        let cell = move |row| Cell::Integer(number(row, is_signal));
        Column::new(name, Type::Integer, meaning, cell)
    };
    [
        column("exit_code", "The status with which the command exited.", false),
        column("exit_signal", "The number of the signal that ended it.", true),
    ]
}

/// Integers of data sets have a sign: not every reader has others.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A value of an enumeration, as the record has it.
pub(crate) fn word<T: serde::Serialize>(value: &T) -> Option<Cow<'static, str>> {
    Some(serde_json::to_value(value).ok()?.as_str()?.to_owned().into())
}

/// A value as JSON.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> Option<Cow<'static, str>> {
    serde_json::to_string(value).ok().map(Into::into)
}
