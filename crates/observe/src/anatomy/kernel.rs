//! Names of the kernel's functions by their addresses, from `/proc/kallsyms`.
//!
//! The table is read while the watch's programs are still loaded: they have names there, too.

use std::fs;

const KALLSYMS: &str = "/proc/kallsyms";
const KPTR_RESTRICT: &str = "/proc/sys/kernel/kptr_restrict";

/// The functions of the running kernel, in the order of their addresses.
#[derive(Default)]
pub(crate) struct KernelSymbols {
    functions: Vec<(u64, String)>,
}

impl KernelSymbols {
    /// Reads them.
    ///
    /// # Errors
    /// The file cannot be read, or the kernel does not show the addresses.
    pub(crate) fn read() -> Result<Self, String> {
        let text = fs::read_to_string(KALLSYMS)
            .map_err(|error| format!("cannot read {KALLSYMS}: {error}"))?;
        let symbols = Self::parse(&text);
        if symbols.functions.is_empty() {
            return Err(hidden());
        }
        Ok(symbols)
    }

    fn parse(text: &str) -> Self {
        let mut functions: Vec<(u64, String)> = text.lines().filter_map(function).collect();
        functions.sort_by_key(|(address, _)| *address);
        Self { functions }
    }

    /// The function an address is in.
    pub(crate) fn name(&self, address: u64) -> Option<&str> {
        let behind = self.functions.partition_point(|(start, _)| *start <= address);
        self.functions.get(behind.checked_sub(1)?).map(|(_, name)| name.as_str())
    }
}

/// `ffffffff81000000 T name [module]`, of what has code and an address that is shown. What the
/// compiler made of one function (`name.cold`, `name.isra.0`) is that function.
fn function(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address > 0)?;
    let kind = words.next()?;
    if !matches!(kind, "t" | "T" | "w" | "W") {
        return None;
    }
    let name = words.next()?;
    let plain = name.split('.').next().filter(|plain| !plain.is_empty()).unwrap_or(name);
    Some((address, without_tag(plain)))
}

/// A BPF program's name has a tag of 16 digits in front, which says nothing to a reader.
fn without_tag(name: &str) -> String {
    let program = name.strip_prefix("bpf_prog_").and_then(|rest| {
        let (tag, program) = rest.split_at_checked(16)?;
        let is_tag = tag.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_tag.then_some(program)
    });
    program.map_or_else(|| name.to_owned(), |program| format!("bpf_prog{program}"))
}

/// Whether names are to be had, found out without reading all of them.
///
/// # Errors
/// Why they are not.
pub(crate) fn probe() -> Result<(), String> {
    use std::io::Read;
    let mut head = [0; 4096];
    let got = fs::File::open(KALLSYMS).and_then(|mut file| file.read(&mut head));
    let got = got.map_err(|error| format!("cannot read {KALLSYMS}: {error}"))?;
    let text = String::from_utf8_lossy(&head[..got]);
    // The first symbols may be at 0 for good: they are of each CPU's own memory.
    let shown = |line: &str| {
        let address = line.split(' ').next().unwrap_or_default();
        u64::from_str_radix(address, 16).is_ok_and(|address| address > 0)
    };
    if text.lines().any(shown) { Ok(()) } else { Err(hidden()) }
}

fn hidden() -> String {
    let level = fs::read_to_string(KPTR_RESTRICT).unwrap_or_default();
    match level.trim() {
        // At 0 it depends on who asks.
        "0" => "the kernel hides the addresses of its functions from this user, who has no \
                CAP_SYSLOG"
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
    fn an_address_is_in_the_function_that_begins_before_it() {
        let table = "0000000000000000 A fixed_percpu_data\nffffffff81000040 t later.isra.0 [ext4]\n\
                     ffffffff81000010 T first\nffffffff81000020 d data\nnonsense\n";
        let symbols = KernelSymbols::parse(table);
        let name = |low: u64| symbols.name(0xffff_ffff_8100_0000 + low);
        assert_eq!(
            [name(0), name(0x10), name(0x3f), name(0x99)],
            [None, Some("first"), Some("first"), Some("later")]
        );
    }

    #[test]
    fn programs_are_named_without_their_tags() {
        assert_eq!(without_tag("bpf_prog_91b9d828c8ec3e4f_sys_enter"), "bpf_prog_sys_enter");
        assert_eq!(without_tag("bpf_prog_91b9d828c8ec3e4f"), "bpf_prog");
        assert_eq!(without_tag("bpf_prog_get_fd"), "bpf_prog_get_fd");
    }

    #[test]
    fn hidden_addresses_are_no_functions() {
        assert!(KernelSymbols::parse("0000000000000000 T do_syscall_64\n").functions.is_empty());
    }
}
