//! What a watch that may last costs iotomy itself: its CPU time, its memory, and that of its tables in the kernel.

use std::collections::BTreeMap;

use iotomy_host::kernel_text;
use iotomy_record::OwnUse;
use rustix::time::{ClockId, clock_gettime};

/// Since the watch began.
pub(super) struct OwnMeter {
    cpu_before_ns: u64,
}

impl OwnMeter {
    /// From now on.
    pub(super) fn start() -> Self {
        Self { cpu_before_ns: cpu_ns() }
    }

    pub(super) fn read(&self) -> OwnUse {
        OwnUse {
            cpu_ns: cpu_ns().saturating_sub(self.cpu_before_ns),
            rss_bytes: rss_bytes(),
            table_bytes: table_bytes(),
        }
    }
}

/// Of this process, all threads.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

fn rss_bytes() -> u64 {
    let pages = |text: String| text.split(' ').nth(1)?.parse::<u64>().ok();
    let pages = kernel_text("/proc/self/statm").ok().and_then(pages).unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}

/// Of the BPF maps that this process has open, each once.
fn table_bytes() -> u64 {
    let Ok(open) = std::fs::read_dir("/proc/self/fdinfo") else { return 0 };
    let mut maps = BTreeMap::new();
    for entry in open.flatten() {
        let text = kernel_text(entry.path()).unwrap_or_default();
        maps.extend(map(&text));
    }
    maps.into_values().fold(0, u64::saturating_add)
}

/// The number and the memory of a BPF map; `None` for another descriptor.
fn map(text: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().parse().ok())
    };
    Some((field("map_id:")?, field("memlock:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_told_from_a_program() {
        let of_map = "pos:\t0\nmap_type:\t2\nmax_entries:\t1\nmemlock:\t4096\nmap_id:\t17\n";
        assert_eq!(map(of_map), Some((17, 4096)));
        assert_eq!(map("pos:\t0\nprog_type:\t26\nmemlock:\t4096\nprog_id:\t3\n"), None);
    }

    #[test]
    fn what_this_process_uses_grows() {
        let meter = OwnMeter::start();
        let filled: Vec<u8> = (0..1 << 22).map(|at| (at % 251) as u8).collect();
        let used = meter.read();
        assert!(filled.contains(&250));
        assert!(used.cpu_ns > 0 && used.rss_bytes >= 1 << 22, "{used:?}");
    }
}
