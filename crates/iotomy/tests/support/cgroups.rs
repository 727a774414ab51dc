//! Control groups that tests make, and names that nothing else on the machine has.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::until;

/// A name that no other process has.
pub(crate) fn unique(what: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{what}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A control group of its own in one of the hierarchies that are mounted here, removed with it.
pub(crate) struct OwnCgroup(pub(crate) PathBuf);

impl OwnCgroup {
    pub(crate) fn below(mount: &Path) -> Option<Self> {
        Self::named(mount, &unique("iotomy-test"))
    }

    pub(crate) fn named(mount: &Path, name: &str) -> Option<Self> {
        let directory = mount.join(name);
        fs::create_dir(&directory).ok().map(|()| Self(directory))
    }

    pub(crate) fn add(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    /// Removes it once the last process is out, and makes it again.
    pub(crate) fn renewed(&self) {
        self.removed();
        fs::create_dir(&self.0).unwrap();
    }

    pub(crate) fn removed(&self) {
        until("the cgroup is empty", || fs::remove_dir(&self.0).ok());
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        // A process that has ended leaves it a moment later.
        for _ in 0..1_000 {
            match fs::remove_dir(&self.0) {
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                _ => return,
            }
        }
    }
}

/// A hierarchy of each version.
pub(crate) fn hierarchies() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let first_of = |kind: &str| {
        let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        // Without processors and memory to hand out, a group of version 1 takes processes at once.
        let takes_all = |options: &str| !options.split(',').any(|one| one == "cpuset");
        lines.find(|line| line[2] == kind && takes_all(line[3])).map(|line| PathBuf::from(line[1]))
    };
    let found = ["cgroup2", "cgroup"].into_iter().filter_map(first_of);
    found.filter(|mount| OwnCgroup::below(mount).is_some()).collect()
}
