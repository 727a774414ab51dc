//! Tests of the messages of OTLP: they have what the text of a scrape of the same moment has.

use std::collections::BTreeMap;

use iotomy_record::{Call, ImageCounts, Intervals, LedgerRow, Snapshot};

use super::*;
use crate::exposition::Exposition;
use crate::service::By;

const BEGAN: Duration = Duration::from_secs(1_000);
const NOW: Duration = Duration::new(1_060, 5);

fn origin() -> Origin {
    Origin { host: String::from("a-host"), port: 9979 }
}

/// Of a program with some calls, and of the agent.
fn exposition() -> Exposition {
    let mut call = Call {
        syscall: "read".into(),
        calls: 4,
        bytes: 30,
        wall_ns: 6_000_005_000,
        error_kinds: [("ENOENT".to_owned(), 1)].into(),
        ..Call::default()
    };
    [1_000, 1_023, 3_000, 6_000_000_000].into_iter().for_each(|ns| call.wall_times.add(ns));
    let ledger = LedgerRow { thread_ns: 1_500_000_000, user_ns: 500_000_000, ..<_>::default() };
    let image = ImageCounts {
        id: 1,
        exec: "d\"d".into(),
        calls: vec![call],
        ledger: Some(ledger),
        ..ImageCounts::default()
    };
    let snapshot = Snapshot { images: vec![image], lost: 4, ..Snapshot::default() };
    let exposition = Exposition::new();
    {
        let mut exposed = exposition.exposed();
        exposed.totals.add(&Intervals::default().since_last(&snapshot), By::Image, 5);
        exposed.own.overhead_ns = [250.0, 500.0];
        exposed.own.began = BEGAN;
        exposed.own.pushes.failed = 7;
    }
    exposition
}

fn decoded(exposition: &Exposition) -> (Vec<KeyValue>, Vec<Message>) {
    let bytes = message(&exposition.exposed(), &origin(), NOW);
    let mut request = ExportMetricsServiceRequest::decode(bytes).unwrap();
    let mut all = request.resource_metrics.pop().unwrap();
    assert!(request.resource_metrics.is_empty());
    let of_scope = all.scope_metrics.pop().unwrap();
    assert!(all.scope_metrics.is_empty());
    assert_eq!(of_scope.scope.unwrap().name, NAME);
    (all.resource.unwrap().attributes, of_scope.metrics)
}

fn text_of(value: Option<&AnyValue>) -> &str {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// The name of a series as a scrape writes it.
fn series(name: &str, bound: Option<f64>, attributes: &[KeyValue]) -> String {
    let bound = bound.map(|bound| {
        let text = if bound.is_infinite() { String::from("+Inf") } else { bound.to_string() };
        format!("le=\"{text}\"")
    });
    let label = |one: &KeyValue| {
        let value = text_of(one.value.as_ref()).replace('\\', "\\\\").replace('"', "\\\"");
        format!("{}=\"{value}\"", one.key)
    };
    let labels: Vec<String> = bound.into_iter().chain(attributes.iter().map(label)).collect();
    if labels.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", labels.join(",")) }
}

fn numbers(name: &str, points: &[NumberDataPoint], into: &mut BTreeMap<String, f64>) {
    for point in points {
        assert_eq!([point.start_time_unix_nano, point.time_unix_nano], [BEGAN, NOW].map(nanos));
        let value = match point.value.unwrap() {
            Number::AsInt(value) => value as f64,
            Number::AsDouble(value) => value,
        };
        let old = into.insert(series(name, None, &point.attributes), value);
        assert!(old.is_none(), "{name}");
    }
}

/// The samples of a message as a scrape has them.
fn samples(metrics: &[Message]) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    for metric in metrics {
        let declared = METRICS.iter().find(|one| one.name == metric.name).unwrap();
        assert_eq!(metric.unit, declared.unit.ucum());
        match (metric.data.as_ref().unwrap(), declared.kind) {
            (Data::Sum(sum), kind @ (Kind::Counter | Kind::Info)) => {
                assert_eq!(sum.is_monotonic, kind == Kind::Counter);
                assert_eq!(sum.aggregation_temporality, CUMULATIVE);
                numbers(&metric.name, &sum.data_points, &mut samples);
            }
            (Data::Gauge(gauge), Kind::Gauge) => {
                numbers(&metric.name, &gauge.data_points, &mut samples);
            }
            (Data::Histogram(histogram), Kind::Histogram) => {
                assert_eq!(histogram.aggregation_temporality, CUMULATIVE);
                for point in &histogram.data_points {
                    let of = |end: &str| {
                        series(&format!("{}{end}", metric.name), None, &point.attributes)
                    };
                    samples.insert(of("_count"), point.count as f64);
                    samples.insert(of("_sum"), point.sum.unwrap());
                    let bounds = point.explicit_bounds.iter().copied().chain([f64::INFINITY]);
                    let mut sum = 0;
                    for (bound, count) in bounds.zip(&point.bucket_counts) {
                        sum += count;
                        let name = format!("{}_bucket", metric.name);
                        samples.insert(series(&name, Some(bound), &point.attributes), sum as f64);
                    }
                    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
                }
            }
            (data, kind) => panic!("{kind:?}: {data:?}"),
        }
    }
    samples
}

#[test]
fn a_push_has_the_samples_of_a_scrape_each_once() {
    let mut exposition = exposition();
    let (_, metrics) = decoded(&exposition);
    let text = exposition.text().unwrap();
    let of_text = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    let of_text: BTreeMap<String, f64> = of_text.collect();
    assert_eq!(samples(&metrics), of_text);
    assert_eq!(
        of_text["iotomy_call_duration_seconds_bucket{le=\"0.000001023\",service=\"d\\\"d\",call=\"read\"}"],
        2.0
    );
    // What nothing has happened to has no points, and none is sent.
    assert!(metrics.iter().all(|metric| metric.data.is_some()));
}

#[test]
fn a_push_says_what_it_is_of_by_the_conventions() {
    let (attributes, _) = decoded(&exposition());
    let all: Vec<_> =
        attributes.iter().map(|one| (&*one.key, text_of(one.value.as_ref()))).collect();
    let expected = [
        ("service.name", "iotomy-agent"),
        ("service.version", VERSION),
        ("service.instance.id", "a-host:9979"),
        ("host.name", "a-host"),
    ];
    assert_eq!(all, expected);
}

#[test]
fn a_metric_without_points_is_left_out_and_a_count_beyond_the_type_is_its_most() {
    let exposition = Exposition::new();
    exposition.exposed().own.refused = u64::MAX;
    let (_, metrics) = decoded(&exposition);
    assert!(metrics.iter().all(|one| !one.name.starts_with("iotomy_call")), "{metrics:?}");
    let refused = metrics.iter().find(|one| one.name == "iotomy_agent_connections_refused_total");
    let Some(Data::Sum(sum)) = &refused.unwrap().data else { panic!("{refused:?}") };
    assert_eq!(sum.data_points[0].value, Some(Number::AsInt(i64::MAX)));
}
