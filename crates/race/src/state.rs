//! The machine during a round of runs: what others did to it.
//!
//! Read between runs only. The kernel counts CPU time in `/proc/stat` by ticks, so the figures of a
//! short round are coarse; a round is called disturbed only for more than a tick can explain.

use iotomy_record::State;

/// The counters at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    at_ns: u64,
    busy_ns: Option<u64>,
    steal_ns: Option<u64>,
    memory_stall_ns: Option<u64>,
}

/// `USER_HZ`, in which `/proc/stat` counts on every architecture there is.
const TICK_NS: u64 = 10_000_000;

/// The share of its wall time that a round may lose to others before it counts as disturbed.
const TOLERATED: f64 = 0.10;

pub(super) fn read() -> Reading {
    let stat = iotomy_host::kernel_text("/proc/stat").unwrap_or_default();
    let pressure = iotomy_host::kernel_text("/proc/pressure/memory").unwrap_or_default();
    let (busy_ns, steal_ns) = cpu(&stat).map_or((None, None), |(b, s)| (Some(b), Some(s)));
    Reading {
        at_ns: iotomy_sys::timed::now_ns(),
        busy_ns,
        steal_ns,
        memory_stall_ns: stall(&pressure),
    }
}

/// The state from one reading to another; `own_ns` is the CPU time the runs had.
pub(super) fn between(from: &Reading, to: &Reading, own_ns: u64) -> State {
    let since = |from: Option<u64>, to: Option<u64>| Some(to?.saturating_sub(from?));
    let meminfo = iotomy_host::kernel_text("/proc/meminfo").unwrap_or_default();
    State {
        wall_ns: to.at_ns.saturating_sub(from.at_ns),
        other_cpu_ns: since(from.busy_ns, to.busy_ns).map(|busy| busy.saturating_sub(own_ns)),
        steal_ns: since(from.steal_ns, to.steal_ns),
        memory_stall_ns: since(from.memory_stall_ns, to.memory_stall_ns),
        frequency_khz: frequency(),
        dirty_bytes: dirty(&meminfo),
    }
}

/// The disturbances of a round, in a few words each.
pub(super) fn disturbances(state: &State, cpus: u32) -> Vec<String> {
    let wall = state.wall_ns.max(1) as f64;
    let share = |ns: Option<u64>, ticks: u64| {
        let ns = ns.filter(|ns| *ns > ticks * TICK_NS).unwrap_or(0);
        // Ticks of a short round come to more time than it had.
        (ns as f64 / wall).min(cpus.max(1).into())
    };
    let mut found = Vec::new();
    // Others disturb when they leave less than a CPU over: half a CPU of the machine's is the bound
    // on a small machine, and more on a large one.
    let others = share(state.other_cpu_ns, 3);
    let free = f64::from(cpus.max(1)) - others;
    if others > TOLERATED * 5.0 && free < f64::from(cpus.max(2)) * 0.75 {
        found.push(format!("others had {:.0} % of a CPU", others * 100.0));
    }
    let steal = share(state.steal_ns, 2);
    if steal > TOLERATED / 2.0 {
        found.push(format!("the hypervisor took {:.0} % of a CPU", steal * 100.0));
    }
    let stall = state.memory_stall_ns.unwrap_or(0) as f64 / wall;
    if stall > TOLERATED / 2.0 {
        found.push(format!("memory was short {:.0} % of the time", stall * 100.0));
    }
    found
}

/// Busy and stolen time of all CPUs.
fn cpu(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let at = |place: usize| ticks.get(place).copied();
    let busy = at(0)? + at(1)? + at(2)? + at(5)? + at(6)?;
    Some((busy * TICK_NS, at(7)? * TICK_NS))
}

fn stall(pressure: &str) -> Option<u64> {
    let line = pressure.lines().find(|line| line.starts_with("some "))?;
    let us: u64 = line.split("total=").nth(1)?.trim().parse().ok()?;
    Some(us * 1_000)
}

fn frequency() -> Option<u64> {
    let mut khz: Vec<u64> = Vec::new();
    for cpu in 0.. {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        match iotomy_host::kernel_text(path) {
            Ok(text) => khz.extend(text.trim().parse::<u64>().ok()),
            Err(_) => break,
        }
    }
    khz.iter().sum::<u64>().checked_div(khz.len() as u64)
}

fn dirty(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("Dirty:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read_as_it_writes_them() {
        let stat = "cpu  10 1 5 1000 7 2 3 4 0 0\ncpu0 5 0 0 0 0 0 0 0 0 0\n";
        assert_eq!(cpu(stat), Some((21 * TICK_NS, 4 * TICK_NS)));
        assert_eq!(cpu("cpu  1 2"), None);
        let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull total=3\n";
        assert_eq!(stall(pressure), Some(12_000));
        assert_eq!(dirty("MemFree: 1 kB\nDirty:     12 kB\n"), Some(12 * 1024));
    }

    #[test]
    fn a_tick_disturbs_nothing_and_a_neighbour_does() {
        let state = |wall_ms: u64, other_ms: u64, steal_ms: u64| State {
            wall_ns: wall_ms * 1_000_000,
            other_cpu_ns: Some(other_ms * 1_000_000),
            steal_ns: Some(steal_ms * 1_000_000),
            ..State::default()
        };
        assert!(disturbances(&state(5, 10, 10), 2).is_empty());
        assert!(disturbances(&state(1_000, 100, 20), 2).is_empty());
        assert_eq!(disturbances(&state(1_000, 900, 0), 2), ["others had 90 % of a CPU"]);
        assert!(disturbances(&state(1_000, 900, 0), 64).is_empty());
        // Two CPUs have no more time than twice the round's.
        let short = disturbances(&state(20, 45, 60), 2);
        assert_eq!(short, ["others had 200 % of a CPU", "the hypervisor took 200 % of a CPU"]);
        assert_eq!(disturbances(&state(1_000, 0, 90), 2), ["the hypervisor took 9 % of a CPU"]);
    }
}
