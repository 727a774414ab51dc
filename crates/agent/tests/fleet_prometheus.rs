//! Debian's Prometheus scrapes an agent for a minute beside a load: what its queries give is what a second watch, and the
//! load itself, have counted.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iotomy_observe::{
    Request, Selection, TakeSnapshot, Target, Viewer, ViewerRequest, WatchStart, observer,
};
use iotomy_record::Trace;
use iotomy_test_requirements::wait::{until, until_some};
use iotomy_test_requirements::{Need, skip};
use serde_json::Value;

use crate::support::{Agent, Program, answer};

/// How long the load goes on.
const LOAD: Duration = Duration::from_secs(60);

/// Writes of each program of the load.
const WRITES: u64 = 20_000;

fn root() -> String {
    format!("{}/../..", env!("CARGO_MANIFEST_DIR"))
}

fn has_prometheus() -> bool {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let is_there = is_there("prometheus") && is_there("promtool");
    if !is_there {
        skip(Need::Programs, "no Prometheus: scripts/setup fleet");
    }
    is_there
}

/// A Prometheus that scrapes one agent each second, ended with the test.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    fn scraping(agent: &Agent) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let config = folder.path().join("prometheus.yml");
        let rules = Path::new(&root()).canonicalize().unwrap().join("scripts/prometheus/rules.yml");
        let text = format!(
            "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\nrule_files: [{rules:?}]\nscrape_configs:\n  \
             - job_name: iotomy\n    static_configs:\n      - targets: [\"{}\"]\n",
            agent.address
        );
        fs::write(&config, text).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "prometheus"]);
        command.arg(format!("--config.file={}", config.to_str().unwrap()));
        command
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").to_str().unwrap()));
        command.arg(format!("--web.listen-address={address}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        until("Prometheus listens", || {
            assert!(child.try_wait().unwrap().is_none(), "Prometheus has ended");
            TcpStream::connect(address).is_ok()
        });
        Self { child, address, _folder: folder }
    }

    /// What its API gives for a path.
    fn get(&self, path: &str) -> Value {
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let answer = answer(TcpStream::connect(self.address).unwrap(), request.as_bytes());
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str(body).unwrap_or(Value::Null)
    }

    /// The rows of a query now: labels and value.
    fn rows(&self, query: &str) -> Vec<(BTreeMap<String, String>, f64)> {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let found = self.get(&format!("/api/v1/query?query={escaped}"));
        assert_eq!(found["status"], "success", "{query}: {found}");
        let rows = found["data"]["result"].as_array().unwrap().iter();
        let row = |row: &Value| {
            let labels = serde_json::from_value(row["metric"].clone()).unwrap();
            (labels, row["value"][1].as_str().unwrap().parse().unwrap())
        };
        rows.map(row).collect()
    }

    /// The one value of a query, 0 for none.
    fn value(&self, query: &str) -> f64 {
        match &*self.rows(query) {
            [] => 0.0,
            [(_, value)] => *value,
            several => panic!("{query}: {several:?}"),
        }
    }

    /// Its rows by a label, added up.
    fn by(&self, label: &str, query: &str) -> BTreeMap<String, u64> {
        let rows = self.rows(&format!("sum by ({label}) ({query})"));
        rows.into_iter()
            .map(|(mut labels, value)| (labels.remove(label).unwrap(), value as u64))
            .collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A second watch, of the programs of a name, until it is told to end.
struct SecondWatch {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Trace>,
}

struct UntilTold {
    begins: Sender<()>,
    ends: Arc<AtomicBool>,
}

impl Viewer for UntilTold {
    fn begin(&mut self, _: &WatchStart) {
        self.begins.send(()).unwrap();
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn deadline(&self) -> Option<Instant> {
        Some(Instant::now() + Duration::from_millis(100))
    }

    fn update(&mut self, _: Option<&mut TakeSnapshot<'_>>) -> ViewerRequest {
        if self.ends.load(Ordering::Relaxed) { ViewerRequest::End } else { ViewerRequest::GoOn }
    }

    fn takes_signal(&mut self, _: i32) -> bool {
        false
    }
}

impl SecondWatch {
    fn of(name: &str) -> Self {
        let names = vec![name.parse().unwrap()];
        let target = Target::Running(Selection { names, ..Selection::default() });
        let ends = Arc::<AtomicBool>::default();
        let (begins, began) = channel();
        let mut viewer = UntilTold { begins, ends: ends.clone() };
        let watch = move || {
            let request = Request::new(target);
            observer("bpf").unwrap().watch_before(&request, Some(&mut viewer)).unwrap()
        };
        let thread = std::thread::spawn(watch);
        began.recv().unwrap();
        Self { ends, thread }
    }

    fn end(self) -> Trace {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// What `after` has beyond `before`, without what has not changed.
fn more(after: BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let more = after.into_iter().map(|(name, now)| {
        let then = before.get(&name).copied().unwrap_or(0);
        (name, now - then)
    });
    more.filter(|(_, count)| *count > 0).collect()
}

/// Sums of a trace, without those that are 0.
fn sums<'t>(rows: impl Iterator<Item = (&'t String, u64)>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (name, count) in rows.filter(|(_, count)| *count > 0) {
        *sums.entry(name.clone()).or_default() += count;
    }
    sums
}

#[test]
#[ignore = "needs Prometheus: make test-fleet"]
fn fleet_prometheus_has_the_counts_of_the_load_and_of_a_second_watch() {
    if !has_prometheus() {
        return;
    }
    let Some(agent) = Agent::start(&[]) else { return };
    let prometheus = Prometheus::scraping(&agent);
    let dd = Program::unique("dd");
    let of = |metric: &str| format!("{metric}{{service=\"{}\"}}", dd.name);
    let writes = format!("iotomy_calls_total{{service=\"{}\",call=\"write\"}}", dd.name);
    dd.dd(WRITES);
    until("Prometheus has the first dd", || prometheus.value(&writes) >= WRITES as f64);
    // What its start and its end take comes with its writes or a moment later.
    let settled = || {
        let calls = || prometheus.by("call", &of("iotomy_calls_total"));
        let scrapes = || prometheus.value("iotomy_agent_scrapes_total");
        until_some("the counts stay", || {
            let (before, at) = (calls(), scrapes());
            until("there are more scrapes", || scrapes() >= at + 3.0);
            Some(before).filter(|before| *before == calls())
        })
    };
    let calls_before = settled();
    let errors_before = prometheus.by("errno", &of("iotomy_call_errors_total"));
    let bytes_before = prometheus.by("call", &of("iotomy_call_bytes_total"));

    let watch = SecondWatch::of(&dd.name);
    let began = Instant::now();
    let mut runs = 0;
    while began.elapsed() < LOAD {
        dd.dd(WRITES);
        assert!(!dd.run(&["if=/nowhere"]).success());
        runs += 1;
    }
    let expected = calls_before["write"] + runs * WRITES;
    until("Prometheus has all of the load", || prometheus.value(&writes) >= expected as f64);
    let calls_after = settled();
    let trace = watch.end();

    // Each dd that fails says so in some writes.
    let calls = more(calls_after, &calls_before);
    assert!(calls["write"] >= runs * WRITES, "{calls:?}");
    assert!(runs > 0 && trace.observer.lost_events == 0);
    // The execve that begins a dd is this process's call in a watch of the machine, and unseen before it in one of dd.
    let of_dd = trace.calls.iter().filter(|one| one.syscall != "execve");
    assert_eq!(calls, sums(of_dd.map(|one| (&one.syscall, one.calls))));
    let bytes = more(prometheus.by("call", &of("iotomy_call_bytes_total")), &bytes_before);
    assert_eq!(bytes, sums(trace.calls.iter().map(|one| (&one.syscall, one.bytes))));
    let errors = more(prometheus.by("errno", &of("iotomy_call_errors_total")), &errors_before);
    let kinds = trace.calls.iter().flat_map(|one| one.error_kinds.iter());
    assert_eq!(errors, sums(kinds.map(|(name, count)| (name, *count))));
    assert!(errors["ENOENT"] >= runs);
    // A histogram has the calls, however they are asked for.
    let whole = prometheus.by("call", &of("iotomy_calls_total"));
    assert_eq!(prometheus.by("call", &of("iotomy_call_duration_seconds_count")), whole);
    let infinite = format!("service=\"{}\",le=\"+Inf\"", dd.name);
    let infinite = format!("iotomy_call_duration_seconds_bucket{{{infinite}}}");
    assert_eq!(prometheus.by("call", &infinite), whole);
    let slow = format!(
        "histogram_quantile(0.99, sum by (le) (rate({}[1m])))",
        of("iotomy_call_duration_seconds_bucket")
    );
    assert!(prometheus.value(&slow) > 0.0);
    assert_eq!(prometheus.value("up{job=\"iotomy\"}"), 1.0);
    assert_eq!(prometheus.value("min_over_time(up{job=\"iotomy\"}[1m])"), 1.0);

    the_rules_are_evaluated(&prometheus);
    the_dashboard_is_answered(&prometheus);
}

fn the_rules_are_evaluated(prometheus: &Prometheus) {
    let rules = || {
        let groups = prometheus.get("/api/v1/rules");
        let groups = groups["data"]["groups"].as_array().unwrap().clone();
        groups.iter().flat_map(|one| one["rules"].as_array().unwrap().clone()).collect::<Vec<_>>()
    };
    until("the rules are evaluated", || rules().iter().all(|one| one["health"] != "unknown"));
    let rules = rules();
    assert!(rules.len() >= 8);
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
        let is_quiet = ["IotomyAgentDown", "IotomyEventsLost", "IotomyConfigurationNotFollowed"];
        if is_quiet.contains(&rule["name"].as_str().unwrap()) {
            assert_eq!(rule["state"], "inactive", "{rule}");
        }
    }
}

fn the_dashboard_is_answered(prometheus: &Prometheus) {
    let board = fs::read(format!("{}/scripts/prometheus/dashboard.json", root())).unwrap();
    let board: Value = serde_json::from_slice(&board).unwrap();
    for panel in board["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap().replace("$__rate_interval", "1m");
            let query = query.replace("$instance", ".*").replace("$service", ".*");
            let rows = prometheus.rows(&query);
            // Nobody may have synced anything, and this agent has no budget.
            let may_be_empty = ["fsync", "_ratio", "sample_factor"];
            let may_be_empty = may_be_empty.iter().any(|part| query.contains(part));
            assert!(!rows.is_empty() || may_be_empty, "{query}");
        }
    }
}

#[test]
#[ignore = "needs Prometheus: make test-fleet"]
fn fleet_promtool_takes_the_rules() {
    if !has_prometheus() {
        return;
    }
    let rules = format!("{}/scripts/prometheus/rules.yml", root());
    let output = Command::new("promtool").args(["check", "rules", &rules]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let alerts = fs::read_to_string(&rules).unwrap().matches("- alert: ").count();
    assert!(said.contains(&format!("SUCCESS: {alerts} rules found")), "{said}");
}
