//! The needs of a case, and the bounds of the machine: a case that does not fit is skipped with the
//! limit's name, its value, and how to raise it.

mod found;

use std::path::Path;

use found::{User, descriptors, memory_bounds, process_bounds};
use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use rustix::fs::{StatVfs, statvfs};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Memory is asked for only where this many times as much is free.
const RESERVE: u64 = 2;

/// The needs of a case.
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

/// The available number of something, and the limit that bounds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// How many are free.
    pub free: u64,
    /// How many there may be, those that are taken included.
    pub most: u64,
    /// The limit that bounds them.
    pub by: String,
    /// How to raise it, [`Bound::NUMBER`] standing for what to.
    pub raise: String,
}

impl Bound {
    /// The placeholder for the number in the text.
    const NUMBER: char = '#';

    /// The limit that bounds them, and how to raise it so that `needed` are free.
    fn reason(&self, needed: u64) -> String {
        let enough = self.most.saturating_add(needed.saturating_sub(self.free));
        format!("{}; {}", self.by, self.raise.replace(Self::NUMBER, &enough.to_string()))
    }
}

/// The available room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FreeRoom {
    /// Processes that can be made, by the tightest bound.
    pub processes: Option<Bound>,
    /// Descriptors a process may have.
    pub descriptors: Option<Bound>,
    /// Memory, by the tightest bound.
    pub memory_bytes: Option<Bound>,
    /// The free room on the file system of `--path`.
    pub disk: Disk,
}

/// The free room on a file system; `None` where it reports none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disk {
    /// Bytes.
    pub bytes: Option<u64>,
    /// Inodes.
    pub inodes: Option<u64>,
}

impl Disk {
    /// As the kernel tells it.
    pub(crate) fn from_statvfs(told: &StatVfs) -> Self {
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
    /// The reason, where the room does not suffice.
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
    /// The room available now, with that on the file system of this directory.
    pub fn with(folder: &Folder) -> Self {
        // A file system that does not answer now is asked again when files are created.
        let disk = statvfs(&folder.volume().path)
            .map(|told| Disk::from_statvfs(&told))
            .unwrap_or_default();
        Self { disk, ..Self::now() }
    }

    /// The room available now.
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

    /// Whether a case fits.
    ///
    /// # Errors
    /// Why it does not.
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

/// This process may open more or fewer descriptors than before; dropped, as many as before.
pub(crate) struct SoftLimit(Rlimit);

impl SoftLimit {
    /// As many as the hard limit lets it.
    pub(crate) fn raise() -> Result<Self, Skip> {
        Self::limit(getrlimit(Resource::Nofile).maximum)
    }

    /// So many, or as many as the hard limit lets it.
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
        // Lowering a limit of one's own is always allowed.
        let _ = setrlimit(Resource::Nofile, self.0);
    }
}

/// Few signals may be queued for this process; dropped, as many as before.
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
        // The soft limit may always be put back to what the hard one allows.
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
