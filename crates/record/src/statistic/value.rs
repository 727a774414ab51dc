//! What may stand in a field that counts something, and how two of these are put together.

use std::collections::BTreeMap;

use super::Joins;
use crate::growth::more;
use crate::{Factor, Histogram, Times};

/// Which of these may stand in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number that is not negative.
    Number,
    /// A number that may be negative.
    Signed,
    /// Counts by name.
    Counts,
    /// A distribution by powers of two.
    Histogram,
    /// A distribution of times.
    Times,
    /// A row of its own, which has statistics.
    Row,
}

/// The content of a field; `None` where the record does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell<'r> {
    /// Of [`Kind::Number`].
    Number(Option<u64>),
    /// Of [`Kind::Signed`].
    Signed(i64),
    /// Of [`Kind::Counts`].
    Counts(&'r BTreeMap<String, u64>),
    /// Of [`Kind::Histogram`].
    Histogram(Option<&'r Histogram>),
    /// Of [`Kind::Times`].
    Times(Option<&'r Times>),
    /// Of [`Kind::Row`].
    Row,
}

/// What may stand in a field.
pub trait Value {
    /// Which of these it is.
    const KIND: Kind;

    /// The content.
    fn cell(&self) -> Cell<'_>;

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

    /// Multiplies counts and sums.
    fn scale(&mut self, _factor: Factor) {}
}

impl Value for u64 {
    const KIND: Kind = Kind::Number;

    fn cell(&self) -> Cell<'_> {
        Cell::Number(Some(*self))
    }

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
            Joins::Least => match (*self, *other) {
                (0, known) | (known, 0) => known,
                (one, other) => one.min(other),
            },
        };
    }

    fn since(&self, seen: &mut Self, row: &mut Self, joins: Joins) {
        match joins {
            Joins::Sum => *row = more(*self, seen),
            Joins::Gauge => *row = *self,
            Joins::Most | Joins::Least => {}
        }
    }

    fn scale(&mut self, factor: Factor) {
        *self = factor.of(*self);
    }
}

impl Value for u32 {
    const KIND: Kind = Kind::Number;

    fn cell(&self) -> Cell<'_> {
        Cell::Number(Some((*self).into()))
    }

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

    fn scale(&mut self, factor: Factor) {
        self.set(factor.of((*self).into()));
    }
}

/// What is left between sums, which may be negative.
impl Value for i64 {
    const KIND: Kind = Kind::Signed;

    fn cell(&self) -> Cell<'_> {
        Cell::Signed(*self)
    }

    fn join(&mut self, other: &Self, _joins: Joins) {
        *self = self.saturating_add(*other);
    }
}

/// Nothing is known of an absent one; a sum has what is known.
impl Value for Option<u64> {
    const KIND: Kind = Kind::Number;

    fn cell(&self) -> Cell<'_> {
        Cell::Number(*self)
    }

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

    fn scale(&mut self, factor: Factor) {
        *self = self.map(|number| factor.of(number));
    }
}

impl Value for Histogram {
    const KIND: Kind = Kind::Histogram;

    fn cell(&self) -> Cell<'_> {
        Cell::Histogram(Some(self))
    }

    fn join(&mut self, other: &Self, _joins: Joins) {
        self.merge(other);
    }

    fn scale(&mut self, factor: Factor) {
        *self = self.scaled(factor);
    }
}

impl Value for Option<Histogram> {
    const KIND: Kind = Kind::Histogram;

    fn cell(&self) -> Cell<'_> {
        Cell::Histogram(self.as_ref())
    }

    fn join(&mut self, other: &Self, _joins: Joins) {
        if let Some(other) = other {
            self.get_or_insert_default().merge(other);
        }
    }

    fn scale(&mut self, factor: Factor) {
        *self = self.as_ref().map(|one| one.scaled(factor));
    }
}

impl Value for Times {
    const KIND: Kind = Kind::Times;

    fn cell(&self) -> Cell<'_> {
        Cell::Times(Some(self))
    }

    fn join(&mut self, other: &Self, _joins: Joins) {
        self.merge(other);
    }

    fn scale(&mut self, factor: Factor) {
        *self = self.scaled(factor);
    }
}

/// Where it is absent, it equals another field, which only its row knows: that adds it ([`crate::Call::merge`]).
impl Value for Option<Times> {
    const KIND: Kind = Kind::Times;

    fn cell(&self) -> Cell<'_> {
        Cell::Times(self.as_ref())
    }

    fn join(&mut self, _other: &Self, _joins: Joins) {}

    fn scale(&mut self, factor: Factor) {
        *self = self.as_ref().map(|one| one.scaled(factor));
    }
}

/// Counts by name.
impl Value for BTreeMap<String, u64> {
    const KIND: Kind = Kind::Counts;

    fn cell(&self) -> Cell<'_> {
        Cell::Counts(self)
    }

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

    fn scale(&mut self, factor: Factor) {
        self.values_mut().for_each(|count| *count = factor.of(*count));
    }
}
