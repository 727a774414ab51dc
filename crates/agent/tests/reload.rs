//! SIGHUP: what is followed, and what is not.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;

use crate::support::cgroup::Cgroup;
use crate::support::{Agent, Program, Samples};

/// The file of an agent.
struct Config {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Config {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = Self { path: folder.path().join("agent.toml"), _folder: folder };
        config.write(text);
        config
    }

    fn write(&self, text: &str) {
        fs::write(&self.path, text).unwrap();
    }

    fn agent(&self) -> Option<Agent> {
        Agent::start(&["--config", self.path.to_str().unwrap()])
    }
}

#[test]
fn a_file_that_is_wrong_changes_nothing_and_is_told() {
    let config = Config::new("max-services = 50\n");
    let Some(agent) = config.agent() else { return };
    let reloaded = "iotomy_agent_config_last_reload_successful";
    assert_eq!(agent.scrape().get(reloaded), 1.0);
    let path = config.path.to_str().unwrap();
    for (text, said) in [
        (
            "\nmax-service = 1\n",
            format!("invalid configuration {path}: line 2: there is no option"),
        ),
        ("listen = 'localhost:1'", String::from("line 1: listen: invalid address")),
        ("token-file = 'no-such'", String::from("cannot read the token in ")),
        ("tls-key = 'k'", String::from("tls-key is given without tls-cert")),
        ("by = 'title'", String::from("by: to change image to title takes a restart")),
        (
            "cgroup = '/no-such-*'",
            String::from("cannot find control groups by the pattern /no-such-*"),
        ),
        ("cgroup", String::from("line 1: ")),
    ] {
        config.write(text);
        agent.send(Signal::SIGHUP);
        let all = agent.until_said(&said);
        let line = all.lines().find(|line| line.contains(&said)).unwrap();
        assert!(line.starts_with("iotomy: SIGHUP: the configuration stays as it was: "), "{line}");
        assert_eq!(agent.scrape().get(reloaded), 0.0, "{text}");
    }
    config.write("max-services = 60\n");
    agent.send(Signal::SIGHUP);
    agent.until_said("SIGHUP: the configuration was read again");
    let samples = agent.scrape();
    assert_eq!(samples.get(reloaded), 1.0);
    assert_eq!(samples.get("iotomy_agent_watches_total"), 1.0);
    agent.send(Signal::SIGTERM);
    assert_eq!(agent.ended().0.code(), Some(0));
}

#[test]
fn a_higher_bound_on_services_holds_for_those_that_come() {
    let config = Config::new("max-services = 1\n");
    let Some(agent) = config.agent() else { return };
    let dd = Program::unique("dd");
    dd.dd(1);
    agent.until("dd is among the others", |samples| {
        (samples.get("iotomy_agent_services_in_other") > 0.0).then_some(())
    });
    config.write("max-services = 10000\n");
    agent.send(Signal::SIGHUP);
    agent.until_said("was read again");
    dd.dd(1);
    agent.until("dd has a label", |samples| (samples.calls(&dd.name, "write") > 0).then_some(()));
}

#[test]
fn a_budget_may_change_and_another_watch_begins_where_there_was_none() {
    let config = Config::new("budget = '100%'\n");
    let Some(agent) = config.agent() else { return };
    let of_agent = |samples: &Samples, name: &str| samples.get(&format!("iotomy_agent_{name}"));
    assert_eq!(of_agent(&agent.scrape(), "sample_factor"), 1.0);
    config.write("budget = '0.0001%'\n");
    agent.send(Signal::SIGHUP);
    let samples = agent.until("less of the time counts", |samples| {
        (of_agent(samples, "sample_factor") > 1.0).then(|| samples.clone())
    });
    assert_eq!(of_agent(&samples, "budget_ratio"), 0.000_001);
    assert_eq!(of_agent(&samples, "watches_total"), 1.0);
    // Without a budget, all calls count, and nothing is said of one.
    config.write("");
    agent.send(Signal::SIGHUP);
    let samples = agent.until("another watch has begun", |samples| {
        (of_agent(samples, "watches_total") == 2.0).then(|| samples.clone())
    });
    assert!(!samples.text.contains("\niotomy_agent_sample_factor "), "{}", samples.text);
    let dd = Program::unique("dd");
    dd.dd(0);
    let own = agent.settled(|samples| {
        let writes = samples.calls(&dd.name, "write");
        (samples.calls(&dd.name, "close") > 0).then_some(writes)
    });
    dd.dd(300);
    agent.until("its writes are counted", |samples| {
        (samples.calls(&dd.name, "write") == 2 * own + 300).then_some(())
    });
}

#[test]
fn only_the_processes_of_the_control_groups_are_counted_and_those_of_another_after_a_reload() {
    let (Some(first), Some(second)) = (Cgroup::new("reload"), Cgroup::new("reload")) else {
        return;
    };
    let config = Config::new(&format!("cgroup = '{}'\n", first.path));
    let Some(agent) = config.agent() else { return };
    let (inside, outside) = (Program::unique("dd"), Program::copy_of("dd", b"dd-outside"));
    outside.dd(50);
    first.dd(&inside, 0);
    let own = agent.until("dd is counted", |samples| {
        let calls = samples.calls(&inside.name, "close");
        (calls > 0).then(|| samples.calls(&inside.name, "write"))
    });
    assert_eq!(own, 0);
    first.dd(&inside, 300);
    let before = agent.until("dd is counted again", |samples| {
        (samples.calls(&inside.name, "write") == 300).then(|| samples.clone())
    });
    // Both, by a pattern: another watch, whose counts are added to those of the first.
    let pattern = format!("{}-*", first.path.rsplit_once('-').unwrap().0);
    config.write(&format!("cgroup = ['{pattern}']\n"));
    agent.send(Signal::SIGHUP);
    agent.until_said("watching 2 control groups");
    second.dd(&inside, 40);
    let after = agent.until("both groups are counted", |samples| {
        (samples.calls(&inside.name, "write") == 340).then(|| samples.clone())
    });
    after.assert_not_before(&before);
    assert_eq!(after.get("iotomy_agent_watches_total"), 2.0);
    // The shell that became it was there, too; nobody else was.
    assert_eq!(after.calls(&outside.name, "write"), 0);
    // The same groups again are no reason for another watch.
    agent.send(Signal::SIGHUP);
    agent.until("the reload is over", |samples| {
        (agent.said().matches("was read again").count() == 2)
            .then(|| assert_eq!(samples.get("iotomy_agent_watches_total"), 2.0))
    });
    agent.send(Signal::SIGTERM);
    assert_eq!(agent.ended().0.code(), Some(0));
}
