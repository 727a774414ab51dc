//! A real collector of OpenTelemetry between the agent and the collector of tests: it takes all that is pushed, and what
//! it sends on is what a scrape has.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use iotomy_test_requirements::wait::until;
use iotomy_test_requirements::{Need, skip};

use crate::otlp::pushed_as_scraped;
use crate::support::cgroup::Cgroup;
use crate::support::collector::Collector;
use crate::support::{AGENT, Agent};

/// What `scripts/setup fleet` has built.
fn otelcol() -> Option<PathBuf> {
    let program = Path::new(AGENT).ancestors().nth(2).unwrap().join("fleet/otelcol");
    if program.exists() {
        return Some(program);
    }
    skip(Need::Machine, "no collector of OpenTelemetry: scripts/setup fleet, with Go 1.26");
    None
}

/// A collector that is ended with the test.
struct Relay {
    child: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl Relay {
    fn to(program: &Path, collector: &Collector) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let config = folder.path().join("otelcol.yaml");
        let text = format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: '{address}'}}}}}}}}\n\
             exporters: {{otlp_http: {{endpoint: '{}', compression: none}}}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}}}\n  \
             pipelines: {{metrics: {{receivers: [otlp], exporters: [otlp_http]}}}}\n",
            collector.url()
        );
        fs::write(&config, text).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command.arg(format!("--config=file:{}", config.to_str().unwrap()));
        let log = fs::File::create(folder.path().join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut child = command.spawn().unwrap();
        until("the collector listens", || {
            let log = fs::read_to_string(folder.path().join("log")).unwrap();
            assert!(child.try_wait().unwrap().is_none(), "{log}");
            TcpStream::connect(address).is_ok()
        });
        Self { child, url: format!("http://{address}"), _folder: folder }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs a collector of OpenTelemetry: make test-fleet"]
fn fleet_a_collector_of_opentelemetry_takes_all_that_a_scrape_has() {
    let Some(program) = otelcol() else { return };
    let Some(cgroup) = Cgroup::new("otelcol") else { return };
    let collector = Collector::replying([]);
    let relay = Relay::to(&program, &collector);
    let words = ["--otlp", &*relay.url, "--otlp-interval", "1", "--cgroup", &cgroup.path];
    let Some(agent) = Agent::start(&words) else { return };
    let pushed = pushed_as_scraped(&agent, &cgroup, &collector);
    // Of the agent itself, every series that a scrape has.
    let scrape = agent.scrape();
    for (name, _) in scrape.iter() {
        assert!(pushed.values.contains_key(name), "{name}");
    }
    assert_eq!(pushed.resource["service.name"], "iotomy-agent");
    assert_eq!(pushed.starts.len(), 1);
    let of = |outcome: &str| {
        scrape.get(&format!("iotomy_agent_otlp_pushes_total{{outcome=\"{outcome}\"}}"))
    };
    assert!(of("taken") >= 1.0 && of("failed") + of("refused") == 0.0, "{}", scrape.text);
}
