//! Tests of the text of scrapes.

use std::collections::BTreeSet;
use std::time::Duration;

use iotomy_record::{Call, ImageCounts, Intervals, LedgerRow, Snapshot};

use super::*;
use crate::exposed::OfBudget;
use crate::metric::Metric;
use crate::service::By;

fn exposition(exec: &str, syscall: &str) -> String {
    let mut call = Call {
        syscall: syscall.into(),
        calls: 3,
        bytes: 30,
        wall_ns: 6_000,
        error_kinds: [("ENOENT".to_owned(), 1)].into(),
        ..Call::default()
    };
    [1_000, 2_000, 3_000].into_iter().for_each(|ns| call.wall_times.add(ns));
    let ledger = LedgerRow { thread_ns: 1_500_000_000, user_ns: 500_000_000, ..<_>::default() };
    let image = ImageCounts {
        id: 1,
        exec: exec.into(),
        calls: vec![call],
        ledger: Some(ledger),
        ..ImageCounts::default()
    };
    let snapshot = Snapshot { images: vec![image], lost: 4, ..Snapshot::default() };
    let counts = Intervals::default().since_last(&snapshot);
    let mut exposition = Exposition::new();
    exposition.exposed().totals.add(&counts, 1, By::Image, 5);
    exposition.exposed().own.overhead_ns = [250.0, 500.0];
    exposition.exposed().own.expiry = Some(Duration::from_secs(1_800_000_000));
    let (ratio, overhead, factor) = (0.01, 0.005, 4);
    exposition.exposed().own.budget = Some(OfBudget { ratio, overhead, factor });
    exposition.exposed().totals.add_variance(syscall, 36.0);
    exposition.text().unwrap()
}

#[test]
fn a_scrape_has_what_was_counted() {
    let text = exposition("dd", "read");
    for line in [
        "# TYPE iotomy_calls counter",
        r#"iotomy_calls_total{service="dd",call="read"} 3"#,
        r#"iotomy_call_errors_total{service="dd",call="read",errno="ENOENT"} 1"#,
        "# UNIT iotomy_call_bytes bytes",
        r#"iotomy_call_bytes_total{service="dd",call="read",direction="read"} 30"#,
        "# TYPE iotomy_call_duration_seconds histogram",
        r#"iotomy_call_duration_seconds_sum{service="dd",call="read"} 0.000006"#,
        r#"iotomy_call_duration_seconds_count{service="dd",call="read"} 3"#,
        r#"iotomy_call_duration_seconds_bucket{le="0.000001023",service="dd",call="read"} 1"#,
        r#"iotomy_call_duration_seconds_bucket{le="0.000004095",service="dd",call="read"} 3"#,
        r#"iotomy_call_duration_seconds_bucket{le="+Inf",service="dd",call="read"} 3"#,
        r#"iotomy_thread_seconds_total{service="dd"} 1.5"#,
        r#"iotomy_thread_state_seconds_total{service="dd",state="user"} 0.5"#,
        "iotomy_lost_events_total 4",
        "# TYPE iotomy_agent_build info",
        r#"iotomy_agent_call_overhead_seconds{bound="low"} 2.5e-7"#,
        "iotomy_agent_services 1",
        "iotomy_agent_tls_certificate_expiry_time_seconds 1800000000.0",
        r#"iotomy_calls_variance_total{call="read"} 36.0"#,
        "iotomy_agent_budget_ratio 0.01",
        "iotomy_agent_overhead_ratio 0.005",
        "iotomy_agent_sample_factor 4",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn every_sample_is_of_a_declared_metric_and_has_its_labels() {
    let text = exposition("dd", "read");
    let mut left: BTreeSet<&str> = METRICS.iter().map(|one| one.name).collect();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let is_of = |one: &&Metric| one.sample_names().iter().any(|sample| sample == name);
        let metric = METRICS.iter().find(is_of).unwrap_or_else(|| panic!("{line}"));
        left.remove(metric.name);
        let (_, labels) = line.split_once('{').unwrap_or(("", "}"));
        let (labels, _) = labels.split_once('}').unwrap();
        let names = labels.split(',').filter_map(|one| one.split_once('='));
        let names: Vec<&str> = names.map(|(name, _)| name).filter(|name| *name != "le").collect();
        assert_eq!(names, metric.labels, "{line}");
    }
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn hostile_names_stay_in_their_labels() {
    let text = exposition("a\"} 1\nb\\\u{202e}\x1b[31m", "read");
    let line = r#"iotomy_thread_seconds_total{service="a\"} 1\\nb\\\\u{202e}\\x1b[31m"} 1.5"#;
    assert!(text.lines().any(|one| one == line), "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
}
