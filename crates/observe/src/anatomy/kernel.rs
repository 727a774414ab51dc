//! Names of the kernel's functions by their addresses.
//!
//! The kernel resolves them address by address, through a program of the watch: reading the whole
//! table, `/proc/kallsyms`, takes longer than many a command. They are resolved while the watch's
//! programs are still loaded, as these have names there, too.

use std::collections::{HashMap, HashSet};
use std::fs;

const KALLSYMS: &str = "/proc/kallsyms";
const KPTR_RESTRICT: &str = "/proc/sys/kernel/kptr_restrict";

/// Functions of the running kernel, by addresses in them.
#[derive(Default)]
pub(crate) struct KernelSymbols {
    functions: HashMap<u64, String>,
}

impl KernelSymbols {
    /// Of lines `ffffffff81000000 name [module]`. Where there is no function, the kernel has the address for a name.
    pub(crate) fn parse(text: &str) -> Self {
        Self { functions: text.lines().filter_map(function).collect() }
    }

    /// Looks up the unnamed addresses in the table, which also has trampolines of ftrace.
    pub(crate) fn complete(&mut self, addresses: &[u64]) {
        let is_unnamed = |address: &u64| !self.functions.contains_key(address);
        let unnamed: Vec<u64> = addresses.iter().copied().filter(is_unnamed).collect();
        if unnamed.is_empty() {
            return;
        }
        let table = iotomy_host::kernel_text(KALLSYMS).unwrap_or_default();
        self.functions.extend(look_up(&table, &unnamed));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function of an address that was resolved.
    pub(crate) fn name(&self, address: u64) -> Option<&str> {
        self.functions.get(&address).map(String::as_str)
    }
}

/// The addresses at or behind the start of a function, with its name. The table has lines
/// `ffffffff81000000 T name [module]`, which count if they are of code and show an address.
fn look_up(table: &str, addresses: &[u64]) -> Vec<(u64, String)> {
    let start = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address > 0)?;
        matches!(words.next()?, "t" | "T" | "w" | "W").then_some(())?;
        Some((address, plain(words.next()?.split_ascii_whitespace().next()?)))
    };
    let mut starts: Vec<_> = table.lines().filter_map(start).collect();
    starts.sort_by_key(|(start, _)| *start);
    let name = |address: &u64| {
        let behind = starts.partition_point(|(start, _)| start <= address);
        starts.get(behind.checked_sub(1)?).map(|(_, name)| (*address, name.clone()))
    };
    addresses.iter().filter_map(name).collect()
}

/// The addresses of these stacks to resolve.
pub(crate) fn addresses(stacks: &HashMap<i32, Vec<u64>>) -> Vec<u64> {
    let frames = stacks.values().flat_map(|stack| stack.iter().enumerate());
    let all: HashSet<u64> = frames.map(|(depth, address)| inside(depth, *address)).collect();
    all.into_iter().collect()
}

/// An address in the function of this frame, the innermost being 0. All but that are where a call returns
/// to, which may be behind the function's end.
pub(crate) fn inside(depth: usize, address: u64) -> u64 {
    address.saturating_sub(u64::from(depth > 0))
}

fn function(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let name = words.next().filter(|name| !name.starts_with("0x"))?;
    Some((address, plain(name)))
}

/// Parts into which the compiler split one function (`name.cold`, `name.isra.0`) count as that
/// function.
fn plain(name: &str) -> String {
    let plain = name.split('.').next().filter(|plain| !plain.is_empty()).unwrap_or(name);
    without_tag(plain)
}

/// A BPF program's name has a tag of 16 digits in front, which means nothing to a reader.
fn without_tag(name: &str) -> String {
    let program = name.strip_prefix("bpf_prog_").and_then(|rest| {
        let (tag, program) = rest.split_at_checked(16)?;
        let is_tag = tag.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_tag.then_some(program)
    });
    program.map_or_else(|| name.to_owned(), |program| format!("bpf_prog{program}"))
}

/// Whether names are available, checked without reading all of them.
///
/// # Errors
/// Why they are not.
pub(crate) fn probe() -> Result<(), String> {
    use std::io::Read;
    let mut head = [0; 4096];
    let got = fs::File::open(KALLSYMS).and_then(|mut file| file.read(&mut head));
    let got = got.map_err(|error| format!("cannot read {KALLSYMS}: {error}"))?;
    let text = String::from_utf8_lossy(&head[..got]);
    // The first symbols may really be at 0: they are in each CPU's own memory.
    let shown = |line: &str| {
        let address = line.split(' ').next().unwrap_or_default();
        u64::from_str_radix(address, 16).is_ok_and(|address| address > 0)
    };
    if text.lines().any(shown) { Ok(()) } else { Err(hidden()) }
}

fn hidden() -> String {
    let level = iotomy_host::kernel_text(KPTR_RESTRICT).unwrap_or_default();
    match level.trim() {
        // An address of 0 depends on the reader's privilege.
        "0" => "the kernel hides the addresses of its functions from users without CAP_SYSLOG"
            .to_owned(),
        level => format!(
            "the kernel hides the addresses of its functions (kernel.kptr_restrict is {level})"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_name_that_the_kernel_gives() {
        let text = "ffffffff81000010 first\nffffffffc0000020 later.isra.0 [ext4]\n\
                    ffffffffc0000030 0xffffffffc0000030\nnonsense\n";
        let symbols = KernelSymbols::parse(text);
        let name = |address: u64| symbols.name(address);
        assert_eq!(
            [0xffff_ffff_8100_0010, 0xffff_ffff_c000_0020, 0xffff_ffff_c000_0030, 0].map(name),
            [Some("first"), Some("later"), None, None]
        );
    }

    #[test]
    fn what_the_kernel_does_not_name_is_in_the_function_that_begins_before_it() {
        let table = "0000000000000000 A fixed_percpu_data\nffffffff81000040 t later.isra.0 [ext4]\n\
                     ffffffff81000010 T first\nffffffff81000020 d data\nnonsense\n";
        let at = |low: u64| 0xffff_ffff_8100_0000 + low;
        let named = look_up(table, &[0, 0x10, 0x3f, 0x99].map(at));
        let named: Vec<_> = named.iter().map(|(address, name)| (*address, name.as_str())).collect();
        assert_eq!(named, [(at(0x10), "first"), (at(0x3f), "first"), (at(0x99), "later")]);
    }

    #[test]
    fn hidden_addresses_are_no_functions() {
        assert!(look_up("0000000000000000 T do_syscall_64\n", &[9]).is_empty());
    }

    #[test]
    fn all_addresses_of_stacks_are_asked_for_but_callers_by_the_call() {
        let stacks = HashMap::from([(1, vec![10, 20]), (2, vec![30, 20, 10])]);
        let mut addresses = addresses(&stacks);
        addresses.sort_unstable();
        assert_eq!(addresses, [9, 10, 19, 30]);
    }

    #[test]
    fn programs_are_named_without_their_tags() {
        assert_eq!(without_tag("bpf_prog_91b9d828c8ec3e4f_sys_enter"), "bpf_prog_sys_enter");
        assert_eq!(without_tag("bpf_prog_91b9d828c8ec3e4f"), "bpf_prog");
        assert_eq!(without_tag("bpf_prog_get_fd"), "bpf_prog_get_fd");
    }
}
