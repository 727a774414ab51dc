//! What a metric is.

use std::fmt;

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use crate::exposed::Exposed;
use crate::samples::Samples;

/// What a metric is to Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows while the agent runs.
    Counter,
    /// A value of now.
    Gauge,
    /// Counts by upper bounds, with their sum.
    Histogram,
    /// 1, with facts as labels.
    Info,
}

/// The unit of a metric, which its name ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum In {
    /// A count, or a yes or no.
    Nothing,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
}

/// A metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name as queries have it, without `_bucket`, `_sum` and `_count`.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its unit.
    pub unit: In,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it counts, as scrapes have it.
    pub help: &'static str,
    /// Where its value comes from.
    pub source: &'static str,
    /// Gives its samples to an output: the text of a scrape, or a push over OTLP.
    pub(crate) samples: fn(&Exposed, &mut dyn Samples) -> fmt::Result,
}

impl Kind {
    /// The word of the exposition format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }

    pub(crate) fn metric_type(self) -> MetricType {
        match self {
            Self::Counter => MetricType::Counter,
            Self::Gauge => MetricType::Gauge,
            Self::Histogram => MetricType::Histogram,
            Self::Info => MetricType::Info,
        }
    }

    /// The end of the names of its samples that the encoder adds.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Info => "_info",
            Self::Gauge | Self::Histogram => "",
        }
    }
}

impl In {
    /// The word of the exposition format; empty for none.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
        }
    }

    /// The unit as OpenTelemetry writes it, by UCUM.
    pub(crate) fn ucum(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Seconds => "s",
            Self::Bytes => "By",
        }
    }

    pub(crate) fn unit(self) -> Option<&'static Unit> {
        match self {
            Self::Nothing => None,
            Self::Seconds => Some(&Unit::Seconds),
            Self::Bytes => Some(&Unit::Bytes),
        }
    }
}

impl Metric {
    /// The name without what the encoder adds: the unit, and `_total` or `_info`.
    pub(crate) fn stem(&self) -> &'static str {
        let name = self.name.strip_suffix(self.kind.suffix()).unwrap_or(self.name);
        let unit = name.strip_suffix(self.unit.name()).filter(|_| self.unit != In::Nothing);
        unit.and_then(|stem| stem.strip_suffix('_')).unwrap_or(name)
    }

    /// The names that its samples have.
    pub fn sample_names(&self) -> Vec<String> {
        match self.kind {
            Kind::Histogram => {
                ["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", self.name)).into()
            }
            _ => vec![self.name.to_owned()],
        }
    }
}
