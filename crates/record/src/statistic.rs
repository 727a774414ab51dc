//! What a number of a row is, declared once: behind its field.
//!
//! [`statistics!`](crate::statistics) takes the struct of a row. Behind a field stands a [`Shape`]: how rows are put
//! together, the unit and, for a figure that tables show, its column. From that follow the sums over rows
//! ([`add`]), the rows of intervals ([`since`]), the columns of the report, of its pages and of the live view, the
//! measures of comparisons, the keys to sort by, the records of property tests, and the list in docs/record.md.

use std::collections::BTreeMap;

use crate::growth::more;
use crate::{Histogram, TcpFigures, Times};

/// A field of a row that counts something.
pub struct Statistic<R: 'static> {
    /// Its name in the record.
    pub name: &'static str,
    /// What it is: the documentation of the field.
    pub meaning: &'static str,
    /// What holds for it in every row.
    pub shape: Shape,
    /// How to reach it in a row.
    pub field: Field<R>,
}

/// How to reach a field of a row.
pub struct Field<R: 'static> {
    /// The number in it, if it has one and that is known.
    pub number: fn(&R) -> Option<u64>,
    /// Makes it this number; of a distribution, nothing.
    pub set: fn(&mut R, u64),
    /// Adds that of another row.
    pub join: fn(&mut R, &R, Joins),
    /// Makes that of the last row what the first has beyond the most seen, which the second has.
    pub since: fn(&R, &mut R, &mut R, Joins),
}

/// What holds for a statistic in every row.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// How rows are put together.
    pub joins: Joins,
    /// What it is counted in.
    pub unit: Unit,
    /// The column that shows it, where one does.
    pub column: Option<Column>,
    /// Whether it is a measure of comparisons: a sum that has a column is.
    pub compared: bool,
}

/// How two rows make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    /// By addition. An interval has what came in it.
    Sum,
    /// By addition. An interval has what there is at its end.
    Gauge,
    /// The larger one stays. What an interval has, its table decides.
    Most,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Events.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds; tables show milliseconds.
    Time,
}

/// A column of tables.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its head.
    pub head: &'static str,
    /// What stands under the head, where that is not the unit.
    pub under: Option<&'static str>,
    /// The key that sorts by it.
    pub key: &'static str,
    /// Of two columns in a narrow table, the one of less worth disappears first. One of no worth is only in pages.
    pub worth: u8,
    /// Whether 0 is left blank.
    pub blank: bool,
    /// The worth and the width of its rate in the live view, or of the number of the moment, if it has it.
    pub live: Option<(u8, usize)>,
    /// The same of the sum since the beginning.
    pub in_all: Option<(u8, usize)>,
}

/// The shape of a sum; of a distribution, too.
pub const fn sum(unit: Unit) -> Shape {
    Shape { joins: Joins::Sum, unit, column: None, compared: false }
}

/// The shape of a number of the moment.
pub const fn gauge(unit: Unit) -> Shape {
    Shape { joins: Joins::Gauge, unit, column: None, compared: false }
}

/// The shape of a maximum.
pub const fn most(unit: Unit) -> Shape {
    Shape { joins: Joins::Most, unit, column: None, compared: false }
}

impl Shape {
    /// Shown in a column of this head and worth.
    pub const fn column(self, head: &'static str, worth: u8) -> Self {
        let (key, under, blank) = (head, None, false);
        let column = Column { head, under, key, worth, blank, live: None, in_all: None };
        Self { column: Some(column), compared: matches!(self.joins, Joins::Sum), ..self }
    }

    /// A measure of comparisons without a column.
    pub const fn compared(self) -> Self {
        Self { compared: true, ..self }
    }

    /// With this under the head.
    pub const fn under(mut self, under: &'static str) -> Self {
        if let Some(column) = &mut self.column {
            column.under = Some(under);
        }
        self
    }

    /// Sorted by with this key, where that is not the head.
    pub const fn key(mut self, key: &'static str) -> Self {
        if let Some(column) = &mut self.column {
            column.key = key;
        }
        self
    }

    /// In the live view, too: its worth and width there.
    pub const fn live(mut self, worth: u8, width: usize) -> Self {
        if let Some(column) = &mut self.column {
            column.live = Some((worth, width));
        }
        self
    }

    /// There with its sum since the beginning, too.
    pub const fn in_all(mut self, worth: u8, width: usize) -> Self {
        if let Some(column) = &mut self.column {
            column.in_all = Some((worth, width));
        }
        self
    }

