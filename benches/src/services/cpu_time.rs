//! CPU time of a server, of the observer, of the load generator, and of the whole machine.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

/// A tick of `/proc/*/stat`, in ns.
const TICK_NS: f64 = 1e7;

/// The readings of all clocks at one moment, in ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    server: f64,
    observer: f64,
    children: f64,
    idle: f64,
    at: Instant,
}

/// The CPU time between two moments, in ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spent {
    /// That of the server.
    pub(crate) server: f64,
    /// That of the server, the load generator and the observer.
    pub(crate) all: f64,
    /// That of the machine: everything that was not idle.
    pub(crate) machine: f64,
}

impl Clocks {
    /// Reads the clocks of a server and of an observer, if there is one.
    pub(crate) fn read(server: u32, observer: Option<u32>) -> Result<Self> {
        Ok(Self {
            server: of_server(server)?,
            observer: observer.map_or(Ok(0.0), of_process)?,
            children: of_children()?,
            idle: idle_ns()?,
            at: Instant::now(),
        })
    }

    /// Returns the CPU time since `earlier`. In between, the load generator was started and waited for, and no other
    /// child was waited for.
    pub(crate) fn since(&self, earlier: &Self) -> Spent {
        let server = self.server - earlier.server;
        let others = self.observer - earlier.observer + self.children - earlier.children;
        let wall = self.at.duration_since(earlier.at).as_nanos() as f64;
        let cpus = std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64);
        Spent { server, all: server + others, machine: wall * cpus - (self.idle - earlier.idle) }
    }
}

/// Returns the CPU time of a process with its children: those that live by their clocks, and those that have ended by
/// ticks.
fn of_server(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("the server has ended")?;
    let ended = ticks_of_ended_children(&stat).context("cannot read the server's CPU time")?;
    let mut ns = of_process(pid)? + ended * TICK_NS;
    for child in children(pid) {
        ns += of_process(child).unwrap_or_default();
    }
    Ok(ns)
}

/// Parses `cutime` and `cstime`, the 16th and 17th field of `/proc/PID/stat`; the second one can contain blanks.
fn ticks_of_ended_children(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(13);
    Some(fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?)
}

/// Returns the children of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn of_process(pid: u32) -> Result<f64> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.cast_signed()));
    let now = clock.and_then(nix::time::ClockId::now);
    let now = now.with_context(|| format!("cannot read the CPU clock of process {pid}"))?;
    Ok(now.tv_sec() as f64 * 1e9 + now.tv_nsec() as f64)
}

fn of_children() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("getrusage")?;
    let ns = |time: TimeVal| time.tv_sec() as f64 * 1e9 + time.tv_usec() as f64 * 1e3;
    Ok(ns(usage.user_time()) + ns(usage.system_time()))
}

/// Returns the time in which the CPUs were idle, waited for I/O, or were taken by the hypervisor.
fn idle_ns() -> Result<f64> {
    let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    let of_all = stat.lines().next().unwrap_or_default();
    idle_ticks(of_all).map(|ticks| ticks * TICK_NS).context("cannot read /proc/stat")
}

/// Parses `cpu  user nice system idle iowait irq softirq steal …`.
fn idle_ticks(line: &str) -> Option<f64> {
    let fields: Vec<f64> = line.split_whitespace().skip(1).flat_map(str::parse).collect();
    Some(fields.get(3)? + fields.get(4)? + fields.get(7)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        let stat = "71 (a) b) S 1 71 71 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 1 0 5 6 7";
        assert_eq!(ticks_of_ended_children(stat), Some(15.0));
        assert_eq!(idle_ticks("cpu  1 2 3 400 50 6 7 8 9 10"), Some(458.0));
        assert_eq!(idle_ticks("cpu"), None);
    }

    #[test]
    fn work_of_a_process_is_in_its_clock() {
        let before = Clocks::read(std::process::id(), None).unwrap();
        let mut sum = 0u64;
        while Clocks::read(std::process::id(), None).unwrap().since(&before).server < 1e6 {
            sum = std::hint::black_box(sum + 1);
        }
        let spent = Clocks::read(std::process::id(), None).unwrap().since(&before);
        assert!(spent.server >= 1e6 && spent.all >= spent.server);
    }
}
