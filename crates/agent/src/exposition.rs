//! The text of a scrape: OpenMetrics 1.0, by the crate of the Prometheus project, which also escapes labels.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::registry::Registry;

use crate::exposed::Exposed;
use crate::metric::Kind;
use crate::metrics::METRICS;
use crate::samples::{Labels, Samples, Value, seconds};
use crate::totals::{BOUNDS_NS, OfCall};

/// What a scrape says that it is.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Makes the texts of scrapes.
pub(crate) struct Exposition {
    registry: Registry,
    exposed: Arc<Mutex<Exposed>>,
    /// The length of the last one.
    length: usize,
}

impl Exposition {
    pub(crate) fn new() -> Self {
        let exposed = Arc::<Mutex<Exposed>>::default();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Collected(exposed.clone())));
        Self { registry, exposed, length: 0 }
    }

    /// What the next text has.
    pub(crate) fn exposed(&self) -> MutexGuard<'_, Exposed> {
        locked(&self.exposed)
    }

    /// # Errors
    /// The encoder's, which has none of its own.
    pub(crate) fn text(&mut self) -> Result<String, fmt::Error> {
        let mut text = String::with_capacity(self.length + self.length / 8);
        text::encode(&mut text, &self.registry)?;
        self.length = text.len();
        Ok(text)
    }
}

/// What a thread that panicked has left is as whole as before: it only adds.
fn locked(exposed: &Mutex<Exposed>) -> MutexGuard<'_, Exposed> {
    exposed.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Collected(Arc<Mutex<Exposed>>);

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let exposed = locked(&self.0);
        for metric in METRICS {
            let to = encoder.encode_descriptor(
                metric.stem(),
                metric.help,
                metric.unit.unit(),
                metric.kind.metric_type(),
            )?;
            (metric.samples)(&exposed, &mut Family { kind: metric.kind, to })?;
        }
        Ok(())
    }
}

/// The samples of a metric, as the encoder takes them.
struct Family<'e> {
    kind: Kind,
    to: MetricEncoder<'e>,
}

impl Samples for Family<'_> {
    fn value(&mut self, labels: &Labels<'_>, value: Value) -> fmt::Result {
        match self.kind {
            Kind::Info => self.to.encode_info(&labels),
            kind if labels.is_empty() => encode(kind, &mut self.to, value),
            kind => encode(kind, &mut self.to.encode_family(&labels)?, value),
        }
    }

    fn times(&mut self, labels: &Labels<'_>, call: &OfCall) -> fmt::Result {
        let bounds = BOUNDS_NS.map(seconds).into_iter().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(call.durations).collect();
        let mut family = self.to.encode_family(&labels)?;
        let sum = seconds(call.wall_ns);
        family.encode_histogram::<NoLabelSet>(sum, call.timed(), &buckets, None)
    }
}

fn encode(kind: Kind, to: &mut MetricEncoder<'_>, value: Value) -> fmt::Result {
    match (kind, value) {
        (Kind::Gauge, Value::Whole(value)) => to.encode_gauge(&value),
        (Kind::Gauge, Value::Real(value)) => to.encode_gauge(&value),
        (_, Value::Whole(value)) => to.encode_counter::<NoLabelSet, _, u64>(&value, None),
        (_, Value::Real(value)) => to.encode_counter::<NoLabelSet, _, u64>(&value, None),
    }
}

#[cfg(test)]
#[path = "exposition_tests.rs"]
mod tests;
