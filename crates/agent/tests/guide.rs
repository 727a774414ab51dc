//! docs/agent.md lists the metrics as they are declared; the rules and the dashboard ask for these and for no others.

use std::collections::BTreeSet;
use std::fs;

use iotomy_agent::{
    BOUNDS_NS, By, Endpoint, LISTEN, MAX_SERVICES, METRICS, MOST_CONNECTIONS, OTLP_INTERVAL,
};
use iotomy_test_requirements::guide;
use serde_json::Value;

fn file(path: &str) -> String {
    fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn the_guide_has_every_metric_and_bucket() {
    let header = ["metric", "type", "unit", "labels", "what it is", "from"];
    let rows = METRICS.iter().map(|one| {
        let labels: Vec<String> = one.labels.iter().map(|label| format!("`{label}`")).collect();
        let name = format!("`{}`", one.name);
        let unit = one.unit.name().to_owned();
        let (help, source) = (format!("{}.", one.help), one.source.to_owned());
        vec![name, one.kind.name().to_owned(), unit, labels.join(", "), help, source]
    });
    guide::check("docs/agent.md", "metrics", &guide::table(&header, rows));
    let bounds = BOUNDS_NS.map(|ns| format!("`{}`", ns as f64 / 1e9));
    let line = format!("{}, `+Inf`", bounds.join(", "));
    guide::check("docs/agent.md", "buckets", &[line]);
}

#[test]
fn the_guide_has_the_defaults_and_bounds_that_hold() {
    let guide = file("docs/agent.md");
    for text in [
        format!("listen = \"{LISTEN}\""),
        format!("max-services = {MAX_SERVICES}"),
        format!("targets: [\"{LISTEN}\"]"),
        format!("{MOST_CONNECTIONS} may be open"),
        format!("otlp-interval = {OTLP_INTERVAL} "),
        format!("`--otlp-interval` seconds ({OTLP_INTERVAL})"),
    ] {
        assert!(guide.contains(&text), "{text}");
    }
    let urls: Vec<&str> = guide
        .split("--otlp ")
        .skip(1)
        .filter(|rest| rest.starts_with("http"))
        .filter_map(|rest| rest.split([' ', '`', '\n']).next())
        .collect();
    assert!(urls.len() >= 2 && urls.iter().all(|url| Endpoint::parse(url).is_ok()), "{urls:?}");
    assert!(By::ALL.iter().all(|by| guide.contains(&format!("`--by {}`", by.name()))));
}

/// The names of metrics in a text, and the labels that it names in braces behind them.
fn asked(text: &str) -> Vec<(String, Vec<String>)> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("iotomy_") {
        let (name, behind) =
            rest[at..].split_at(rest[at..].find(|c| !is_name(c)).unwrap_or(rest[at..].len()));
        let selector = behind.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let labels = selector.map_or("", |(labels, _)| labels).split(',');
        let labels = labels.filter_map(|one| one.split(['=', '!']).next());
        let labels = labels.map(|one| one.trim().to_owned()).filter(|one| !one.is_empty());
        found.push((name.to_owned(), labels.collect()));
        rest = behind;
    }
    found
}

/// Panics where a query asks for what no scrape has.
fn check(place: &str, query: &str) -> usize {
    let asked = asked(query);
    for (name, labels) in &asked {
        let metric = METRICS.iter().find(|one| one.sample_names().contains(name));
        let metric = metric.unwrap_or_else(|| panic!("{place}: there is no {name}"));
        for label in labels {
            let is_known = metric.labels.contains(&label.as_str())
                || ["instance", "job"].contains(&label.as_str());
            assert!(is_known, "{place}: {name} has no label {label}");
        }
    }
    asked.len()
}

#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let board: Value = serde_json::from_str(&file("scripts/prometheus/dashboard.json")).unwrap();
    let mut used = 0;
    let mut titles = BTreeSet::new();
    for panel in board["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(titles.insert(title), "{title}");
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            let count = check(title, query);
            assert!(count > 0, "{title}: {query}");
            used += count;
        }
    }
    for variable in board["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["query"]["query"].as_str() {
            assert_eq!(check(variable["name"].as_str().unwrap(), query), 1);
        }
    }
    assert!(used >= 12, "{used}");
}

#[test]
fn the_rules_and_the_guide_ask_for_metrics_that_there_are() {
    let rules = file("scripts/prometheus/rules.yml");
    let alerts = rules.matches("- alert: ").count();
    assert!(alerts >= 8 && rules.matches("expr: ").count() == alerts);
    assert!(check("rules.yml", &rules) >= alerts - 1);
    let guide = file("docs/agent.md");
    let queries = guide.split("```promql\n").skip(1);
    let asked = queries.map(|rest| check("docs/agent.md", rest.split("```").next().unwrap()));
    assert!(asked.sum::<usize>() >= 9);
}
