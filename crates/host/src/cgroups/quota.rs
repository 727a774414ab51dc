//! The share of the CPUs that control groups leave to processes: `cpu.max` of version 2, and
//! `cpu.cfs_quota_us` of version 1.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Cgroups;
use super::mounts::Mount;
use crate::kernel_text::{kernel_text, path_in_text};

/// The CPU time that control groups allow a set of processes.
#[derive(Debug, Clone, PartialEq)]
pub enum CpuQuota {
    /// They are not limited.
    Unlimited,
    /// All of them together get this many CPUs' time, by the limit of one group.
    Cpus {
        /// The CPUs that the quota comes to.
        cpus: f64,
        /// The group's directory.
        group: PathBuf,
    },
    /// Limits that differ, or of several groups.
    Different,
}

impl Cgroups {
    /// The quota of these processes, as far as groups are visible here. One that is gone has none.
    pub fn cpu_quota(&self, pids: impl IntoIterator<Item = u32>) -> CpuQuota {
        let memberships = |pid: u32| kernel_text(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let mut by_membership: BTreeMap<String, Option<(f64, PathBuf)>> = BTreeMap::new();
        for pid in pids {
            by_membership
                .entry(memberships(pid))
                .or_insert_with_key(|memberships| tightest(&self.mounts, memberships));
        }
        by_membership.remove("");
        shared(by_membership.into_values())
    }
}

/// What limits have in common.
fn shared(limits: impl IntoIterator<Item = Option<(f64, PathBuf)>>) -> CpuQuota {
    let mut limits = limits.into_iter();
    let first = limits.next().flatten();
    match (limits.all(|limit| limit == first), first) {
        (false, _) => CpuQuota::Different,
        (true, None) => CpuQuota::Unlimited,
        (true, Some((cpus, group))) => CpuQuota::Cpus { cpus, group },
    }
}

/// How often a group had used up its quota, since it was made (`cpu.stat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which one of its threads was to run.
    pub periods: u64,
    /// Of these, those in which the quota was used up: its threads waited for the next one.
    pub throttled: u64,
    /// How long they waited, summed over the CPUs, in ns.
    pub throttled_ns: u64,
}

impl Throttling {
    /// The counts of the group with this directory; `None` where it has none, or is gone.
    pub fn of_group(group: &Path) -> Option<Self> {
        let text = kernel_text(group.join("cpu.stat")).ok()?;
        let value = |name: &str| -> Option<u64> {
            let mut fields = text.lines().filter_map(|line| line.split_once(' '));
            fields.find_map(|(field, value)| (field == name).then(|| value.trim().parse().ok())?)
        };
        // Version 1 has ns under another name.
        let us = || value("throttled_usec").map(|us| us.saturating_mul(1_000));
        Some(Self {
            periods: value("nr_periods")?,
            throttled: value("nr_throttled")?,
            throttled_ns: us().or_else(|| value("throttled_time"))?,
        })
    }

    /// What came since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            throttled_ns: self.throttled_ns.saturating_sub(earlier.throttled_ns),
        }
    }
}

/// The least of the limits of a process's groups and those above them, and the group that has it.
fn tightest(mounts: &[Mount], memberships: &str) -> Option<(f64, PathBuf)> {
    let mut least: Option<(f64, PathBuf)> = None;
    for line in memberships.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(path)) = (fields.next(), fields.nth(1)) else { continue };
        let of_hierarchy = mounts.iter().filter(|one| number.parse() == Ok(one.hierarchy));
        for mount in of_hierarchy {
            let Ok(inner) = Path::new(path).strip_prefix(&mount.root) else { continue };
            let own = mount.directory.join(path_in_text(&inner.to_string_lossy()));
            // The group that is mounted may be a container's, and have a limit, too.
            for group in own.ancestors().take_while(|one| one.starts_with(&mount.directory)) {
                if let Some(cpus) = limit(group)
                    && least.as_ref().is_none_or(|(least, _)| cpus < *least)
                {
                    least = Some((cpus, group.to_owned()));
                }
            }
        }
    }
    least
}

