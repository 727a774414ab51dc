//! The tracing file system: which tracepoints this kernel has, by which number each is listened to, and
//! where its values are.
//!
//! Where it is not mounted, as often in containers, it is mounted for this process alone and at no
//! place, so that nothing of it is left however the process ends.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use iotomy_sys::probe::Refusal;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Where it is mounted by custom; debugfs has it, too.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The tracing file system, for as long as this value lives.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// The mount of this process alone.
    own: Option<OwnedFd>,
}

impl Tracefs {
    /// The one that is mounted, or else one of its own.
    ///
    /// # Errors
    /// The kernel's error of the latter.
    pub fn open() -> Result<Self, Refusal> {
        let mounted = PLACES.iter().map(Path::new).find(|place| place.join("events").is_dir());
        mounted.map_or_else(Self::of_its_own, |root| Ok(Self { root: root.to_owned(), own: None }))
    }

    fn of_its_own() -> Result<Self, Refusal> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)
            .map_err(|error| Refusal::new("fsopen tracefs", error))?;
        fsconfig_create(&context).map_err(|error| Refusal::new("fsconfig tracefs", error))?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let own = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
            .map_err(|error| Refusal::new("fsmount tracefs", error))?;
        Ok(Self { root: format!("/proc/self/fd/{}", own.as_raw_fd()).into(), own: Some(own) })
    }

    /// Where it is mounted; `None`: nowhere, it is this process's own.
    pub fn place(&self) -> Option<&Path> {
        self.own.is_none().then_some(self.root.as_path())
    }

    /// The text of a file.
    ///
    /// # Errors
    /// As reading it.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<String> {
        iotomy_host::kernel_text(self.root.join(path))
    }

    /// How the values of a tracepoint are laid out; `None`: this kernel does not have it.
    pub(crate) fn format(&self, category: &str, name: &str) -> Option<String> {
        self.read(Path::new("events").join(category).join(name).join("format")).ok()
    }

    /// The number by which the kernel knows a tracepoint.
    pub(crate) fn number(&self, category: &str, name: &str) -> Option<u64> {
        let text = self.read(Path::new("events").join(category).join(name).join("id")).ok()?;
        text.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn it_is_read_where_it_is_mounted_nowhere_and_nothing_is_left() {
        // Others of this machine may be mounted and unmounted at any time.
        let mounts = || -> Vec<String> {
            let all = fs::read_to_string("/proc/self/mounts").unwrap();
            let is_tracefs = |line: &&str| line.split(' ').nth(2) == Some("tracefs");
            all.lines().filter(is_tracefs).map(str::to_owned).collect()
        };
        let before = mounts();
        let tracefs = match Tracefs::of_its_own() {
            Ok(tracefs) => tracefs,
            Err(refusal) => {
                let reason = format!("{}: {}", refusal.call, refusal.source);
                return iotomy_test_requirements::skip(
                    iotomy_test_requirements::Need::Bpf,
                    &reason,
                );
            }
        };
        assert!(tracefs.place().is_none());
        let number = tracefs.number("sched", "sched_switch").unwrap();
        let format = tracefs.format("sched", "sched_switch").unwrap();
        assert!(format.contains(&format!("ID: {number}\n")), "{format}");
        assert_eq!(tracefs.number("sched", "no_such_tracepoint"), None);
        assert_eq!(mounts(), before);
    }
}
