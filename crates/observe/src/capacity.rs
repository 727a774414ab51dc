//! The CPUs that the watched processes may use: those that their threads were allowed, and the quota
//! of their control groups.

use std::path::Path;

use iotomy_host::{Cgroups, CpuQuota, Throttling, online_cpus};
use iotomy_record::{CpuCapacity, Throttled};

use crate::request::Target;

/// The limits of the processes of a target when its watch begins.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    quota: CpuQuota,
    /// How often the group had been throttled then.
    throttling: Option<Throttling>,
    is_machine: bool,
}

impl Limits {
    pub(crate) fn for_target(target: &Target) -> Self {
        let cgroups = Cgroups::of_this_machine();
        let quota = match target {
            // It begins in the group of this process.
            Target::Command(_) => cgroups.cpu_quota([std::process::id()]),
            Target::Running(selection) => cgroups.cpu_quota(selection.running()),
            Target::Machine => CpuQuota::Unlimited,
        };
        let throttling = group(&quota).and_then(Throttling::of_group);
        Self { quota, throttling, is_machine: matches!(target, Target::Machine) }
    }

    /// With the CPUs on which their threads might run, a bit each; nothing where one of the limits is
    /// not known, or not one for all.
    pub(crate) fn capacity(&self, allowed: &[u64]) -> Option<CpuCapacity> {
        let online = online_cpus();
        let is_allowed = |cpu: &&u32| {
            let word = allowed.get(**cpu as usize / 64).copied().unwrap_or(0);
            self.is_machine || word >> (**cpu % 64) & 1 == 1
        };
        let affinity = u32::try_from(online.iter().filter(is_allowed).count()).unwrap_or(0);
        let quota = match &self.quota {
            CpuQuota::Unlimited => None,
            CpuQuota::Cpus { cpus, .. } => Some(*cpus),
            CpuQuota::Different => return None,
        };
        let cpus = quota.map_or(f64::from(affinity), |quota| quota.min(affinity.into()));
        let throttled = self.throttled();
        (cpus > 0.0).then_some(CpuCapacity { cpus, affinity, quota, throttled })
    }

    /// How often the quota was used up since the watch began.
    fn throttled(&self) -> Option<Throttled> {
        let now = Throttling::of_group(group(&self.quota)?)?;
        let Throttling { periods, throttled, throttled_ns } = now.since(self.throttling?);
        Some(Throttled { periods, throttled, ns: throttled_ns })
    }
}

/// The group whose quota it is.
fn group(quota: &CpuQuota) -> Option<&Path> {
    match quota {
        CpuQuota::Cpus { group, .. } => Some(group),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_counts_and_differing_ones_do_not() {
        let all = u32::try_from(online_cpus().len()).unwrap();
        let capacity = |quota, is_machine, allowed: &[u64]| {
            let limits = Limits { quota, throttling: None, is_machine };
            limits.capacity(allowed).map(|one| (one.cpus, one.affinity))
        };
        let quota = |cpus| CpuQuota::Cpus { cpus, group: "/nowhere".into() };
        let every = vec![u64::MAX; 64];
        let whole = Some((f64::from(all), all));
        assert_eq!(capacity(CpuQuota::Unlimited, false, &every), whole);
        assert_eq!(capacity(CpuQuota::Unlimited, true, &[]), whole);
        assert_eq!(capacity(quota(0.5), false, &every), Some((0.5, all)));
        assert_eq!(capacity(quota(1e9), false, &every), whole);
        let first = online_cpus()[0];
        let mut one = vec![0; 64];
        one[first as usize / 64] = 1 << (first % 64);
        assert_eq!(capacity(quota(1e9), false, &one), Some((1.0, 1)));
        assert_eq!(capacity(CpuQuota::Unlimited, false, &[]), None, "no thread has left yet");
        assert_eq!(capacity(CpuQuota::Different, false, &every), None);
    }
}
