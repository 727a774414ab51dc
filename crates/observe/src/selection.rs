//! Which running processes are watched.

use std::collections::BTreeSet;

use iotomy_dtrace::Glob;
use iotomy_host::{Cgroup, kernel_text};
use iotomy_record::Running;

use crate::ObserveError;
use crate::attach;

/// Running processes: those named, those by name, and those in control groups. What is meant by
/// several is watched once.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// These processes; any thread stands for its process.
    pub processes: Vec<u32>,
    /// Those with such a name, as the kernel has it (`comm`) or as the file they run has it, now or
    /// when they execute a program.
    pub names: Vec<Glob>,
    /// Those in these control groups or below, now or later.
    pub cgroups: Vec<Cgroup>,
    /// Whether the processes that they made, and will make, are left out.
    pub only: bool,
}

/// Most patterns of names: as many as `selection.bpf.h` tries.
pub(crate) const MOST_NAMES: usize = 64;

impl Selection {
    /// One process, with its descendants.
    pub fn process(pid: u32) -> Self {
        Self { processes: vec![pid], ..Self::default() }
    }

    /// With the processes of the threads named.
    ///
    /// # Errors
    /// There is no such task, or it makes no calls; there are too many patterns.
    pub(crate) fn resolved(&self) -> Result<Self, ObserveError> {
        if self.names.len() > MOST_NAMES {
            return Err(ObserveError::Target {
                observer: "bpf",
                what: "processes by more than 64 patterns",
                remedy: "use fewer patterns with `*` in them, or -a for all processes",
            });
        }
        let mut processes = Vec::new();
        for pid in &self.processes {
            let process = attach::process(*pid)?;
            if !processes.contains(&process) {
                processes.push(process);
            }
        }
        Ok(Self { processes, ..self.clone() })
    }

    /// What the processes named have made before, where just they are watched.
    pub(crate) fn left_out(&self) -> Vec<Running> {
        if !self.only {
            return Vec::new();
        }
        let mut found: Vec<Running> =
            self.processes.iter().flat_map(|pid| attach::descendants(*pid)).collect();
        found.sort_by_key(|one| one.pid);
        found.dedup();
        found.retain(|one| !self.processes.contains(&one.pid));
        found
    }

    /// Whether other processes may come at any time.
    pub fn is_open_ended(&self) -> bool {
        !self.names.is_empty() || !self.cgroups.is_empty()
    }

    /// The processes that it means now.
    pub fn running(&self) -> BTreeSet<u32> {
        let mut found: BTreeSet<u32> = self.processes.iter().copied().collect();
        if self.is_open_ended() {
            found.extend(
                attach::all().filter(|pid| self.is_named(*pid) || self.has_in_cgroup(*pid)),
            );
        }
        if !self.only {
            for pid in found.clone() {
                found.extend(attach::descendants(pid).iter().map(|one| one.pid));
            }
        }
        // Where it watches itself, it would never end.
        found.remove(&std::process::id());
        found
    }

    fn is_named(&self, pid: u32) -> bool {
        let names = || attach::own_names(pid);
        !self.names.is_empty()
            && names().iter().any(|name| self.names.iter().any(|glob| glob.matches(name)))
    }

    fn has_in_cgroup(&self, pid: u32) -> bool {
        if self.cgroups.is_empty() {
            return false;
        }
        let memberships = kernel_text(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        memberships.lines().any(|line| {
            let mut fields = line.splitn(3, ':');
            let (Some(hierarchy), Some(path)) = (fields.next(), fields.nth(1)) else {
                return false;
            };
            self.cgroups.iter().any(|cgroup| {
                hierarchy.parse() == Ok(cgroup.hierarchy) && is_below(path, &cgroup.path)
            })
        })
    }
}

/// Whether a control group is another, or below it.
fn is_below(path: &str, other: &str) -> bool {
    let rest = path.strip_prefix(other.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_holds_what_is_below_it_and_not_beside_it() {
        assert!(is_below("/a/b", "/a"));
        assert!(is_below("/a", "/a"));
        assert!(is_below("/a", "/"));
        assert!(!is_below("/ab", "/a"));
        assert!(!is_below("/", "/a"));
    }

    #[test]
    fn a_process_is_found_by_either_of_its_names_with_what_it_made() {
        // The child's file is cat, its maker's sh, or whatever that is a link to.
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "cat; exit 0"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let of = |name: &str, only| Selection {
            names: vec![name.parse().unwrap()],
            only,
            ..Selection::default()
        };
        let cat = iotomy_test_requirements::wait::until_some("there is a cat", || {
            match &*attach::descendants(shell.id()) {
                [one] if one.exec == "cat" => Some(one.pid),
                _ => None,
            }
        });
        assert!(of("ca?", false).running().contains(&cat));
        assert!(!of("ca?", false).running().contains(&shell.id()));
        assert!(of("sh", false).running().is_superset(&BTreeSet::from([cat, shell.id()])));
        assert!(!of("sh", true).running().contains(&cat));
        let all = of("*", true).running();
        assert!(all.contains(&cat) && !all.contains(&std::process::id()));
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
