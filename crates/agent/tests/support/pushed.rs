//! The samples of a push over OTLP, as a scrape has them.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use prost::Message;

/// The samples of a push by name and labels, as scrapes write them; and what it is of.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pushed {
    pub(crate) resource: BTreeMap<String, String>,
    pub(crate) values: BTreeMap<String, f64>,
    /// The start times of its sums, in ns since the epoch.
    pub(crate) starts: Vec<u64>,
}

impl Pushed {
    /// An empty one of no bytes, as of a push that was not read.
    pub(crate) fn decode(body: &[u8]) -> Self {
        let request = ExportMetricsServiceRequest::decode(body).unwrap();
        let mut pushed = Self::default();
        for of_resource in &request.resource_metrics {
            let attributes = &of_resource.resource.as_ref().unwrap().attributes;
            pushed.resource.extend(attributes.iter().map(|one| (one.key.clone(), text(one))));
            for metric in of_resource.scope_metrics.iter().flat_map(|scope| &scope.metrics) {
                pushed.add(&metric.name, metric.data.as_ref().unwrap());
            }
        }
        pushed.starts.sort_unstable();
        pushed.starts.dedup();
        pushed
    }

    fn add(&mut self, name: &str, data: &Data) {
        let numbers = match data {
            Data::Sum(sum) => &sum.data_points,
            Data::Gauge(gauge) => &gauge.data_points,
            Data::Histogram(histogram) => {
                for point in &histogram.data_points {
                    let of = |end: &str, bound: Option<f64>| {
                        series(&format!("{name}{end}"), bound, &point.attributes)
                    };
                    self.insert(of("_count", None), point.count as f64);
                    self.insert(of("_sum", None), point.sum.unwrap());
                    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
                    let bounds = point.explicit_bounds.iter().copied().chain([f64::INFINITY]);
                    let mut sum = 0;
                    for (bound, count) in bounds.zip(&point.bucket_counts) {
                        sum += count;
                        self.insert(of("_bucket", Some(bound)), sum as f64);
                    }
                    self.starts.push(point.start_time_unix_nano);
                }
                return;
            }
            other => panic!("{name}: {other:?}"),
        };
        for point in numbers {
            let value = match point.value.unwrap() {
                Number::AsInt(value) => value as f64,
                Number::AsDouble(value) => value,
            };
            self.insert(series(name, None, &point.attributes), value);
            self.starts.push(point.start_time_unix_nano);
        }
    }

    fn insert(&mut self, series: String, value: f64) {
        let old = self.values.insert(series.clone(), value);
        assert!(old.is_none(), "twice: {series}");
    }
}

fn text(attribute: &KeyValue) -> String {
    match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone(),
        other => panic!("{other:?}"),
    }
}

fn series(name: &str, bound: Option<f64>, attributes: &[KeyValue]) -> String {
    let bound = bound.map(|bound| {
        let text = if bound.is_infinite() { String::from("+Inf") } else { bound.to_string() };
        format!("le=\"{text}\"")
    });
    let label = |one: &KeyValue| {
        let value = text(one).replace('\\', "\\\\").replace('"', "\\\"");
        format!("{}=\"{value}\"", one.key)
    };
    let labels = attributes.iter().map(label);
    let labels: Vec<String> = bound.into_iter().chain(labels).collect();
    if labels.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", labels.join(",")) }
}
