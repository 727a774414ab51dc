//! Pushes over OTLP: what a collector gets, and what collectors that misbehave do to the agent.

use std::net::TcpListener;
use std::time::Duration;

use iotomy_test_requirements::wait::until;
use nix::sys::signal::Signal;

use crate::support::cgroup::Cgroup;
use crate::support::collector::{Collector, Reply};
use crate::support::pushed::Pushed;
use crate::support::{Agent, Program, Samples};

/// An agent of a control group of its own, which pushes each second.
fn small(url: &str) -> Option<(Agent, Cgroup)> {
    let cgroup = Cgroup::new("otlp")?;
    let words = ["--otlp", url, "--otlp-interval", "1", "--cgroup", &cgroup.path];
    Some((Agent::start(&words)?, cgroup))
}

fn pushes(samples: &Samples, outcome: &str) -> u64 {
    samples.get(&format!("iotomy_agent_otlp_pushes_total{{outcome=\"{outcome}\"}}")) as u64
}

/// A push that has of a program what a scrape has.
pub(crate) fn pushed_as_scraped(agent: &Agent, cgroup: &Cgroup, collector: &Collector) -> Pushed {
    let dd = Program::unique("dd");
    cgroup.dd(&dd, 4_000);
    let of_scrape = agent
        .settled(|samples| (samples.calls(&dd.name, "close") > 0).then(|| samples.of(&dd.name)));
    assert!(of_scrape.calls(&dd.name, "write") >= 4_000);
    let values = of_scrape.iter().map(|(name, value)| (name.to_owned(), value)).collect();
    collector.until("a push has the same", |pushed| {
        (pushed.of(&dd.name) == values).then(|| pushed.clone())
    })
}

