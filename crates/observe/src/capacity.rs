//! The CPUs that the watched processes may use: those that their threads were allowed, and the quota
//! of their control groups.

use iotomy_host::{Cgroups, CpuQuota, online_cpus};
use iotomy_record::CpuCapacity;

use crate::request::Target;

/// The limits of the processes of a target when its watch begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    quota: CpuQuota,
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
        Self { quota, is_machine: matches!(target, Target::Machine) }
    }

    /// With the CPUs on which their threads might run, a bit each; nothing where one of the limits is
    /// not known, or not one for all.
    pub(crate) fn capacity(self, allowed: &[u64]) -> Option<CpuCapacity> {
        let online = online_cpus();
        let is_allowed = |cpu: &&u32| {
            let word = allowed.get(**cpu as usize / 64).copied().unwrap_or(0);
            self.is_machine || word >> (**cpu % 64) & 1 == 1
        };
        let affinity = u32::try_from(online.iter().filter(is_allowed).count()).unwrap_or(0);
        let quota = match self.quota {
            CpuQuota::Unlimited => None,
            CpuQuota::Cpus(cpus) => Some(cpus),
            CpuQuota::Different => return None,
        };
        let cpus = quota.map_or(f64::from(affinity), |quota| quota.min(affinity.into()));
        (cpus > 0.0).then_some(CpuCapacity { cpus, affinity, quota })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_counts_and_differing_ones_do_not() {
        let all = u32::try_from(online_cpus().len()).unwrap();
        let capacity = |quota, is_machine, allowed: &[u64]| {
            Limits { quota, is_machine }.capacity(allowed).map(|one| (one.cpus, one.affinity))
        };
        let every = vec![u64::MAX; 64];
        let whole = Some((f64::from(all), all));
        assert_eq!(capacity(CpuQuota::Unlimited, false, &every), whole);
        assert_eq!(capacity(CpuQuota::Unlimited, true, &[]), whole);
        assert_eq!(capacity(CpuQuota::Cpus(0.5), false, &every), Some((0.5, all)));
        assert_eq!(capacity(CpuQuota::Cpus(1e9), false, &every), whole);
        let first = online_cpus()[0];
        let mut one = vec![0; 64];
        one[first as usize / 64] = 1 << (first % 64);
        assert_eq!(capacity(CpuQuota::Cpus(1e9), false, &one), Some((1.0, 1)));
        assert_eq!(capacity(CpuQuota::Unlimited, false, &[]), None, "no thread has left yet");
        assert_eq!(capacity(CpuQuota::Different, false, &every), None);
    }
}