    /// Where it is 0, its column is blank.
    pub const fn blank(mut self) -> Self {
        if let Some(column) = &mut self.column {
            column.blank = true;
        }
        self
    }
}

/// A row that has statistics.
pub trait Statistics: Sized + 'static {
    /// The statistic that each field is, if it is one.
    const FIELDS: &'static [Option<Statistic<Self>>];

    /// All of them, in the order of the fields.
    fn statistics() -> impl Iterator<Item = &'static Statistic<Self>> {
        Self::FIELDS.iter().flatten()
    }

    /// Those that tables show, with their columns, in the order of these.
    fn shown() -> impl Iterator<Item = (&'static Statistic<Self>, Column)> {
        Self::statistics().filter_map(|statistic| Some((statistic, statistic.shape.column?)))
    }

    /// The measures of comparisons.
    fn compared() -> impl Iterator<Item = &'static Statistic<Self>> {
        Self::statistics().filter(|statistic| statistic.shape.compared)
    }

    /// The one of this name.
    fn statistic(name: &str) -> Option<&'static Statistic<Self>> {
        Self::statistics().find(|statistic| statistic.name == name)
    }
}

/// Adds every statistic of `one`. The keys of the row stay.
pub fn add<R: Statistics>(to: &mut R, one: &R) {
    for statistic in R::statistics() {
        (statistic.field.join)(to, one, statistic.shape.joins);
    }
}

/// Adds every number of `one`, and no distribution.
pub fn add_numbers<R: Statistics>(to: &mut R, one: &R) {
    for statistic in R::statistics() {
        if let Some(number) = (statistic.field.number)(one) {
            let mut sum = (statistic.field.number)(to).unwrap_or(0);
            sum.join(&number, statistic.shape.joins);
            (statistic.field.set)(to, sum);
        }
    }
}

/// The sum of rows, without keys.
pub fn total<'r, R: Statistics + Default>(rows: impl IntoIterator<Item = &'r R>) -> R {
    let mut total = R::default();
    rows.into_iter().for_each(|row| add(&mut total, row));
    total
}

/// The numbers that `now` has beyond the most `seen`, in a row without keys; maxima and distributions are left to
/// the caller.
pub fn since<R: Statistics + Default>(now: &R, seen: &mut R) -> R {
    let mut row = R::default();
    for statistic in R::statistics() {
        (statistic.field.since)(now, seen, &mut row, statistic.shape.joins);
    }
    row
}

/// Gives a row the numbers of another.
pub fn set<R: Statistics>(row: &mut R, of: &R) {
    for statistic in R::statistics() {
        if let Some(number) = (statistic.field.number)(of) {
            (statistic.field.set)(row, number);
        }
    }
}

/// Whether anything came in the interval of a row.
pub fn is_used<R: Statistics>(row: &R) -> bool {
    let mut sums = R::statistics().filter(|one| one.shape.joins == Joins::Sum);
    sums.any(|sum| (sum.field.number)(row).is_some_and(|number| number > 0))
}

/// What may stand in a field.
pub trait Value {
    /// The number, if it is one and known; of counts by name, their sum.
    fn number(&self) -> Option<u64> {
        None
    }

    /// Makes it this number.
    fn set(&mut self, _number: u64) {}

    /// Adds another.
    fn join(&mut self, other: &Self, joins: Joins);

    /// Makes `row` what this has beyond the most seen; only of numbers.
    fn since(&self, _seen: &mut Self, _row: &mut Self, _joins: Joins) {}
}

impl Value for u64 {
    fn number(&self) -> Option<u64> {
        Some(*self)
    }

    fn set(&mut self, number: u64) {
        *self = number;
    }

    fn join(&mut self, other: &Self, joins: Joins) {
        *self = match joins {
            Joins::Sum | Joins::Gauge => self.saturating_add(*other),
            Joins::Most => (*self).max(*other),
        };
    }

    fn since(&self, seen: &mut Self, row: &mut Self, joins: Joins) {
        match joins {
            Joins::Sum => *row = more(*self, seen),
            Joins::Gauge => *row = *self,
            Joins::Most => {}
        }
    }
}

impl Value for u32 {
    fn number(&self) -> Option<u64> {
        Some((*self).into())
    }

    fn set(&mut self, number: u64) {
        *self = u32::try_from(number).unwrap_or(u32::MAX);
    }

    fn join(&mut self, other: &Self, joins: Joins) {
        let mut sum = u64::from(*self);
        sum.join(&(*other).into(), joins);
        self.set(sum);
    }

