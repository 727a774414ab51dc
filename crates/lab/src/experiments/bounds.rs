//! What a case takes of the machine, and what there is: a case that does not fit is skipped with the
//! limit's name, its value, and how to raise it.

use std::fs;
use std::path::Path;

use rustix::fs::{StatVfs, statvfs};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::Skip;
use crate::limits::room::free_memory;
use crate::limits::storage::Folder;

/// Memory is asked for only where this many times as much is free.
const RESERVE: u64 = 2;

/// Processes that are left for others.
const SPARE_PROCESSES: u64 = 64;

/// What a case takes of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// Processes alive at once.
    pub processes: u64,
    /// Descriptors open at once in one process.
    pub descriptors: u64,
    /// Memory of all its processes, the kernel's part of it, and files that are to stay in memory.
    pub memory_bytes: u64,
    /// Bytes written to the file system of `--path`.
    pub disk_bytes: u64,
    /// Files made there.
    pub disk_inodes: u64,
}

/// What there is of something, and what keeps it from being more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// How many are free.
    pub free: u64,
    /// What bounds them, and how to raise it.
    pub by: String,
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Room {
    /// Processes that can be made, by the tightest bound.
    pub processes: Option<Bound>,
    /// Descriptors a process may have.
    pub descriptors: Option<Bound>,
    /// Memory that is free.
    pub memory_bytes: Option<u64>,
    /// What the file system of `--path` has free.
    pub disk: Disk,
}

/// What a file system has free; `None` where it does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disk {
    /// Bytes.
    pub bytes: Option<u64>,
    /// Inodes.
    pub inodes: Option<u64>,
}

impl Disk {
    /// As the kernel tells it.
    pub(super) fn of(told: &StatVfs) -> Self {
        Self {
            // A file system that has no size of its own (ramfs) does not tell.
            bytes: (told.f_blocks > 0).then(|| told.f_bavail.saturating_mul(told.f_frsize)),
            // btrfs and others that make inodes as they go say 0 of 0.
            inodes: (told.f_files > 0).then_some(told.f_favail),
        }
    }

    /// Refuses what has not twice the room.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn check(&self, bytes: u64, inodes: u64) -> Result<(), Skip> {
        match (self.inodes, self.bytes) {
            (Some(free), _) if free / RESERVE < inodes => Err(Skip(format!(
                "needs {inodes} inodes, and {free} are free, of which half is left to others"
            ))),
            (_, Some(free)) if free / RESERVE < bytes => Err(Skip(format!(
                "needs {} MiB, and {} MiB are free, of which half is left to others",
                bytes.div_ceil(1 << 20),
                free >> 20
            ))),
            _ => Ok(()),
        }
    }
}

impl Room {
    /// What there is now, and on the file system of this folder.
    pub fn with(folder: &Folder) -> Self {
        // What cannot be asked now is asked again where files are made.
        let disk = statvfs(&folder.volume().path).map(|told| Disk::of(&told)).unwrap_or_default();
        Self { disk, ..Self::now() }
    }

    /// What there is now.
    pub fn now() -> Self {
        Self::under(Path::new("/"), rustix::process::geteuid().is_root())
    }

    fn under(root: &Path, is_root: bool) -> Self {
        let limit = |resource| getrlimit(resource).maximum;
        let descriptors = limit(Resource::Nofile)
            .map(|free| Bound { free, by: format!("ulimit -Hn is {free}; root may raise it") });
        let processes = process_bounds(root, is_root, getrlimit(Resource::Nproc).current);
        Self {
            processes: processes.into_iter().min_by_key(|bound| bound.free),
            descriptors,
            memory_bytes: free_memory(root),
            disk: Disk::default(),
        }
    }

    /// Whether a case fits.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check(&self, needs: Needs) -> Result<(), Skip> {
        for (what, needed, bound) in [
            ("processes", needs.processes, &self.processes),
            ("descriptors a process", needs.descriptors, &self.descriptors),
        ] {
            if let Some(Bound { free, by }) = bound
                && *free < needed
            {
                return Err(Skip(format!("needs {needed} {what}, and {free} are free: {by}")));
            }
        }
        self.disk.check(needs.disk_bytes, needs.disk_inodes).map_err(|Skip(reason)| {
            Skip(format!("the file system of --path: {reason}; name another folder with --path"))
        })?;
        match self.memory_bytes {
            Some(free) if free / RESERVE < needs.memory_bytes => Err(Skip(format!(
                "needs {} MiB of memory, and {} MiB are free, of which half is left to others",
                needs.memory_bytes.div_ceil(1 << 20),
                free >> 20
            ))),
            _ => Ok(()),
        }
    }
}

/// This process may open more or fewer descriptors than before; dropped, as many as before.
pub(super) struct SoftLimit(Rlimit);

impl SoftLimit {
    /// As many as the hard limit lets it.
    pub(super) fn raise() -> Result<Self, Skip> {
        Self::limit(getrlimit(Resource::Nofile).maximum)
    }

    /// So many, or as many as the hard limit lets it.
    pub(super) fn set(descriptors: u64) -> Result<Self, Skip> {
        let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        Self::limit(Some(descriptors.min(most)))
    }

    fn limit(current: Option<u64>) -> Result<Self, Skip> {
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current, maximum: before.maximum })
            .map_err(|e| Skip::refused("setrlimit RLIMIT_NOFILE", e))?;
        Ok(Self(before))
    }
}

impl Drop for SoftLimit {
    fn drop(&mut self) {
        // Lowering a limit of one's own is always allowed.
        let _ = setrlimit(Resource::Nofile, self.0);
    }
}

