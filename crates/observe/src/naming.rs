//! Names for numbers, and the order of rows: the same whoever observed.

use iotomy_record::Call;
use iotomy_sys::errno;
use iotomy_sys::syscalls::{self, Abi};

/// What the record puts behind the names of calls by the 32-bit entry.
const I386: &str = "(i386)";

/// A call as the record names it.
pub(crate) fn call_name(abi: Abi, number: u32) -> String {
    let name = syscalls::name(abi, number);
    if abi == Abi::I386 { name + I386 } else { name }
}

/// A call's name as its manual page has it, whichever the entry.
pub(crate) fn plain_name(name: &str) -> &str {
    name.strip_suffix(I386).unwrap_or(name)
}

/// An error as the record names it.
pub(crate) fn error_name(number: u32) -> String {
    errno::name(number).map_or_else(|| format!("errno_{number}"), str::to_owned)
}

/// Puts an image's calls in the record's order: most time first, then by name.
pub(crate) fn sort_calls(calls: &mut [Call]) {
    calls.sort_by(|a, b| b.wall_ns.cmp(&a.wall_ns).then_with(|| a.syscall.cmp(&b.syscall)));
}