    fn since(&self, seen: &mut Self, row: &mut Self, joins: Joins) {
        let (mut had, mut has) = (u64::from(*seen), u64::from(*row));
        u64::from(*self).since(&mut had, &mut has, joins);
        seen.set(had);
        row.set(has);
    }
}

/// What is left between sums, which may be negative.
impl Value for i64 {
    fn join(&mut self, other: &Self, _joins: Joins) {
        *self = self.saturating_add(*other);
    }
}

/// Nothing is known of an absent one; a sum has what is known.
impl Value for Option<u64> {
    fn number(&self) -> Option<u64> {
        *self
    }

    fn set(&mut self, number: u64) {
        *self = Some(number);
    }

    fn join(&mut self, other: &Self, joins: Joins) {
        if let Some(other) = other {
            self.get_or_insert_default().join(other, joins);
        }
    }

    fn since(&self, seen: &mut Self, row: &mut Self, joins: Joins) {
        if let Some(now) = self {
            now.since(seen.get_or_insert_default(), row.get_or_insert_default(), joins);
        }
    }
}

impl Value for Histogram {
    fn join(&mut self, other: &Self, _joins: Joins) {
        self.merge(other);
    }
}

impl Value for Option<Histogram> {
    fn join(&mut self, other: &Self, _joins: Joins) {
        if let Some(other) = other {
            self.get_or_insert_default().merge(other);
        }
    }
}

impl Value for Times {
    fn join(&mut self, other: &Self, _joins: Joins) {
        self.merge(other);
    }
}

/// Where it is absent, it equals another field, which only its row knows: that adds it ([`crate::Call::merge`]).
impl Value for Option<Times> {
    fn join(&mut self, _other: &Self, _joins: Joins) {}
}

/// Counts by name.
impl Value for BTreeMap<String, u64> {
    fn number(&self) -> Option<u64> {
        Some(self.values().fold(0, |sum, count| sum.saturating_add(*count)))
    }

    fn join(&mut self, other: &Self, _joins: Joins) {
        for (name, count) in other {
            match self.get_mut(name) {
                Some(sum) => *sum = sum.saturating_add(*count),
                None => _ = self.insert(name.clone(), *count),
            }
        }
    }

    fn since(&self, seen: &mut Self, row: &mut Self, _joins: Joins) {
        for (name, now) in self {
            let count = more(*now, seen.entry(name.clone()).or_default());
            if count > 0 {
                row.insert(name.clone(), count);
            }
        }
    }
}

impl Value for Option<TcpFigures> {
    fn join(&mut self, other: &Self, _joins: Joins) {
        if let Some(other) = other {
            self.get_or_insert_default().merge(other);
        }
    }
}

