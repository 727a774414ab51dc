//! How the agent ends, and what it leaves.

use std::os::unix::process::ExitStatusExt;

use nix::sys::signal::Signal;

use crate::support::Agent;
use crate::support::attached::Attached;

fn attached(agent: &Agent) -> Attached {
    let held = Attached::to(agent.pid());
    assert!(held.has("prog") && held.has("link") && held.has("map"), "{held:?}");
    held
}

#[test]
fn a_signal_ends_it_with_status_0_and_nothing_left() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let Some(agent) = Agent::start(&[]) else { return };
        let (held, address) = (attached(&agent), agent.address);
        agent.scrape();
        agent.send(signal);
        let (status, said) = agent.ended();
        assert_eq!(status.code(), Some(0), "{signal}: {said}");
        assert_eq!(said.lines().count(), 2, "{said}");
        held.until_gone();
        assert!(std::net::TcpStream::connect(address).is_err());
    }
}

#[test]
fn a_signal_ends_it_while_clients_are_connected() {
    let Some(agent) = Agent::start(&[]) else { return };
    let clients: Vec<_> = (0..5).map(|_| agent.connect()).collect();
    agent.send(Signal::SIGTERM);
    let (status, said) = agent.ended();
    assert_eq!(status.code(), Some(0), "{said}");
    drop(clients);
}

#[test]
fn nothing_stays_in_the_kernel_when_it_is_killed() {
    let Some(agent) = Agent::start(&[]) else { return };
    let held = attached(&agent);
    agent.scrape();
    agent.send(Signal::SIGKILL);
    let (status, _) = agent.ended();
    assert_eq!(status.signal(), Some(Signal::SIGKILL as i32));
    held.until_gone();
}
