//! scripts/systemd/iotomy-agent.service: what it runs, and whether its capabilities are enough.

use std::fs;
use std::process::Command;

use clap::Parser as _;
use iotomy_agent::Args;
use iotomy_test_requirements::{Need, skip};

use crate::support::{AGENT, Agent, Program};

const UNIT: &str = "../../scripts/systemd/iotomy-agent.service";

fn unit() -> String {
    fs::read_to_string(UNIT).unwrap()
}

/// The value of a key that is there once.
fn value<'u>(unit: &'u str, key: &str) -> &'u str {
    let mut values = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let value = values.next().unwrap_or_else(|| panic!("there is no {key}"));
    assert!(values.next().is_none(), "{key}");
    value
}

#[test]
fn it_runs_what_is_installed_with_options_that_there_are() {
    let unit = unit();
    let mut words = value(&unit, "ExecStart").split(' ');
    assert_eq!(words.next(), Some("/usr/local/bin/iotomy-agent"));
    let args = Args::try_parse_from(["iotomy-agent"].into_iter().chain(words));
    assert!(args.is_ok(), "{args:?}");
    let capabilities = value(&unit, "AmbientCapabilities");
    assert_eq!(capabilities, value(&unit, "CapabilityBoundingSet"));
}

/// As another user with these, and no others.
#[test]
fn its_capabilities_are_enough_for_every_process_and_its_whole_name() {
    if !nix::unistd::geteuid().is_root() {
        return skip(Need::Root, "not root");
    }
    let unit = unit();
    let capabilities = value(&unit, "AmbientCapabilities").split(' ');
    let names = capabilities.map(|one| format!(",+{}", one.to_lowercase().replace("cap_", "")));
    let only = format!("-all{}", names.collect::<String>());
    let (inherited, ambient) = (format!("--inh-caps={only}"), format!("--ambient-caps={only}"));
    let bounding = format!("--bounding-set={only}");
    // The tree may be where nobody else may go.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let agent = folder.path().join("agent");
    fs::copy(AGENT, &agent).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), open).unwrap();
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"];
    let caps = [&*inherited, &ambient, &bounding];
    let words = [&user[..], &caps, &["--", agent.to_str().unwrap()]].concat();
    let Some(agent) = Agent::start_by(&words, &[]) else { return };
    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
    assert!(status.contains("Uid:\t65534\t65534\t65534\t65534\n"), "{status}");
    // A name that is longer than what the kernel keeps of it.
    let name = format!("a-sleep-with-a-long-name-{}", std::process::id());
    let sleep = Program::copy_of("sleep", name.as_bytes());
    let mut running = sleep.command().arg("1000").spawn().unwrap();
    agent.until("it is counted", |samples| {
        let series = format!("iotomy_thread_seconds_total{{service=\"{name}\"}}");
        (samples.get(&series) > 0.0).then_some(())
    });
    running.kill().unwrap();
    running.wait().unwrap();
    agent.send(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(agent.ended().0.code(), Some(0));
}

#[test]
#[ignore = "needs systemd-analyze: make test-fleet"]
fn fleet_systemd_takes_the_unit() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skip(Need::Programs, "no systemd-analyze: scripts/setup fleet");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("iotomy-agent.service");
    // What it runs is not installed here.
    fs::write(&file, unit().replace("/usr/local/bin/iotomy-agent", AGENT)).unwrap();
    let mut command = Command::new("systemd-analyze");
    let output = command.args(["verify", "--man=no"]).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
}
