//! What a measurement may use up: memory that is free, also for this control group, and the size of
//! files this process may write.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::Skip;

/// Memory is asked for only where this many times as much is free.
const RESERVE: u64 = 2;

/// Refuses when `bytes` of memory are not to be had without hurting others.
pub(crate) fn check_memory(bytes: usize) -> Result<(), Skip> {
    check(bytes as u64, free_memory(Path::new("/")))
}

fn check(bytes: u64, free: Option<u64>) -> Result<(), Skip> {
    match free {
        Some(free) if free / RESERVE < bytes => Err(Skip(format!(
            "needs {} MiB of memory, and {} MiB are free",
            bytes.div_ceil(1 << 20),
            free >> 20
        ))),
        _ => Ok(()),
    }
}

/// Refuses when a file of `bytes` is above the limit on the size of files, which ends the process that
/// goes beyond it.
pub(crate) fn check_file_size(bytes: u64) -> Result<(), Skip> {
    match getrlimit(Resource::Fsize).current {
        Some(most) if most < bytes => Err(Skip(format!(
            "needs a file of {} MiB, and files may have {most} bytes (ulimit -f)",
            bytes.div_ceil(1 << 20)
        ))),
        _ => Ok(()),
    }
}

/// The text of a file of the kernel's, or that there is none.
pub(super) fn text_of(path: &str) -> String {
    match fs::read_to_string(path) {
        Ok(text) => format!("{path} is {}", text.trim()),
        Err(_) => format!("{path} is absent"),
    }
}

/// Free memory in bytes of the machine or, where that is less, of a control group this process is in.
/// `None` when the kernel does not tell.
pub(crate) fn free_memory(root: &Path) -> Option<u64> {
    let groups = text(&root.join("proc/self/cgroup")).unwrap_or_default();
    let in_groups = groups.lines().flat_map(|line| free_in_groups(root, line));
    in_groups.chain(free_in_machine(root)).min()
}

fn free_in_machine(root: &Path) -> Option<u64> {
    let meminfo = text(&root.join("proc/meminfo"))?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// What a line of `/proc/self/cgroup` leaves: for the group and for each that it is in.
fn free_in_groups(root: &Path, line: &str) -> Vec<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let (folder, most, now) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max", "memory.current"),
        list if list.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
        }
        _ => return Vec::new(),
    };
    let top = root.join(folder);
    let group: PathBuf = top.join(path.trim_start_matches('/'));
    let around = group.ancestors().take_while(|at| at.starts_with(&top));
    let free = |at: &Path| {
        let number = |name: &str| text(&at.join(name))?.trim().parse::<u64>().ok();
        Some(number(most)?.saturating_sub(number(now)?))
    };
    around.filter_map(free).collect()
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_group_around_this_one_counts() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(free_memory(root.path()), None);
        put("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    1000 kB\n");
        put("proc/self/cgroup", "0::/a/b\n");
        assert_eq!(free_memory(root.path()), Some(1_024_000));
        put("sys/fs/cgroup/a/b/memory.max", "max\n");
        put("sys/fs/cgroup/a/b/memory.current", "5\n");
        put("sys/fs/cgroup/a/memory.max", "7000\n");
        put("sys/fs/cgroup/a/memory.current", "5000\n");
        assert_eq!(free_memory(root.path()), Some(2_000));
        put("proc/self/cgroup", "4:cpu,memory:/x\n0::/\nnonsense\n");
        put("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "50\n");
        put("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "60\n");
        assert_eq!(free_memory(root.path()), Some(0));
    }

    #[test]
    fn what_is_not_there_is_not_taken() {
        assert_eq!(check(10 << 20, Some(30 << 20)), Ok(()));
        assert_eq!(check(10 << 20, None), Ok(()));
        let Skip(reason) = check(10 << 20, Some(19 << 20)).unwrap_err();
        assert_eq!(reason, "needs 10 MiB of memory, and 19 MiB are free");
    }
}
