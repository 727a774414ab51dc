//! Bounds of a measurement: free memory, also of this control group, and the largest file that this
//! process may write.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::Skip;
use crate::kernel_text::{kernel_text, path_in_text};

/// Memory is allocated only where this many times as much is free.
const RESERVE: u64 = 2;

/// Refuses when `bytes` of memory are not available without harm to others.
///
/// # Errors
/// How much is free.
pub fn check_memory(bytes: usize) -> Result<(), Skip> {
    check(bytes as u64, free_memory(Path::new("/")))
}

fn check(bytes: u64, free: Option<u64>) -> Result<(), Skip> {
    match free {
        Some(free) if free / RESERVE < bytes => Err(Skip(format!(
            "needs {} MiB of memory; {} MiB are free",
            bytes.div_ceil(1 << 20),
            free >> 20
        ))),
        _ => Ok(()),
    }
}

/// Refuses when a file of `bytes` is above the limit on the size of files, which ends the process that
/// goes beyond it.
///
/// # Errors
/// The limit and its value.
pub fn check_file_size(bytes: u64) -> Result<(), Skip> {
    match getrlimit(Resource::Fsize).current {
        Some(most) if most < bytes => Err(Skip(format!(
            "needs a file of {} MiB; files are limited to {most} bytes (ulimit -f)",
            bytes.div_ceil(1 << 20)
        ))),
        _ => Ok(()),
    }
}

/// The text of a file of the kernel's, or that there is none.
pub fn text_of(path: &str) -> String {
    match kernel_text(path) {
        Ok(text) => format!("{path} is {}", text.trim()),
        Err(_) => format!("{path} is absent"),
    }
}

/// Free memory in bytes of the machine or, where that is less, of a control group of this process.
/// `None` when the kernel does not report it.
pub fn free_memory(root: &Path) -> Option<u64> {
    let in_groups = memory_of_groups(root).into_iter().map(|group| group.free());
    in_groups.chain(free_in_machine(root)).min()
}

/// The memory that the control groups of this process leave free.
pub fn memory_of_groups(root: &Path) -> Vec<OfGroup> {
    let v1 = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
    of_groups(root, "memory", ["memory.max", "memory.current"], v1)
}

/// The same of processes.
pub fn processes_of_groups(root: &Path) -> Vec<OfGroup> {
    let names = ["pids.max", "pids.current"];
    of_groups(root, "pids", names, names)
}

/// A limit that a control group sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfGroup {
    /// How many there may be.
    pub most: u64,
    /// How many there are.
    now: u64,
    /// Where the limit is set.
    pub file: PathBuf,
}

impl OfGroup {
    /// How many there may be more.
    pub fn free(&self) -> u64 {
        self.most.saturating_sub(self.now)
    }
}

/// The limits of a controller, by the names of limit and count in either version of control groups:
/// for the group of this process and for each group above it.
fn of_groups(root: &Path, controller: &str, v2: [&str; 2], v1: [&str; 2]) -> Vec<OfGroup> {
    let groups = text(&root.join("proc/self/cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (top, [most, now]) = match controllers {
            "" => (root.join("sys/fs/cgroup"), v2),
            list if list.split(',').any(|name| name == controller) => {
                (root.join("sys/fs/cgroup").join(controller), v1)
            }
            _ => continue,
        };
        let group = top.join(path_in_text(path.trim_start_matches('/')));
        for at in group.ancestors().take_while(|at| at.starts_with(&top)) {
            let number = |name: &str| text(&at.join(name))?.trim().parse::<u64>().ok();
            let file = at.join(most);
            let file = Path::new("/").join(file.strip_prefix(root).unwrap_or(&file));
            let limit = number(most).zip(number(now));
            found.extend(limit.map(|(most, now)| OfGroup { most, now, file }));
        }
    }
    found
}

/// Free memory of the machine in bytes, as the kernel estimates it.
pub fn free_in_machine(root: &Path) -> Option<u64> {
    let meminfo = text(&root.join("proc/meminfo"))?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn text(path: &Path) -> Option<String> {
    kernel_text(path).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        assert_eq!(reason, "needs 10 MiB of memory; 19 MiB are free");
    }
}
