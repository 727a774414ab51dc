//! Samples of metrics, as every output takes them: the text of scrapes (`exposition`), and pushes over OTLP (`otlp`).

use std::fmt;

use crate::totals::OfCall;

/// The labels of a sample.
pub(crate) type Labels<'l> = [(&'static str, &'l str)];

/// The value of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    Whole(u64),
    Real(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

/// An output, which takes the samples of one metric.
pub(crate) trait Samples {
    /// A sample of a metric that is no histogram; of an info, the facts are its labels.
    ///
    /// # Errors
    /// That of the encoder.
    fn value(&mut self, labels: &Labels<'_>, value: Value) -> fmt::Result;

    /// The times of a call, of a histogram.
    ///
    /// # Errors
    /// That of the encoder.
    fn times(&mut self, labels: &Labels<'_>, call: &OfCall) -> fmt::Result;
}

pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
