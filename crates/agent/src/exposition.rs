//! The text of a scrape: OpenMetrics 1.0, by the crate of the Prometheus project, which also escapes labels.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeLabelSet, MetricEncoder, NoLabelSet, text,
};
use prometheus_client::registry::Registry;

use crate::metrics::{self, METRICS, Metric};
use crate::totals::{BOUNDS_NS, OfCall, Totals, direction};

/// What a scrape says that it is.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The numbers of the agent itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Own {
    /// Since the epoch.
    pub(crate) began: Duration,
    pub(crate) cpu: Duration,
    /// The least and the most that watching adds to a call.
    pub(crate) overhead_ns: [f64; 2],
    pub(crate) watches: u64,
    pub(crate) scrapes: u64,
    pub(crate) refused: u64,
    pub(crate) cut: u64,
    pub(crate) is_reloaded: bool,
}

/// All that a scrape has.
#[derive(Debug, Default)]
pub(crate) struct Exposed {
    pub(crate) totals: Totals,
    pub(crate) own: Own,
}

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
            let mut family = encoder.encode_descriptor(
                metric.stem(),
                metric.help,
                metric.unit.unit(),
                metric.kind.metric_type(),
            )?;
            exposed.encode(metric, &mut family)?;
        }
        Ok(())
    }
}

impl Exposed {
    /// The samples of a metric.
    fn encode(&self, metric: &Metric, to: &mut MetricEncoder<'_>) -> fmt::Result {
        let is = |other: &Metric| metric.name == other.name;
        let own = &self.own;
        if is(&metrics::CALLS) {
            self.of_calls(|labels, call| counter(to, &labels, call.calls))
        } else if is(&metrics::ERRORS) {
            self.of_calls(|labels, call| {
                call.errors.iter().try_for_each(|(errno, count)| {
                    counter(to, &[labels[0], labels[1], ("errno", errno)], *count)
                })
            })
        } else if is(&metrics::BYTES) {
            self.of_calls(|labels, call| match call.bytes {
                0 => Ok(()),
                bytes => {
                    let direction = ("direction", direction(labels[1].1));
                    counter(to, &[labels[0], labels[1], direction], bytes)
                }
            })
        } else if is(&metrics::DURATION) {
            self.of_calls(|labels, call| histogram(to, &labels, call))
        } else if is(&metrics::THREAD_TIME) {
            self.totals.iter().try_for_each(|(service, one)| {
                counter(to, &[("service", service)], seconds(one.ledger.thread_ns))
            })
        } else if is(&metrics::THREAD_STATE) {
            self.totals.iter().try_for_each(|(service, one)| {
                let states = [
                    ("user", one.ledger.user_ns),
                    ("system", one.ledger.calls_on_cpu_ns),
                    ("blocked", one.ledger.blocked_ns),
                    ("run_queue", one.ledger.runnable_ns),
                ];
                states.into_iter().try_for_each(|(state, ns)| {
                    counter(to, &[("service", service), ("state", state)], seconds(ns))
                })
            })
        } else if is(&metrics::LOST) {
            plain(to, self.totals.lost)
        } else if is(&metrics::BUILD) {
            to.encode_info(&[("version", env!("CARGO_PKG_VERSION"))])
        } else if is(&metrics::START) {
            to.encode_gauge(&own.began.as_secs_f64())
        } else if is(&metrics::CPU) {
            plain(to, own.cpu.as_secs_f64())
        } else if is(&metrics::OVERHEAD) {
            ["low", "high"].into_iter().zip(own.overhead_ns).try_for_each(|(bound, ns)| {
                to.encode_family(&[("bound", bound)])?.encode_gauge(&(ns / 1e9))
            })
        } else if is(&metrics::WATCHES) {
            plain(to, own.watches)
        } else if is(&metrics::SCRAPES) {
            plain(to, own.scrapes)
        } else if is(&metrics::REFUSED) {
            plain(to, own.refused)
        } else if is(&metrics::CUT) {
            plain(to, own.cut)
        } else if is(&metrics::SERVICES) {
            to.encode_gauge(&(self.totals.services.own() as u64))
        } else if is(&metrics::IN_OTHER) {
            to.encode_gauge(&(self.totals.services.others() as u64))
        } else {
            to.encode_gauge(&u64::from(own.is_reloaded))
        }
    }

    fn of_calls(
        &self,
        mut encode: impl FnMut([(&'static str, &str); 2], &OfCall) -> fmt::Result,
    ) -> fmt::Result {
        self.totals.iter().try_for_each(|(service, one)| {
            let mut of_service = one.calls.iter();
            of_service
                .try_for_each(|(name, call)| encode([("service", service), ("call", name)], call))
        })
    }
}

fn plain(to: &mut MetricEncoder<'_>, value: impl EncodeCounterValue) -> fmt::Result {
    to.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

fn counter<L: EncodeLabelSet>(
    to: &mut MetricEncoder<'_>,
    labels: &L,
    value: impl EncodeCounterValue,
) -> fmt::Result {
    plain(&mut to.encode_family(labels)?, value)
}

fn histogram<L: EncodeLabelSet>(
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

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
#[path = "exposition_tests.rs"]
mod tests;
