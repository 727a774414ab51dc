//! Tests of the messages of OTLP: they have what the text of a scrape of the same moment has.

use std::collections::BTreeMap;

use iotomy_record::{Call, ImageCounts, Intervals, LedgerRow, Snapshot};

use super::*;
use crate::exposed::OfBudget;
use crate::exposition::Exposition;
use crate::service::By;

/// As the tests of the program read pushes, too.
#[path = "../../tests/support/pushed.rs"]
mod pushed;

use self::pushed::Pushed;

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
        exposed.totals.add(&Intervals::default().since_last(&snapshot), 1, By::Image, 5);
        exposed.own.overhead_ns = [250.0, 500.0];
        let (ratio, overhead, factor) = (0.01, 0.005, 4);
        exposed.own.budget = Some(OfBudget { ratio, overhead, factor });
        exposed.own.began = BEGAN;
        exposed.own.pushes.failed = 7;
    }
    exposition
}

fn decoded(exposition: &Exposition) -> Vec<Message> {
    let bytes = message(&exposition.exposed(), &origin(), NOW);
    let mut request = ExportMetricsServiceRequest::decode(bytes).unwrap();
    let mut all = request.resource_metrics.pop().unwrap();
    assert!(request.resource_metrics.is_empty());
    let of_scope = all.scope_metrics.pop().unwrap();
    assert!(all.scope_metrics.is_empty());
    assert_eq!(of_scope.scope.unwrap().name, NAME);
    of_scope.metrics
}

/// What each metric says of itself and of its points.
fn check(metric: &Message) {
    let declared = METRICS.iter().find(|one| one.name == metric.name).unwrap();
    assert_eq!(metric.unit, declared.unit.ucum());
    let points = match (metric.data.as_ref().unwrap(), declared.kind) {
        (Data::Sum(sum), kind @ (Kind::Counter | Kind::Info)) => {
            assert_eq!(sum.is_monotonic, kind == Kind::Counter);
            assert_eq!(sum.aggregation_temporality, CUMULATIVE);
            &sum.data_points
        }
        (Data::Gauge(gauge), Kind::Gauge) => &gauge.data_points,
        (Data::Histogram(histogram), Kind::Histogram) => {
            assert_eq!(histogram.aggregation_temporality, CUMULATIVE);
            for point in &histogram.data_points {
                assert_eq!(
                    [point.start_time_unix_nano, point.time_unix_nano],
                    [BEGAN, NOW].map(nanos)
                );
            }
            return;
        }
        (data, kind) => panic!("{kind:?}: {data:?}"),
    };
    for point in points {
        assert_eq!([point.start_time_unix_nano, point.time_unix_nano], [BEGAN, NOW].map(nanos));
    }
}

#[test]
fn a_push_has_the_samples_of_a_scrape_each_once() {
    let mut exposition = exposition();
    let pushed = Pushed::decode(&message(&exposition.exposed(), &origin(), NOW));
    let text = exposition.text().unwrap();
    let of_text = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    let of_text: BTreeMap<String, f64> = of_text.collect();
    assert_eq!(pushed.values, of_text);
    assert_eq!(
        of_text["iotomy_call_duration_seconds_bucket{le=\"0.000001023\",service=\"d\\\"d\",call=\"read\"}"],
        2.0
    );
}

#[test]
fn a_metric_has_its_unit_type_and_times() {
    let metrics = decoded(&exposition());
    assert!(metrics.iter().any(|one| matches!(one.data, Some(Data::Histogram(_)))));
    metrics.iter().for_each(check);
}

#[test]
fn a_push_says_what_it_is_of_by_the_conventions() {
    let pushed = Pushed::decode(&message(&exposition().exposed(), &origin(), NOW));
    let expected = [
        ("service.name", "iotomy-agent"),
        ("service.version", VERSION),
        ("service.instance.id", "a-host:9979"),
        ("host.name", "a-host"),
    ];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(pushed.resource, expected.into());
}

#[test]
fn a_metric_without_points_is_left_out_and_a_count_beyond_the_type_is_its_most() {
    let exposition = Exposition::new();
    exposition.exposed().own.refused = u64::MAX;
    let metrics = decoded(&exposition);
    assert!(metrics.iter().all(|one| !one.name.starts_with("iotomy_call")), "{metrics:?}");
    let refused = metrics.iter().find(|one| one.name == "iotomy_agent_connections_refused_total");
    let Some(Data::Sum(sum)) = &refused.unwrap().data else { panic!("{refused:?}") };
    assert_eq!(sum.data_points[0].value, Some(Number::AsInt(i64::MAX)));
}