/// The limit that one group sets.
fn limit(group: &Path) -> Option<f64> {
    let text = |name: &str| kernel_text(group.join(name)).ok();
    let (quota, period) = match text("cpu.max") {
        Some(line) => {
            let (quota, period) = line.trim().split_once(' ')?;
            (quota.to_owned(), period.to_owned())
        }
        None => (text("cpu.cfs_quota_us")?, text("cpu.cfs_period_us")?),
    };
    // `max`, or -1, is none.
    let quota: u64 = quota.trim().parse().ok()?;
    let period: u64 = period.trim().parse().ok()?;
    (period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(file: &Path, text: &str) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[test]
    fn the_least_limit_of_a_group_and_those_above_it_counts_in_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let [two, one] = ["unified", "cpu"].map(|name| folder.path().join(name));
        write(&two.join("a/cpu.max"), "150000 100000\n");
        write(&two.join("a/b/cpu.max"), "max 100000\n");
        write(&two.join("a/b/c/cpu.max"), "400000 100000\n");
        write(&one.join("a/cpu.cfs_quota_us"), "-1\n");
        write(&one.join("a/cpu.cfs_period_us"), "100000\n");
        write(&one.join("a/b/cpu.cfs_quota_us"), "25000\n");
        write(&one.join("a/b/cpu.cfs_period_us"), "50000\n");
        let mount = |directory: &Path, root: &str, hierarchy| Mount {
            directory: directory.to_owned(),
            root: root.to_owned(),
            hierarchy,
        };
        let mounts = [mount(&two, "/", 0), mount(&one, "/docker", 4)];
        let limit = |memberships| tightest(&mounts, memberships).map(|(cpus, _)| cpus);
        assert_eq!(limit("0::/a/b/c\n"), Some(1.5));
        assert_eq!(limit("0::/a\n4:cpu,cpuacct:/docker/a/b\n"), Some(0.5));
        assert_eq!(limit("4:cpu:/docker/a\n0::/\n"), None);
        assert_eq!(limit("4:cpu:/a/b\n"), None, "not what is mounted");
        assert_eq!(limit("cut\n"), None);
    }

    #[test]
    fn limits_of_several_groups_are_not_one() {
        let limit = |cpus, group: &str| Some((cpus, PathBuf::from(group)));
        assert_eq!(shared([]), CpuQuota::Unlimited);
        assert_eq!(shared([None, None]), CpuQuota::Unlimited);
        let one = CpuQuota::Cpus { cpus: 0.5, group: "/a".into() };
        assert_eq!(shared([limit(0.5, "/a"), limit(0.5, "/a")]), one);
        assert_eq!(shared([limit(0.5, "/a"), limit(0.5, "/b")]), CpuQuota::Different);
        assert_eq!(shared([None, limit(0.5, "/b")]), CpuQuota::Different);
    }

    #[test]
    fn throttling_is_read_in_both_versions_and_counts_since_an_earlier_reading() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, text| {
            let group = folder.path().join(name);
            write(&group.join("cpu.stat"), text);
            Throttling::of_group(&group)
        };
        let throttling =
            |periods, throttled, throttled_ns| Throttling { periods, throttled, throttled_ns };
        let two = "usage_usec 9\nnr_periods 40\nnr_throttled 30\nthrottled_usec 7\nnr_bursts 0\n";
        assert_eq!(of("two", two), Some(throttling(40, 30, 7_000)));
        let one = "nr_periods 50\nnr_throttled 31\nthrottled_time 9000\n";
        assert_eq!(of("one", one), Some(throttling(50, 31, 9_000)));
        assert_eq!(of("root", "usage_usec 9\n"), None);
        let since = throttling(50, 31, 9_000).since(throttling(40, 30, 7_000));
        assert_eq!(since, throttling(10, 1, 2_000));
    }

    #[test]
    fn this_process_is_in_groups_with_or_without_a_limit() {
        let cgroups = Cgroups::of_this_machine();
        let own = cgroups.cpu_quota([std::process::id()]);
        let is_none = matches!(own, CpuQuota::Cpus { cpus: ..=0.0, .. });
        assert!(own != CpuQuota::Different && !is_none, "{own:?}");
        assert_eq!(cgroups.cpu_quota([u32::MAX >> 2]), CpuQuota::Unlimited);
    }

    #[test]
    fn a_group_whose_name_is_no_utf8_has_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().to_owned();
        let group = directory.join(path_in_text(r"a\xff"));
        write(&group.join("cpu.max"), "50000 100000\n");
        let mounts = [Mount { directory, root: String::from("/"), hierarchy: 0 }];
        assert_eq!(tightest(&mounts, r"0::/a\xff"), Some((0.5, group)));
        assert_eq!(tightest(&mounts, r"0::/a\xfe"), None);
    }
}
