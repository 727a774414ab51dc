//! The growth of the kernel's name cache, and its shrinking under memory pressure.

use std::fs;
use std::time::{Duration, Instant};

/// How long memory is waited for that was given back: objects are freed after a grace period, and
/// their pages when all on them are.
const PATIENCE: Duration = Duration::from_millis(300);

/// Bytes of memory the kernel says it could give back from its caches of objects, of which names
/// are a part; `None` where it does not say.
pub(super) fn reclaimable() -> Option<u64> {
    field(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn field(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("SReclaimable:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Bytes of the cache of names, which only root may see.
pub(super) fn dentries() -> Option<u64> {
    slab(&fs::read_to_string("/proc/slabinfo").ok()?, "dentry")
}

/// The number of objects of a cache there is memory for, times their size, as slabinfo(5) has it.
fn slab(slabinfo: &str, name: &str) -> Option<u64> {
    let is_it = |line: &&str| line.split_whitespace().next() == Some(name);
    let mut fields = slabinfo.lines().find(is_it)?.split_whitespace().skip(2);
    let objects: u64 = fields.next()?.parse().ok()?;
    let bytes: u64 = fields.next()?.parse().ok()?;
    objects.checked_mul(bytes)
}

/// Asks the kernel to give names and inodes back, as it would if memory were short: those of the
/// whole machine. `false` where that is not allowed.
pub(super) fn press() -> bool {
    // Inodes and names, and not the bytes of files.
    fs::write("/proc/sys/vm/drop_caches", "2").is_ok()
}

/// The figure once it has fallen to `low`, or has had time to.
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
