//! Samples of each kind, as the encoder takes them.

use std::fmt;

use prometheus_client::encoding::{
    EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, MetricEncoder, NoLabelSet,
};

use crate::totals::{BOUNDS_NS, OfCall};

/// A counter without labels.
pub(crate) fn count(to: &mut MetricEncoder<'_>, value: impl EncodeCounterValue) -> fmt::Result {
    to.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

/// A counter with these labels.
pub(crate) fn count_of<L: EncodeLabelSet>(
    to: &mut MetricEncoder<'_>,
    labels: &L,
    value: impl EncodeCounterValue,
) -> fmt::Result {
    count(&mut to.encode_family(labels)?, value)
}

/// A gauge without labels.
pub(crate) fn gauge(to: &mut MetricEncoder<'_>, value: impl EncodeGaugeValue) -> fmt::Result {
    to.encode_gauge(&value)
}

/// The times of a call.
pub(crate) fn histogram<L: EncodeLabelSet>(
    to: &mut MetricEncoder<'_>,
    labels: &L,
    call: &OfCall,
) -> fmt::Result {
    let bounds = BOUNDS_NS.map(seconds).into_iter().chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(call.durations).collect();
    let count = call.durations.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let mut family = to.encode_family(labels)?;
    family.encode_histogram::<NoLabelSet>(seconds(call.wall_ns), count, &buckets, None)
}

pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
