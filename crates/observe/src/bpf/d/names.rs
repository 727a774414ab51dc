//! Names of addresses in stacks: functions of the kernel and of mapped files, as DTrace writes them.
//!
//! The kernel's are read once, when the first is asked for, while the program is loaded: its own functions are
//! among them. What a process has mapped is read when it is first asked for, and once the program has ended it is
//! what the kernel told of all processes meanwhile, also of those that have ended.

use std::cell::{OnceCell, RefCell};
use std::collections::HashSet;
use std::fs;

use iotomy_dtrace::output::Names;
use iotomy_host::kernel_text;
use iotomy_record::lossless;

use crate::anatomy::mappings::Mappings;
use crate::anatomy::user::UserSymbols;
use crate::naming::basename;

const KALLSYMS: &str = "/proc/kallsyms";

/// Functions of the kernel through which a probe comes to run a program.
const OF_PROBES: [&str; 9] = [
    "bpf_",
    "__bpf_",
    "__traceiter_",
    "trace_call_bpf",
    "perf_trace_",
    "perf_event_overflow",
    "__perf_event_overflow",
    "stack_trace_save",
    "arch_stack_walk",
];

/// The names on this machine.
#[derive(Default)]
pub(super) struct MachineNames {
    kernel: OnceCell<Vec<(u64, String)>>,
    files: RefCell<UserSymbols>,
    /// Of processes that run.
    running: RefCell<Running>,
    /// Of all that there were, when the program has ended.
    all: RefCell<Option<Mappings>>,
}

/// What processes have mapped that were looked at.
struct Running {
    mappings: Mappings,
    seen: HashSet<u32>,
}

impl Default for Running {
    fn default() -> Self {
        Self { mappings: Mappings::new(std::process::id()), seen: HashSet::new() }
    }
}

impl std::fmt::Debug for MachineNames {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("MachineNames").finish_non_exhaustive()
    }
}

impl MachineNames {
    /// What was mapped while the program ran.
    pub(super) fn complete(&self, mappings: Option<Mappings>) {
        self.all.replace(mappings);
    }

    /// The function of the kernel's that an address is in: where it begins, and its name.
    fn function(&self, address: u64) -> Option<&(u64, String)> {
        let all = self.kernel.get_or_init(kernel_functions);
        // The kernel's addresses are the upper half.
        if address >> 63 == 0 {
            return None;
        }
        let behind = all.partition_point(|(start, _)| *start <= address);
        all.get(behind.checked_sub(1)?)
    }

    /// The name that an address has in what a process has mapped.
    fn mapped(&self, mappings: &Mappings, process: u32, address: u64) -> Option<String> {
        let place = mappings.at(process, u64::MAX, address)?;
        let file = basename(place.path);
        let mut files = self.files.borrow_mut();
        Some(match files.place(place.path, place.inode, place.offset) {
            Some((name, 0)) => format!("{file}`{name}"),
            Some((name, inside)) => format!("{file}`{name}+{inside:#x}"),
            None => format!("{file}`{:#x}", place.offset),
        })
    }
}

impl Names for MachineNames {
    fn kernel(&self, address: u64) -> String {
        match self.function(address) {
            Some((start, name)) if *start == address => name.clone(),
            Some((start, name)) => format!("{name}+{:#x}", address - start),
            None => format!("{address:#x}"),
        }
    }

    fn user(&self, process: u64, address: u64) -> String {
        let number = || format!("{address:#x}");
        let Ok(process) = u32::try_from(process) else { return number() };
        if let Some(all) = &*self.all.borrow()
            && let Some(name) = self.mapped(all, process, address)
        {
            return name;
        }
        let mut running = self.running.borrow_mut();
        let name = self.mapped(&running.mappings, process, address);
        if name.is_some() || !running.seen.insert(process) {
            return name.unwrap_or_else(number);
        }
        let maps = fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
        running.mappings.attach(process, &lossless(&maps));
        self.mapped(&running.mappings, process, address).unwrap_or_else(number)
    }

    fn is_probe(&self, address: u64) -> bool {
        self.function(address).is_none_or(|(_, name)| {
            let name = name.split_once('`').map_or(name.as_str(), |(_, name)| name);
            OF_PROBES.iter().any(|start| name.starts_with(start))
        })
    }
}

/// Functions of the kernel, by where they begin, as `module` and name. The table has lines
/// `ffffffff81000000 T name [module]`.
fn kernel_functions() -> Vec<(u64, String)> {
    let table = kernel_text(KALLSYMS).unwrap_or_default();
    let mut functions: Vec<(u64, String)> = table.lines().filter_map(function).collect();
    functions.sort_by_key(|(start, _)| *start);
    functions
}

fn function(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address > 0)?;
    matches!(words.next()?, "t" | "T" | "w" | "W").then_some(())?;
    let name = words.next()?;
    let module = words.next().map_or("vmlinux", |word| word.trim_matches(['[', ']']));
    Some((address, format!("{module}`{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_their_module_before_their_name() {
        let of = |line: &str| function(line).map(|(_, name)| name);
        assert_eq!(of("ffffffff81000000 T vfs_read").as_deref(), Some("vmlinux`vfs_read"));
        assert_eq!(of("ffffffffc0000000 t f\t[ext4]").as_deref(), Some("ext4`f"));
        assert_eq!(of("ffffffff81000000 D data"), None);
        assert_eq!(of("0000000000000000 T hidden"), None);
    }

    #[test]
    fn an_address_of_this_process_has_the_name_of_its_function() {
        let names = MachineNames::default();
        let address = functions_address();
        let name = names.user(std::process::id().into(), address);
        assert!(name.contains('`') && !name.starts_with("0x"), "{name}");
        assert_eq!(names.user(1 << 40, 16), "0x10");
    }

    /// Of code of this program.
    fn functions_address() -> u64 {
        kernel_functions as fn() -> Vec<(u64, String)> as usize as u64
    }
}