/// Few signals may be queued for this process; dropped, as many as before.
pub(super) struct FewSignals(Rlimit);

impl FewSignals {
    pub(super) fn allow(signals: u64) -> Result<Self, Skip> {
        let before = getrlimit(Resource::Sigpending);
        let few = Rlimit { current: Some(signals), maximum: before.maximum };
        setrlimit(Resource::Sigpending, few)
            .map_err(|e| Skip::refused("setrlimit RLIMIT_SIGPENDING", e))?;
        Ok(Self(before))
    }
}

impl Drop for FewSignals {
    fn drop(&mut self) {
        // The soft limit may always be put back to what the hard one allows.
        let _ = setrlimit(Resource::Sigpending, self.0);
    }
}

fn process_bounds(root: &Path, is_root: bool, soft_limit: Option<u64>) -> Vec<Bound> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    // The fourth field is the tasks that run and those there are: "1/234".
    let tasks = read("proc/loadavg")
        .and_then(|text| text.split_whitespace().nth(3)?.split('/').nth(1)?.parse::<u64>().ok());
    let taken = tasks.unwrap_or(0) + SPARE_PROCESSES;
    let mut bounds = Vec::new();
    for (path, name) in [
        ("proc/sys/kernel/pid_max", "kernel.pid_max"),
        ("proc/sys/kernel/threads-max", "kernel.threads-max"),
    ] {
        if let Some(most) = number(path) {
            let by = format!("{name} is {most}; sysctl {name}={}", (4 * most).min(4_194_304));
            bounds.push(Bound { free: most.saturating_sub(taken), by });
        }
    }
    // Root's processes are not counted.
    if let Some(most) = soft_limit.filter(|_| !is_root) {
        let free = most.saturating_sub(taken);
        bounds.push(Bound { free, by: format!("ulimit -u is {most}; raise it") });
    }
    let groups = read("proc/self/cgroup").unwrap_or_default();
    if let Some(path) = groups.lines().find_map(|line| line.strip_prefix("0::/")) {
        let top = root.join("sys/fs/cgroup");
        let group = top.join(path);
        for at in group.ancestors().take_while(|at| at.starts_with(&top)) {
            let file = |name: &str| fs::read_to_string(at.join(name)).ok();
            let number = |name: &str| file(name)?.trim().parse::<u64>().ok();
            if let (Some(most), Some(now)) = (number("pids.max"), number("pids.current")) {
                let shown = Path::new("/sys/fs/cgroup").join(at.strip_prefix(&top).unwrap_or(at));
                let by = format!("pids.max of {} is {most}", shown.display());
                bounds.push(Bound { free: most.saturating_sub(now + SPARE_PROCESSES), by });
            }
        }
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_bound_of_processes_is_named_with_what_raises_it() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let free = |is_root, soft| {
            let bounds = process_bounds(root.path(), is_root, soft);
            bounds.into_iter().min_by_key(|bound| bound.free)
        };
        assert_eq!(free(true, None), None);
        put("proc/loadavg", "0.00 0.01 0.05 1/236 12345\n");
        put("proc/sys/kernel/pid_max", "32768\n");
        put("proc/sys/kernel/threads-max", "190000\n");
        let found = free(true, Some(1_000)).unwrap();
        assert_eq!(found.free, 32_468);
        assert_eq!(found.by, "kernel.pid_max is 32768; sysctl kernel.pid_max=131072");
        assert_eq!(free(false, Some(1_000)).unwrap().free, 700);
        put("proc/self/cgroup", "0::/a/b\n");
        put("sys/fs/cgroup/a/pids.max", "500\n");
        put("sys/fs/cgroup/a/pids.current", "100\n");
        put("sys/fs/cgroup/a/b/pids.max", "max\n");
        let found = free(false, Some(1_000)).unwrap();
        assert_eq!((found.free, found.by.as_str()), (336, "pids.max of /sys/fs/cgroup/a is 500"));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_reason() {
        let bound = |free, by: &str| Some(Bound { free, by: by.into() });
        let room = Room {
            processes: bound(100, "x is 100"),
            descriptors: bound(20, "y is 20"),
            memory_bytes: Some(30 << 20),
            disk: Disk { bytes: Some(8 << 20), inodes: Some(10) },
        };
        let refused = |processes, descriptors, mib: u64| {
            let needs =
                Needs { processes, descriptors, memory_bytes: mib << 20, ..Needs::default() };
            room.check(needs).err().map(|Skip(reason)| reason)
        };
        assert_eq!(refused(100, 20, 15), None);
        assert_eq!(refused(101, 0, 0).unwrap(), "needs 101 processes, and 100 are free: x is 100");
        assert_eq!(
            refused(0, 21, 0).unwrap(),
            "needs 21 descriptors a process, and 20 are free: y is 20"
        );
        assert!(refused(0, 0, 16).unwrap().starts_with("needs 16 MiB of memory, and 30 MiB"));
        let disk = |disk_bytes, disk_inodes| {
            let needs = Needs { disk_bytes, disk_inodes, ..Needs::default() };
            room.check(needs).err().map(|Skip(reason)| reason)
        };
        assert_eq!(disk(4 << 20, 5), None);
        let reason = disk((4 << 20) + 1, 0).unwrap();
        assert!(reason.starts_with("the file system of --path: needs 5 MiB, and 8"), "{reason}");
        assert!(reason.ends_with("name another folder with --path"), "{reason}");
        assert!(disk(0, 6).unwrap().contains("needs 6 inodes, and 10 are free"));
        assert_eq!(Room::default().check(Needs { processes: 1 << 40, ..Needs::default() }), Ok(()));
    }
}
