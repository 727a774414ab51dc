//! The CPUs this process may use, and the placement of threads on them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use iotomy_host::Skip;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Returns the CPUs this thread may run on, in order.
pub(super) fn allowed() -> Result<Vec<usize>, Skip> {
    let set = sched_getaffinity(None).map_err(|e| Skip::refused("sched_getaffinity", e))?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Returns two CPUs this thread may run on, of different cores if possible. `None` with one CPU.
pub(super) fn two() -> Result<Option<(usize, usize)>, Skip> {
    let all = allowed()?;
    let siblings = |cpu: usize| {
        iotomy_host::kernel_text(format!(
            "/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        ))
    };
    let Some((&first, others)) = all.split_first() else { return Ok(None) };
    let core = siblings(first).ok();
    let elsewhere = others.iter().find(|cpu| core.is_some() && siblings(**cpu).ok() != core);
    Ok(elsewhere.or(others.first()).map(|second| (first, *second)))
}

/// Binds the calling thread to a CPU permanently: for threads created for a measurement.
pub(super) fn stay_on(cpu: usize) -> Result<(), Skip> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
        .map_err(|e| Skip::refused(&format!("sched_setaffinity to CPU {cpu}"), e))
}

/// Returns the sizes of the last-level caches of these CPUs, each once, in bytes. Empty when the
/// kernel does not report them.
pub(super) fn last_level_caches(cpus: &[usize]) -> Vec<u64> {
    caches_below(Path::new("/sys/devices/system/cpu"), cpus)
}

fn caches_below(root: &Path, cpus: &[usize]) -> Vec<u64> {
    let mut met = BTreeSet::new();
    let mut sizes = Vec::new();
    for cpu in cpus {
        let Some((shared_by, size)) = last_level_cache(&root.join(format!("cpu{cpu}/cache")))
        else {
            continue;
        };
        if met.insert(shared_by) {
            sizes.push(size);
        }
    }
    sizes
}

/// Returns which CPUs share the cache of the highest level, and its size.
fn last_level_cache(folder: &Path) -> Option<(String, u64)> {
    let caches = fs::read_dir(folder).ok()?.filter_map(|entry| {
        let folder = entry.ok()?.path();
        let text =
            |name: &str| Some(iotomy_host::kernel_text(folder.join(name)).ok()?.trim().to_owned());
        let level = text("level")?.parse::<u32>().ok()?;
        let size = text("size")?.strip_suffix('K')?.parse::<u64>().ok()?;
        Some((level, text("shared_cpu_list")?, size.checked_mul(1024)?))
    });
    caches.max_by_key(|(level, ..)| *level).map(|(_, shared_by, size)| (shared_by, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_is_shared_counts_once() {
        let root = tempfile::tempdir().unwrap();
        for (cpu, shared) in [(0, "0-1"), (1, "0-1"), (2, "2")] {
            for (index, level, size) in [(0, 1, "32K"), (2, 2, "512K"), (3, 3, "32768K")] {
                let folder = root.path().join(format!("cpu{cpu}/cache/index{index}"));
                fs::create_dir_all(&folder).unwrap();
                let files = [("level", format!("{level}")), ("size", size.to_owned())];
                for (name, text) in files.iter().chain([&("shared_cpu_list", shared.to_owned())]) {
                    fs::write(folder.join(name), text).unwrap();
                }
            }
        }
        assert_eq!(caches_below(root.path(), &[0, 1, 2, 3]), [32 << 20, 32 << 20]);
    }

    #[test]
    fn the_two_differ_and_are_allowed() {
        let all = allowed().unwrap();
        match two().unwrap() {
            Some((a, b)) => assert!(a != b && all.contains(&a) && all.contains(&b)),
            None => assert_eq!(all.len(), 1),
        }
    }
}
