//! The memory of the kernel's cache of names, and its release under pressure.

use std::fs;
use std::time::{Duration, Instant};

/// How long to wait for released memory: objects are freed after a grace period, and a page when
/// all objects on it are free.
const PATIENCE: Duration = Duration::from_millis(300);

/// Returns the bytes that the kernel reports as reclaimable from its object caches, which include
/// names; `None` if it does not report them.
pub(super) fn reclaimable() -> Option<u64> {
    field(&iotomy_host::kernel_text("/proc/meminfo").ok()?)
}

fn field(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("SReclaimable:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the bytes of the cache of names, which only root can read.
pub(super) fn dentries() -> Option<u64> {
    slab(&iotomy_host::kernel_text("/proc/slabinfo").ok()?, "dentry")
}

/// Returns the number of allocated objects of a cache times their size, from slabinfo(5).
fn slab(slabinfo: &str, name: &str) -> Option<u64> {
    let is_it = |line: &&str| line.split_whitespace().next() == Some(name);
    let mut fields = slabinfo.lines().find(is_it)?.split_whitespace().skip(2);
    let objects: u64 = fields.next()?.parse().ok()?;
    let bytes: u64 = fields.next()?.parse().ok()?;
    objects.checked_mul(bytes)
}

/// Requests the kernel to release names and inodes, those of the whole machine, as it would under
/// memory pressure. Returns `false` if that is not allowed.
pub(super) fn press() -> bool {
    // 2 releases inodes and names, but no file contents.
    fs::write("/proc/sys/vm/drop_caches", "2").is_ok()
}

/// Returns the figure once it has fallen to `low`, or when the wait is over.
pub(super) fn fallen(figure: impl Fn() -> Option<u64>, low: u64) -> Option<u64> {
    let began = Instant::now();
    loop {
        let now = figure()?;
        if now <= low || began.elapsed() > PATIENCE {
            return Some(now);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_the_kernel_writes_them() {
        assert_eq!(field("MemFree: 1 kB\nSReclaimable:     250 kB\n"), Some(256_000));
        assert_eq!(field(""), None);
        let text = "slabinfo - version: 2.1\n# name  <active_objs> <num_objs> <objsize>\n\
                    dentry_x 9 9 9 1\ndentry            1000   2100    192   21    1 : tunables\n";
        assert_eq!(slab(text, "dentry"), Some(2_100 * 192));
        assert_eq!(slab(text, "inode"), None);
        assert_eq!(fallen(|| Some(5), 5), Some(5));
        assert_eq!(fallen(|| None, 5), None);
    }
}
