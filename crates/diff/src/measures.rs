//! The measures that rows are compared by: those that statistics declare, and what follows from several of these.

use iotomy_record::statistic::{Statistics, Unit};

/// A measure of a row of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measure {
    /// Its name in the record, with its unit.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Its value, if that is known.
    pub(crate) value: Option<f64>,
}

/// What a measure is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number that is exact: a row without these counts nothing.
    Count,
    /// A sum of times.
    Time,
    /// A property of the calls there were: unknown without any, and never per second.
    PerCall,
    /// The extent of a run: never per second.
    Extent,
}

/// What statistics of a row declare as measures, each times `scale`; of no row, nothing is known.
pub(crate) fn compared<R: Statistics>(row: Option<&R>, scale: f64) -> Vec<Measure> {
    let each = R::compared().map(|statistic| {
        let kind = match statistic.shape.unit {
            Unit::Time => Kind::Time,
            Unit::Count | Unit::Bytes => Kind::Count,
        };
        let number = row.and_then(statistic.field.number);
        let value = number.map(|number| number as f64 * scale);
        Measure { name: statistic.name, kind, value }
    });
    each.collect()
}

/// The means that statistics of a row declare instead of their sums; of no event, none is known.
pub(crate) fn means<R: Statistics>(row: &R, events: u64) -> Vec<Measure> {
    let each = R::statistics().filter_map(|statistic| {
        let sum = (statistic.field.number)(row).filter(|_| events > 0);
        Some(per_call(statistic.shape.mean?, sum.map(|sum| sum as f64 / events as f64)))
    });
    each.collect()
}

pub(crate) fn count(name: &'static str, value: impl Into<Option<f64>>) -> Measure {
    Measure { name, kind: Kind::Count, value: value.into() }
}

pub(crate) fn time(name: &'static str, value: impl Into<Option<f64>>) -> Measure {
    Measure { name, kind: Kind::Time, value: value.into() }
}

pub(crate) fn per_call(name: &'static str, value: impl Into<Option<f64>>) -> Measure {
    Measure { name, kind: Kind::PerCall, value: value.into() }
}

pub(crate) fn extent(name: &'static str, value: impl Into<Option<f64>>) -> Measure {
    Measure { name, kind: Kind::Extent, value: value.into() }
}