#[test]
fn a_collector_gets_what_a_scrape_has() {
    let collector = Collector::replying([]);
    let Some((agent, cgroup)) = small(&collector.url()) else { return };
    let pushed = pushed_as_scraped(&agent, &cgroup, &collector);
    let scrape = agent.scrape();
    let began = scrape.get("iotomy_agent_start_time_seconds");
    let [start] = pushed.starts[..] else { panic!("{:?}", pushed.starts) };
    assert!((start as f64 / 1e9 - began).abs() < 1e-3, "{start} {began}");
    assert_eq!(pushed.resource["service.name"], "iotomy-agent");
    let instance = format!("{}:{}", pushed.resource["host.name"], agent.address.port());
    assert_eq!(pushed.resource["service.instance.id"], instance);
    let head = collector.pushes().remove(0).head;
    assert!(head.starts_with("post /v1/metrics http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
    assert!(head.contains(&format!("host: {}\r\n", collector.address)), "{head}");
    agent.until("they are counted", |samples| (pushes(samples, "taken") > 0).then_some(()));
    assert_eq!(pushes(&agent.scrape(), "failed") + pushes(&agent.scrape(), "refused"), 0);
}

/// The last push has what came since the one before, an hour of an interval or not.
#[test]
fn what_was_counted_until_the_end_is_pushed() {
    let collector = Collector::replying([]);
    let Some(cgroup) = Cgroup::new("otlp-end") else { return };
    let url = collector.url();
    let words = ["--otlp", &*url, "--otlp-interval", "3600", "--cgroup", &cgroup.path];
    let Some(agent) = Agent::start(&words) else { return };
    collector.until_came(1);
    let dd = Program::unique("dd");
    cgroup.dd(&dd, 300);
    // A look that comes while it ends may miss it.
    agent.until("it is counted", |samples| (samples.calls(&dd.name, "write") == 300).then_some(()));
    agent.send(Signal::SIGTERM);
    let (status, said) = agent.ended();
    assert_eq!(status.code(), Some(0), "{said}");
    let pushes = collector.pushes();
    assert_eq!(pushes.len(), 2);
    assert_eq!(Pushed::decode(&pushes[1].body).calls(&dd.name, "write"), 300);
}

/// Another watch adds to the sums of the one before, so these are since the agent began.
#[test]
fn sums_and_their_start_stay_when_another_watch_begins() {
    let (Some(first), Some(second)) = (Cgroup::new("otlp-a"), Cgroup::new("otlp-b")) else {
        return;
    };
    let collector = Collector::replying([]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    let text = |cgroup: &str| {
        let otlp = format!("otlp = '{}'\notlp-interval = 1\n", collector.url());
        std::fs::write(&file, format!("{otlp}cgroup = '{cgroup}'\n")).unwrap();
    };
    text(&first.path);
    let Some(agent) = Agent::start(&["--config", file.to_str().unwrap()]) else { return };
    let dd = Program::unique("dd");
    first.dd(&dd, 200);
    let before = collector.until("the first is counted", |pushed| {
        (pushed.calls(&dd.name, "write") == 200).then(|| pushed.clone())
    });
    text(&second.path);
    agent.send(Signal::SIGHUP);
    agent.until("another watch began", |samples| {
        (samples.get("iotomy_agent_watches_total") == 2.0).then_some(())
    });
    second.dd(&dd, 30);
    let after = collector.until("the second is counted", |pushed| {
        (pushed.calls(&dd.name, "write") == 230).then(|| pushed.clone())
    });
    assert_eq!(before.starts, after.starts);
    // Where it is pushed takes a restart.
    std::fs::write(&file, format!("otlp = 'http://127.0.0.1:9'\ncgroup = '{}'\n", second.path))
        .unwrap();
    agent.send(Signal::SIGHUP);
    agent.until_said("otlp and otlp-interval: to change them takes a restart of the agent");
}

#[test]
fn a_collector_that_has_no_room_is_tried_again_with_newer_counts() {
    let refusals = [429, 502, 503, 504].map(|status| Reply::status(status, ""));
    let collector = Collector::replying(refusals);
    let Some((agent, _cgroup)) = small(&collector.url()) else { return };
    let samples = agent
        .until("one is taken", |samples| (pushes(samples, "taken") > 0).then(|| samples.clone()));
    assert_eq!((pushes(&samples, "failed"), pushes(&samples, "refused")), (4, 0));
    let said = agent.said();
    assert_eq!(said.matches("cannot push metrics").count(), 1, "{said}");
    assert!(said.contains("429 Too Many Requests; trying again"), "{said}");
    agent.until_said("metrics are pushed to");
    agent.until_said("/v1/metrics again");
    // None was kept: each has the counts of its own time.
    let scrapes = |push: &crate::support::collector::Push| Pushed::decode(&push.body).values["iotomy_agent_cpu_seconds_total"];
    let cpu: Vec<f64> = collector.pushes().iter().map(scrapes).collect();
    assert!(cpu.windows(2).all(|two| two[0] < two[1]), "{cpu:?}");
}

#[test]
fn a_collector_that_asks_for_time_gets_it() {
    let collector = Collector::replying([Reply::status(503, "retry-after: 4\r\n")]);
    let Some((_agent, _cgroup)) = small(&collector.url()) else { return };
    let pushes = collector.until_came(2);
    // On the same clock: no earlier than it was asked.
    let waited = pushes[1].at - pushes[0].at;
    assert!(waited >= Duration::from_millis(3_900), "{waited:?}");
}

#[test]
fn what_a_collector_refuses_is_not_tried_again_before_the_interval() {
    let collector =
        Collector::replying([400, 404, 302, 500].map(|status| Reply::status(status, "")));
    let Some((agent, _cgroup)) = small(&collector.url()) else { return };
    let samples = agent
        .until("one is taken", |samples| (pushes(samples, "taken") > 0).then(|| samples.clone()));
    assert_eq!((pushes(&samples, "failed"), pushes(&samples, "refused")), (0, 4));
    let said = agent.said();
    assert!(said.contains("400 Bad Request") && !said.contains("404 Not Found"), "{said}");
}

#[test]
fn answers_that_are_none_harm_nobody() {
    let page = "<html>hello</html>";
    let page = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{page}", page.len());
    let endless = [b"HTTP/1.1 200 OK\r\n\r\n", &[b'x'; 1 << 20][..]].concat();
    let long = [b"HTTP/1.1 200 OK\r\nx: ", &[b'y'; 1 << 20][..]].concat();
    let none = || Reply::Bytes(Vec::new());
    let replies = [
        Reply::Bytes(page.into_bytes()),
        Reply::Close,
        Reply::Bytes(b"\x16\x03\x01\xff\0garbage\r\n\r\n".to_vec()),
        Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\ncut".to_vec()),
        Reply::Bytes(endless),
        Reply::Bytes(long),
    ];
    let never = std::iter::repeat_with(none).take(1_000);
    let collector = Collector::replying(replies.into_iter().chain(never));
    let Some((agent, _cgroup)) = small(&collector.url()) else { return };
    agent.until_said("none of OTLP: is it a collector's URL?");
    let mut before = agent.scrape();
    collector.until_came(3);
    for _ in 0..5 {
        let now = agent.scrape();
        now.assert_not_before(&before);
        before = now;
    }
    assert_eq!(pushes(&before, "refused"), 1, "{}", before.text);
    assert!(pushes(&before, "failed") >= 1, "{}", before.text);
    assert_eq!(pushes(&before, "taken"), 0, "{}", before.text);
}

#[test]
fn a_collector_that_stalls_is_left_and_scrapes_go_on() {
    let collector = Collector::replying([Reply::Stall]);
    let Some((agent, _cgroup)) = small(&collector.url()) else { return };
    collector.until_came(1);
    for _ in 0..5 {
        assert_eq!(pushes(&agent.scrape(), "taken"), 0);
    }
    agent.until("it was left", |samples| (pushes(samples, "failed") == 1).then_some(()));
    agent.until_said("no answer within 10 s; trying again");
    agent.until("the next one is taken", |samples| (pushes(samples, "taken") > 0).then_some(()));
}

#[test]
fn a_collector_that_comes_later_gets_all_and_nothing_is_left_open() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let Some((agent, cgroup)) = small(&format!("http://{address}")) else { return };
    let dd = Program::unique("dd");
    cgroup.dd(&dd, 50);
    agent.until("some have failed", |samples| (pushes(samples, "failed") >= 2).then_some(()));
    assert!(agent.said().contains("Connection refused (os error 111); trying again"));
    // A push may be under way at one of the looks.
    let before = (0..5).map(|_| agent.descriptors_at_rest()).min().unwrap();
    let collector = Collector::at(&address, []);
    collector.until("what was counted before is there", |pushed| {
        (pushed.calls(&dd.name, "write") == 50).then_some(())
    });
    collector.until_came(3);
    until("none of them is open", || agent.descriptors() == before);
    assert_eq!(pushes(&agent.scrape(), "refused"), 0);
}

#[test]
fn the_end_is_not_held_up_by_a_collector() {
    let collector = Collector::replying(vec![Reply::Stall; 100]);
    let Some((agent, _cgroup)) = small(&collector.url()) else { return };
    collector.until_came(1);
    agent.send(Signal::SIGTERM);
    let (status, said) = agent.ended();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("cannot push the last counts to http://"), "{said}");
}
