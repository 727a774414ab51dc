//! What the processor and the hypervisor report of disturbances.

use iotomy_record::numbers;

use crate::check::{Check, Context, Outcome, number_in};

#[rustfmt::skip]
pub(crate) static CHECKS: &[Check] = &[
    Check { name: "cpu-frequency", purpose: "race: runs at different speeds", try_it: frequency },
    Check { name: "steal-time", purpose: "race: CPU time taken by the hypervisor", try_it: steal },
];

fn frequency(_: &Context) -> Outcome {
    const CURRENT: &str = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq";
    match number_in(CURRENT) {
        Some(khz) => {
            Outcome::ready(format!("{} MHz now on CPU 0", numbers::thousands((khz / 1000).into())))
        }
        None => Outcome::missing(
            format!("{CURRENT} cannot be read"),
            "load a cpufreq driver (modprobe acpi-cpufreq); virtual machines do not report it",
        ),
    }
}

fn steal(_: &Context) -> Outcome {
    let stat = iotomy_host::kernel_text("/proc/stat").unwrap_or_default();
    // `cpu user nice system idle iowait irq softirq steal …`, in ticks of 1/100 s.
    let ticks = stat
        .lines()
        .next()
        .and_then(|line| line.split_whitespace().nth(8))
        .and_then(|ticks| ticks.parse::<u64>().ok());
    match ticks {
        Some(0) => Outcome::ready("none since boot (the hypervisor may not report it)"),
        Some(ticks) => {
            Outcome::ready(format!("{} ms since boot", numbers::thousands((ticks * 10).into())))
        }
        None => Outcome::missing("/proc/stat has no steal time", "mount proc on /proc"),
    }
}
