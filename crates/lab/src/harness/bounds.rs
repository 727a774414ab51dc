//! The resources a case needs and those that are free: a case that does not fit is skipped with the
//! limit's name, its value, and how to raise it.

mod found;

use std::path::Path;

use found::{User, descriptors, memory_bounds, process_bounds};
use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use rustix::fs::{StatVfs, statvfs};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A case may use memory only if this many times as much is free.
const RESERVE: u64 = 2;

/// The resources a case needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// Processes alive at once.
    pub processes: u64,
    /// Descriptors open at once in one process.
    pub descriptors: u64,
    /// Memory of all its processes, including the kernel's part and the files that must stay in
    /// memory.
    pub memory_bytes: u64,
    /// Bytes written to the file system of `--path`.
    pub disk_bytes: u64,
    /// Files created there.
    pub disk_inodes: u64,
}

/// How much of a resource is free, and what limits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The number free.
    pub free: u64,
    /// The maximum, including those in use.
    pub most: u64,
    /// The limit that bounds the resource.
    pub by: String,
    /// How to raise the limit, with [`Bound::NUMBER`] in place of the new value.
    pub raise: String,
}

impl Bound {
    /// Placeholder for the number in the text.
    const NUMBER: char = '#';

    /// Returns what bounds the resource, and how to raise it so that `needed` are free.
    fn reason(&self, needed: u64) -> String {
        let enough = self.most.saturating_add(needed.saturating_sub(self.free));
        format!("{}; {}", self.by, self.raise.replace(Self::NUMBER, &enough.to_string()))
    }
}

/// The free resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FreeRoom {
    /// Processes that can be created, by the tightest bound.
    pub processes: Option<Bound>,
    /// Descriptors a process may open.
    pub descriptors: Option<Bound>,
    /// Memory, by the tightest bound.
    pub memory_bytes: Option<Bound>,
    /// Free space of the file system of `--path`.
    pub disk: Disk,
}

/// Free space of a file system; `None` where the file system does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disk {
    /// Bytes.
    pub bytes: Option<u64>,
    /// Inodes.
    pub inodes: Option<u64>,
}

impl Disk {
    /// Converts the kernel's report.
    pub(crate) fn from_statvfs(told: &StatVfs) -> Self {
        Self {
            // A file system without a size of its own (ramfs) reports 0.
            bytes: (told.f_blocks > 0).then(|| told.f_bavail.saturating_mul(told.f_frsize)),
            // btrfs and others that create inodes on demand report 0 of 0.
            inodes: (told.f_files > 0).then_some(told.f_favail),
        }
    }

    /// Refuses a request unless twice the room is free.
    ///
    /// # Errors
    /// Fails with the name of the missing resource.
    pub(crate) fn check(&self, bytes: u64, inodes: u64) -> Result<(), Skip> {
        match (self.inodes, self.bytes) {
            (Some(free), _) if free / RESERVE < inodes => Err(Skip(format!(
                "needs {inodes} inodes; {free} are free, and half of them stay reserved"
            ))),
            (_, Some(free)) if free / RESERVE < bytes => Err(Skip(format!(
                "needs {} MiB; {} MiB are free, and half of them stay reserved",
                bytes.div_ceil(1 << 20),
                free >> 20
            ))),
            _ => Ok(()),
        }
    }
}

impl FreeRoom {
    /// Returns the resources that are free now, including those of this directory's file system.
    pub fn with(folder: &Folder) -> Self {
        // If statvfs fails now, the check is repeated where files are created.
        let disk = statvfs(&folder.volume().path)
            .map(|told| Disk::from_statvfs(&told))
            .unwrap_or_default();
        Self { disk, ..Self::now() }
    }

    /// Returns the resources that are free now.
    pub fn now() -> Self {
        Self::under(Path::new("/"), rustix::process::geteuid().is_root())
    }

    fn under(root: &Path, is_root: bool) -> Self {
        let processes = process_bounds(root, (!is_root).then(User::own));
        Self {
            processes: processes.into_iter().min_by_key(|bound| bound.free),
            descriptors: getrlimit(Resource::Nofile).maximum.map(|most| descriptors(root, most)),
            memory_bytes: memory_bounds(root).into_iter().min_by_key(|bound| bound.free),
            disk: Disk::default(),
        }
    }

