//! The machine a record was made on.

use serde::{Deserialize, Serialize};

/// The facts that a reader needs before comparing this machine's numbers with another's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Machine {
    /// Kernel name, release and architecture.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Logical processors online.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The hypervisor or container engine, or `none`.
    pub virtualization: String,
    /// The processor's weaknesses that the kernel works around, each with its mitigation.
    pub mitigations: String,
    /// The kernel's current clock source.
    pub clock: String,
    /// Its name among other machines: that of the host, or the one that the user gave it. Empty in
    /// records that do not name it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

impl Machine {
    /// Its hardware in a line, which stays the same whatever kernel it runs.
    pub fn hardware(&self) -> String {
        format!("{} x {} · {}", self.cpus, self.cpu, self.virtualization)
    }

    /// Whether records of both may be compared as of one machine, whatever kernels they ran: the hardware is the
    /// same, and the name where both have one.
    pub fn may_be(&self, other: &Self) -> bool {
        let has_other_name =
            !self.name.is_empty() && !other.name.is_empty() && self.name != other.name;
        !has_other_name && self.hardware() == other.hardware()
    }

    /// What it is called among others: its name, or else processor and kernel.
    pub fn title(&self) -> String {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let cpu = if self.cpu.is_empty() { "unknown processor" } else { &self.cpu };
        match self.kernel.as_str() {
            "" => format!("{} x {cpu}", self.cpus),
            kernel => format!("{} x {cpu}, {kernel}", self.cpus),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, cpus: u32, kernel: &str) -> Machine {
        let (name, kernel) = (name.to_owned(), kernel.to_owned());
        Machine { name, kernel, cpus, cpu: "EPYC".to_owned(), ..Machine::default() }
    }

    #[test]
    fn a_machine_is_told_from_others_by_its_name_and_hardware_and_not_by_its_kernel() {
        let one = machine("node1", 4, "Linux 6.1");
        assert!(one.may_be(&machine("node1", 4, "Linux 6.18")));
        assert!(!one.may_be(&machine("node2", 4, "Linux 6.1")));
        assert!(!one.may_be(&machine("node1", 8, "Linux 6.1")));
        // Records of before machines had names.
        let unnamed = machine("", 4, "Linux 6.1");
        assert!(one.may_be(&unnamed) && unnamed.may_be(&one) && unnamed.may_be(&unnamed));
        assert!(!unnamed.may_be(&machine("", 8, "Linux 6.1")));
    }

    #[test]
    fn a_machine_without_a_name_is_called_by_processor_and_kernel() {
        assert_eq!(machine("node1", 4, "Linux 6.1").title(), "node1");
        assert_eq!(machine("", 4, "Linux 6.1").title(), "4 x EPYC, Linux 6.1");
        assert_eq!(Machine::default().title(), "0 x unknown processor");
    }
}