/// Declares the struct of a row: behind each field that counts something, `=>` and its [`Shape`].
#[macro_export]
macro_rules! statistics {
    (
        $(#[$of_type:meta])*
        pub struct $row:ident {
            $(
                $(#[doc = $meaning:literal])*
                $(#[serde($($serde:tt)*)])*
                pub $field:ident: $value:ty $(=> $shape:expr)?,
            )*
        }
    ) => {
        $(#[$of_type])*
        pub struct $row {
            $(
                $(#[doc = $meaning])*
                $(#[serde($($serde)*)])*
                pub $field: $value,
            )*
        }

        impl $crate::statistic::Statistics for $row {
            const FIELDS: &'static [Option<$crate::statistic::Statistic<Self>>] = {
                #[allow(unused_imports, reason = "not every row has all shapes and units")]
                use $crate::statistic::{Unit::{Bytes, Count, Time}, gauge, most, sum};
                &[$($crate::statistics!(@field $field, concat!($($meaning),*) $(, $shape)?),)*]
            };
        }
    };
    (@field $field:ident, $meaning:expr) => {
        None
    };
    (@field $field:ident, $meaning:expr, $shape:expr) => {
        Some($crate::statistic::Statistic {
            name: stringify!($field),
            meaning: $meaning,
            shape: $shape,
            field: $crate::statistic::Field {
                number: |row: &Self| $crate::statistic::Value::number(&row.$field),
                set: |row: &mut Self, number| {
                    $crate::statistic::Value::set(&mut row.$field, number);
                },
                join: |row: &mut Self, one: &Self, joins| {
                    $crate::statistic::Value::join(&mut row.$field, &one.$field, joins);
                },
                since: |now: &Self, seen: &mut Self, row: &mut Self, joins| {
                    let (seen, row) = (&mut seen.$field, &mut row.$field);
                    $crate::statistic::Value::since(&now.$field, seen, row, joins);
                },
            },
        })
    };
}

#[cfg(test)]
mod tests {
    use iotomy_needs::guide;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Call, Connection, Exchange, FileUse, Group, LedgerRow, PathUse, Process, RingOperation,
        Thread, arbitrary,
    };

    /// Rows of the guide.
    fn rows<R: Statistics>(table: &str) -> Vec<Vec<String>> {
        let row = |one: &Statistic<R>| {
            let column = one.shape.column.map_or_else(String::new, |column| {
                [column.head, column.under.unwrap_or("")].join(" ").trim().to_owned()
            });
            [&format!("`{table}`"), &format!("`{}`", one.name), &column, one.meaning.trim()]
                .map(|cell| cell.to_owned())
                .to_vec()
        };
        R::statistics().map(row).collect()
    }

    #[test]
    fn the_guide_to_records_has_every_statistic() {
        let rows = [
            rows::<Process>("processes"),
            rows::<Call>("calls"),
            rows::<FileUse>("files"),
            rows::<RingOperation>("ring_operations"),
            rows::<Connection>("connections"),
            rows::<Exchange>("requests"),
            rows::<PathUse>("paths"),
            rows::<Group>("by"),
            rows::<LedgerRow>("ledger"),
            rows::<Thread>("threads"),
        ];
        let table = guide::table(&["table", "statistic", "column", "meaning"], rows.concat());
        guide::check("docs/record.md", "statistics", &table);
    }

    /// Fails unless every field but these is a statistic, and columns have heads and keys of their own.
    fn is_declared<R: Statistics + Default + serde::Serialize>(others: &[&str]) {
        let fields = serde_json::to_value(R::default()).unwrap();
        let names = fields.as_object().unwrap().keys();
        for name in names.filter(|name| !others.contains(&name.as_str())) {
            assert!(R::statistic(name).is_some(), "{name}");
        }
        for part in [|column: Column| column.key, |column: Column| column.head] {
            let mut parts: Vec<_> = R::shown().map(|(_, column)| part(column)).collect();
            parts.sort_unstable();
            assert!(parts.windows(2).all(|two| two[0] != two[1]), "{parts:?}");
        }
    }

    #[test]
    fn every_field_that_is_no_key_is_a_statistic() {
        is_declared::<Call>(&["pid", "exec", "syscall"]);
        is_declared::<FileUse>(&["pid", "exec", "kind", "path"]);
        is_declared::<PathUse>(&["pid", "exec", "syscall"]);
        is_declared::<Connection>(&["pid", "exec", "protocol"]);
        is_declared::<Exchange>(&["pid", "exec", "protocol"]);
        is_declared::<RingOperation>(&["pid", "exec", "op"]);
        is_declared::<Thread>(&["pid", "exec", "tid", "name", "longest_ns"]);
        is_declared::<LedgerRow>(&["pid", "exec"]);
        is_declared::<Process>(&["pid", "ppid", "exec", "argv"]);
        is_declared::<Group>(&["key"]);
    }

    /// Fails unless what came since a row is what was added to it.
    fn adds_up<R: Statistics + Default + Clone>(a: &R, b: &R) {
        let mut sum = a.clone();
        add(&mut sum, b);
        let row = since(&sum, &mut a.clone());
        for one in R::statistics() {
            let of = |row: &R| (one.field.number)(row);
            let expected = match one.shape.joins {
                // Of each kind, the sum of which may be beyond the largest number.
                Joins::Sum if one.name.starts_with("error") => continue,
                Joins::Sum => of(&sum).map(|sum| sum - of(a).unwrap_or(0)),
                Joins::Gauge => of(&sum),
                Joins::Most => continue,
            };
            assert_eq!(of(&row), expected, "{}", one.name);
        }
    }

    proptest! {
        #[test]
        fn what_came_since_is_what_was_added(a in arbitrary::trace(), b in arbitrary::trace()) {
            a.calls.iter().zip(&b.calls).for_each(|(a, b)| adds_up(a, b));
            a.files.iter().zip(&b.files).for_each(|(a, b)| adds_up(a, b));
            a.paths.iter().zip(&b.paths).for_each(|(a, b)| adds_up(a, b));
            a.connections.iter().zip(&b.connections).for_each(|(a, b)| adds_up(a, b));
            a.requests.iter().zip(&b.requests).for_each(|(a, b)| adds_up(a, b));
            a.ring_operations.iter().zip(&b.ring_operations).for_each(|(a, b)| adds_up(a, b));
            a.threads.iter().zip(&b.threads).for_each(|(a, b)| adds_up(a, b));
            a.ledger.iter().zip(&b.ledger).for_each(|(a, b)| adds_up(a, b));
        }
    }
}
