//! The metrics as a message of OTLP.
//!
//! Names, types and buckets are those of scrapes, as a collector that scrapes the agent would have them: a counter is a
//! cumulative monotonic sum, a histogram has the same bounds, an info is a sum of 1 that is not monotonic. The histograms
//! are none with exponential buckets: the kernel's buckets end 1 ns below a power of two, and counts are exact at such bounds
//! alone.
//!
//! The one invariant: a sum is since its start time. What a watch has counted stays when the next one begins, and so does
//! the start time: it is that of the agent.

use std::fmt;
use std::time::Duration;

use hyper::body::Bytes;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric as Message,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;

use crate::exposed::Exposed;
use crate::metric::{Kind, Metric};
use crate::metrics::METRICS;
use crate::samples::{Labels, Samples, Value, seconds};
use crate::totals::{BOUNDS_NS, OfCall};

/// What pushes are of, by OpenTelemetry's semantic conventions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// This machine.
    pub(crate) host: String,
    /// Which agent of it: the port where it serves metrics.
    pub(crate) port: u16,
}

/// The program's name and version, as it is called.
const NAME: &str = "iotomy-agent";
const VERSION: &str = env!("CARGO_PKG_VERSION");

const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

/// The message of what was counted until a time since the epoch.
pub(crate) fn message(exposed: &Exposed, origin: &Origin, now: Duration) -> Bytes {
    request(exposed, origin, now).encode_to_vec().into()
}

fn request(exposed: &Exposed, origin: &Origin, now: Duration) -> ExportMetricsServiceRequest {
    let times = [exposed.own.began, now].map(nanos);
    // One without points is not valid.
    let metrics = METRICS.iter().filter_map(|metric| of_metric(metric, exposed, times));
    let scope = InstrumentationScope {
        name: NAME.to_owned(),
        version: VERSION.to_owned(),
        ..InstrumentationScope::default()
    };
    let scope_metrics =
        ScopeMetrics { scope: Some(scope), metrics: metrics.collect(), ..ScopeMetrics::default() };
    let instance = format!("{}:{}", origin.host, origin.port);
    let attributes = attributes(&[
        ("service.name", NAME),
        ("service.version", VERSION),
        ("service.instance.id", &instance),
        ("host.name", &origin.host),
    ]);
    let resource = ResourceMetrics {
        resource: Some(Resource { attributes, ..Resource::default() }),
        scope_metrics: vec![scope_metrics],
        ..ResourceMetrics::default()
    };
    ExportMetricsServiceRequest { resource_metrics: vec![resource] }
}

fn of_metric(metric: &Metric, exposed: &Exposed, [start, time]: [u64; 2]) -> Option<Message> {
    let mut points = Points { start, time, ..Points::default() };
    // It only collects.
    let _ = (metric.samples)(exposed, &mut points);
    let Points { numbers: data_points, times, .. } = points;
    if data_points.is_empty() && times.is_empty() {
        return None;
    }
    let sum = |data_points, is_monotonic| {
        Data::Sum(Sum { data_points, aggregation_temporality: CUMULATIVE, is_monotonic })
    };
    let data = match metric.kind {
        Kind::Counter => sum(data_points, true),
        Kind::Info => sum(data_points, false),
        Kind::Gauge => Data::Gauge(Gauge { data_points }),
        Kind::Histogram => {
            Data::Histogram(Histogram { data_points: times, aggregation_temporality: CUMULATIVE })
        }
    };
    Some(Message {
        name: metric.name.to_owned(),
        description: metric.help.to_owned(),
        unit: metric.unit.ucum().to_owned(),
        data: Some(data),
        ..Message::default()
    })
}

/// The points of a metric.
#[derive(Debug, Default)]
struct Points {
    start: u64,
    time: u64,
    numbers: Vec<NumberDataPoint>,
    times: Vec<HistogramDataPoint>,
}

impl Samples for Points {
    fn value(&mut self, labels: &Labels<'_>, value: Value) -> fmt::Result {
        let value = match value {
            Value::Whole(value) => Number::AsInt(i64::try_from(value).unwrap_or(i64::MAX)),
            Value::Real(value) => Number::AsDouble(value),
        };
        self.numbers.push(NumberDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: self.start,
            time_unix_nano: self.time,
            value: Some(value),
            ..NumberDataPoint::default()
        });
        Ok(())
    }

    fn times(&mut self, labels: &Labels<'_>, call: &OfCall) -> fmt::Result {
        self.times.push(HistogramDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: self.start,
            time_unix_nano: self.time,
            count: call.timed(),
            sum: Some(seconds(call.wall_ns)),
            bucket_counts: call.durations.to_vec(),
            explicit_bounds: BOUNDS_NS.map(seconds).to_vec(),
            ..HistogramDataPoint::default()
        });
        Ok(())
    }
}

fn attributes(labels: &[(&'static str, &str)]) -> Vec<KeyValue> {
    let attribute = |(key, value): &(&'static str, &str)| KeyValue {
        key: (*key).to_owned(),
        value: Some(AnyValue { value: Some(Any::StringValue((*value).to_owned())) }),
        ..KeyValue::default()
    };
    labels.iter().map(attribute).collect()
}

fn nanos(since_epoch: Duration) -> u64 {
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
