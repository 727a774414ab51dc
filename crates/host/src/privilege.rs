//! Remedies for operations that this process has no permission for.
//!
//! The tricky part: the same EPERM comes from a missing capability, from a container's filter of
//! calls and from a kernel locked down, and only the first is helped by becoming root. Capabilities
//! that are held in a user namespace, as by `unshare -r`, count for nothing outside of it.

use iotomy_sys::errno;
use iotomy_sys::probe::Refusal;

use crate::kernel_text;

/// The capabilities that checks need, with their numbers in linux/capability.h.
const CAPABILITIES: &[(&str, u32)] = &[
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_IPC_LOCK", 14),
    ("CAP_SYS_PTRACE", 19),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYS_NICE", 23),
    ("CAP_PERFMON", 38),
    ("CAP_BPF", 39),
];

/// Whether the kernel denied permission, rather than lacking the feature.
pub fn not_allowed(refusal: &Refusal) -> bool {
    matches!(errno::name(refusal.errno().unsigned_abs()), Some("EPERM" | "EACCES"))
}

/// The remedy for a refusal that `capabilities` would lift.
pub fn privilege(capabilities: &[&str]) -> String {
    Facts::read().remedy(capabilities)
}

/// Whether this process has these capabilities, and not in a user namespace alone.
pub fn has(capabilities: &[&str]) -> bool {
    let facts = Facts::read();
    !facts.in_user_namespace && capabilities.iter().all(|name| facts.has(name))
}

/// Whether this process is in a user namespace of its own, whose root is not that of the machine.
pub fn in_user_namespace() -> bool {
    // The number of the first one, which is the same on every machine (`PROC_USER_INIT_INO`).
    const FIRST: u64 = 0xEFFF_FFFD;
    rustix::fs::stat("/proc/self/ns/user").is_ok_and(|namespace| namespace.st_ino != FIRST)
}

/// Whether this process is root's, which `run as root` does not help.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this process runs under a filter of calls.
pub fn filtered() -> bool {
    status("Seccomp:").is_some_and(|mode| mode == "2")
}

/// Whether another process traces this one.
pub fn traced() -> bool {
    status("TracerPid:").is_some_and(|tracer| tracer != "0")
}

/// A field of `/proc/self/status`.
fn status(field: &str) -> Option<String> {
    let status = kernel_text("/proc/self/status").ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix(field))?.trim().to_owned())
}

/// The facts that decide which remedy can work.
struct Facts {
    effective: Option<u64>,
    root: bool,
    in_user_namespace: bool,
    filtered: bool,
    lockdown: String,
}

impl Facts {
    fn read() -> Self {
        Self {
            effective: status("CapEff:").and_then(|mask| u64::from_str_radix(&mask, 16).ok()),
            root: is_root(),
            in_user_namespace: in_user_namespace(),
            filtered: filtered(),
            lockdown: kernel_text("/sys/kernel/security/lockdown").unwrap_or_default(),
        }
    }

    fn remedy(&self, capabilities: &[&str]) -> String {
        if self.in_user_namespace {
            let wanted = capabilities.join(" and ");
            return format!("run outside of this user namespace, as root or with {wanted}");
        }
        let lacking: Vec<&str> =
            capabilities.iter().filter(|name| !self.has(name)).copied().collect();
        if !lacking.is_empty() && self.root {
            // Root can only have been denied them by its container.
            return format!("give this container {}", lacking.join(" and "));
        }
        if !lacking.is_empty() {
            return format!("run as root or with {}", capabilities.join(" and "));
        }
        let held = capabilities.join(" and ");
        if self.filtered {
            format!("allow the call in this container's seccomp profile ({held} held)")
        } else if ["[integrity]", "[confidentiality]"].iter().any(|on| self.lockdown.contains(on)) {
            format!("boot with lockdown=none ({held} held, but the kernel is locked down)")
        } else {
            format!("boot another kernel: this one or a security module forbids it ({held} held)")
        }
    }

    fn has(&self, capability: &str) -> bool {
        let bit = CAPABILITIES.iter().find(|(known, _)| *known == capability);
        bit.is_some_and(|(_, bit)| self.effective.unwrap_or(0) & (1 << bit) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [&str; 2] = ["CAP_BPF", "CAP_PERFMON"];

    fn facts(effective: u64, root: bool) -> Facts {
        Facts {
            effective: Some(effective),
            root,
            in_user_namespace: false,
            filtered: false,
            lockdown: String::new(),
        }
    }

    #[test]
    fn a_remedy_asks_only_for_what_is_lacking() {
        let user = facts(0, false).remedy(&BOTH);
        assert_eq!(user, "run as root or with CAP_BPF and CAP_PERFMON");
        assert_eq!(facts(1 << 39, true).remedy(&BOTH), "give this container CAP_PERFMON");
    }

    #[test]
    fn what_is_held_in_a_user_namespace_does_not_count() {
        for effective in [0, 3 << 38] {
            let inside = Facts { in_user_namespace: true, ..facts(effective, true) };
            let wanted =
                "run outside of this user namespace, as root or with CAP_BPF and CAP_PERFMON";
            assert_eq!(inside.remedy(&BOTH), wanted);
        }
    }

    #[test]
    fn who_has_the_capabilities_is_told_what_else_forbids_it() {
        let mut held = facts(3 << 38, true);
        assert!(held.remedy(&BOTH).starts_with("boot another kernel"));
        held.lockdown = "none [integrity] confidentiality\n".to_owned();
        assert!(held.remedy(&BOTH).starts_with("boot with lockdown=none"));
        held.lockdown = "[none] integrity confidentiality\n".to_owned();
        assert!(held.remedy(&BOTH).starts_with("boot another kernel"));
        held.filtered = true;
        assert!(held.remedy(&BOTH).starts_with("allow the call"));
    }

    #[test]
    fn every_capability_has_its_number() {
        for (name, bit) in CAPABILITIES {
            assert!(facts(1 << bit, true).has(name) && !facts(!(1 << bit), true).has(name));
        }
    }
}
