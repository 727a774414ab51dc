//! `steal-time`: holds the CPUs up until it ends, as a host does that shares them among guests: a quarter of the
//! time, up to 8 ms at once, with interrupts off and unseen by the scheduler. `scripts/test-conditions stolen` runs
//! the tests beside it.

use std::os::fd::OwnedFd;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use iotomy_benches::programs::{self, Aligned, attach_to};
use iotomy_benches::run::ended;
use iotomy_sys::perf_event::{Scope, Ticker, open_sampler};
use libbpf_rs::Link;

/// Ticks a second: one of 16 is held up for 4 ms on average.
const RATE: u32 = 1_000;
/// More CPUs than any machine has.
const CPUS: u32 = 8_192;

static STEAL: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/steal.bpf.o")));

fn main() -> ExitCode {
    ended("steal-time", steal().map(|()| ExitCode::SUCCESS))
}

fn steal() -> Result<()> {
    let object = programs::load("steal", STEAL)?;
    let open = |cpu| open_sampler(Ticker::CpuClock, Scope::Cpu(cpu), RATE).ok();
    let events: Vec<OwnedFd> = (0..CPUS).filter_map(open).collect();
    if events.is_empty() {
        bail!("cannot open a perf event on a CPU");
    }
    let mut links: Vec<Link> = Vec::new();
    for program in object.progs_mut() {
        if program.name() == "on_timer" {
            links.push(program.attach().context("cannot attach to the timers")?);
        } else {
            for event in &events {
                links.push(attach_to(&program, event)?);
            }
        }
    }
    println!("steal-time: {} CPUs are held up", events.len());
    loop {
        std::thread::park();
    }
}