    /// Checks whether a case fits.
    ///
    /// # Errors
    /// Fails with the reason if the case does not fit.
    pub fn check(&self, needs: Needs) -> Result<(), Skip> {
        for (what, needed, bound) in [
            ("processes", needs.processes, &self.processes),
            ("descriptors per process", needs.descriptors, &self.descriptors),
        ] {
            if let Some(bound) = bound.as_ref().filter(|bound| bound.free < needed) {
                let (free, said) = (bound.free, bound.reason(needed));
                return Err(Skip(format!("needs {needed} {what}; {free} are free: {said}")));
            }
        }
        self.disk.check(needs.disk_bytes, needs.disk_inodes).map_err(|Skip(reason)| {
            Skip(format!("the file system of --path: {reason}; name another directory with --path"))
        })?;
        match &self.memory_bytes {
            Some(bound) if bound.free / RESERVE < needs.memory_bytes => Err(Skip(format!(
                "needs {} MiB of memory; {} MiB are free, and half of them stay reserved: {}",
                needs.memory_bytes.div_ceil(1 << 20),
                bound.free >> 20,
                bound.reason(needs.memory_bytes.saturating_mul(RESERVE))
            ))),
            _ => Ok(()),
        }
    }
}

/// A changed soft limit on descriptors; dropping it restores the previous limit.
pub(crate) struct SoftLimit(Rlimit);

impl SoftLimit {
    /// Raises the limit to the hard limit.
    pub(crate) fn raise() -> Result<Self, Skip> {
        Self::limit(getrlimit(Resource::Nofile).maximum)
    }

    /// Sets the limit to `descriptors`, or to the hard limit if that is lower.
    pub(crate) fn set(descriptors: u64) -> Result<Self, Skip> {
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
        // A process may always lower its own limit.
        let _ = setrlimit(Resource::Nofile, self.0);
    }
}

/// A low limit on signals queued for this process; dropping it restores the previous limit.
pub(crate) struct FewSignals(Rlimit);

impl FewSignals {
    pub(crate) fn allow(signals: u64) -> Result<Self, Skip> {
        let before = getrlimit(Resource::Sigpending);
        let few = Rlimit { current: Some(signals), maximum: before.maximum };
        setrlimit(Resource::Sigpending, few)
            .map_err(|e| Skip::refused("setrlimit RLIMIT_SIGPENDING", e))?;
        Ok(Self(before))
    }
}

impl Drop for FewSignals {
    fn drop(&mut self) {
        // The soft limit may always be raised up to the hard limit.
        let _ = setrlimit(Resource::Sigpending, self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_the_reason() {
        let bound = |free, by: &str| {
            Some(Bound { free, most: 2 * free, by: by.into(), raise: "set it to #".into() })
        };
        let room = FreeRoom {
            processes: bound(100, "x is 100"),
            descriptors: bound(20, "y is 20"),
            memory_bytes: bound(30 << 20, "z"),
            disk: Disk { bytes: Some(8 << 20), inodes: Some(10) },
        };
        let refused = |processes, descriptors, mib: u64| {
            let needs =
                Needs { processes, descriptors, memory_bytes: mib << 20, ..Needs::default() };
            room.check(needs).err().map(|Skip(reason)| reason)
        };
        assert_eq!(refused(100, 20, 15), None);
        assert_eq!(
            refused(101, 0, 0).unwrap(),
            "needs 101 processes; 100 are free: x is 100; set it to 201"
        );
        assert_eq!(
            refused(0, 21, 0).unwrap(),
            "needs 21 descriptors per process; 20 are free: y is 20; set it to 41"
        );
        assert!(refused(0, 0, 16).unwrap().starts_with("needs 16 MiB of memory; 30 MiB"));
        let disk = |disk_bytes, disk_inodes| {
            let needs = Needs { disk_bytes, disk_inodes, ..Needs::default() };
            room.check(needs).err().map(|Skip(reason)| reason)
        };
        assert_eq!(disk(4 << 20, 5), None);
        let reason = disk((4 << 20) + 1, 0).unwrap();
        assert!(reason.starts_with("the file system of --path: needs 5 MiB; 8"), "{reason}");
        assert!(reason.ends_with("name another directory with --path"), "{reason}");
        assert!(disk(0, 6).unwrap().contains("needs 6 inodes; 10 are free"));
        assert_eq!(
            FreeRoom::default().check(Needs { processes: 1 << 40, ..Needs::default() }),
            Ok(())
        );
    }
}
