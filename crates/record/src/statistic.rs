//! What a number of a row is, declared once: behind its field.
//!
//! [`statistics!`](crate::statistics) takes the struct of a row. Behind a field stands a [`Shape`]: how rows are put
//! together, the unit and, for a figure that tables show, its column. From that follow the sums over rows
//! ([`add`]), the rows of intervals ([`since`]), the columns of the report, of its pages and of the live view, the
//! measures of comparisons, the keys to sort by, the columns of exported tables, the records of property tests, and the
//! list in docs/record.md.

mod shape;
#[cfg(test)]
mod tests;
mod value;

pub use self::shape::{Column, Joins, Shape, Unit, gauge, least, most, sum};
pub use self::value::{Cell, Kind, Value};
use crate::Factor;

/// A field of a row that counts something.
pub struct Statistic<R: 'static> {
    /// Its name in the record.
    pub name: &'static str,
    /// What it is: the documentation of the field.
    pub meaning: &'static str,
    /// What holds for it in every row.
    pub shape: Shape,
    /// What stands in it.
    pub kind: Kind,
    /// How to reach it in a row.
    pub field: Field<R>,
}

/// How to reach a field of a row.
pub struct Field<R: 'static> {
    /// The content.
    pub cell: fn(&R) -> Cell<'_>,
    /// The number in it, if it has one and that is known.
    pub number: fn(&R) -> Option<u64>,
    /// Makes it this number; of a distribution, nothing.
    pub set: fn(&mut R, u64),
    /// Adds that of another row.
    pub join: fn(&mut R, &R, Joins),
    /// Makes that of the last row what the first has beyond the most seen, which the second has.
    pub since: fn(&R, &mut R, &mut R, Joins),
    /// Multiplies its counts and sums.
    pub scale: fn(&mut R, Factor),
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
                use $crate::statistic::{Unit::{Bytes, Count, Time}, gauge, least, most, sum};
                &[$($crate::statistics!(@field $field, $value, concat!($($meaning),*) $(, $shape)?),)*]
            };
        }
    };
    (@field $field:ident, $value:ty, $meaning:expr) => {
        None
    };
    (@field $field:ident, $value:ty, $meaning:expr, $shape:expr) => {
        Some($crate::statistic::Statistic {
            name: stringify!($field),
            meaning: $meaning,
            shape: $shape,
            kind: <$value as $crate::statistic::Value>::KIND,
            field: $crate::statistic::Field {
                cell: |row: &Self| $crate::statistic::Value::cell(&row.$field),
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
                scale: |row: &mut Self, factor| {
                    $crate::statistic::Value::scale(&mut row.$field, factor);
                },
            },
        })
    };
}
