//! Names for numbers, and the order of rows: the same whoever observed.

use std::collections::HashMap;

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

/// Which of its process's images of this name each is, counted from 1; 0 where there is but one. The
/// images come in the order they began.
pub(crate) fn numbers<'a>(images: &[(u32, &'a str)]) -> Vec<u32> {
    let mut all: HashMap<(u32, &'a str), u32> = HashMap::new();
    for image in images {
        *all.entry(*image).or_default() += 1;
    }
    let mut so_far: HashMap<(u32, &'a str), u32> = HashMap::new();
    let number = |image: &(u32, &'a str)| {
        let nth = so_far.entry(*image).or_default();
        *nth += 1;
        if all[image] > 1 { *nth } else { 0 }
    };
    images.iter().map(number).collect()
}

/// Puts an image's calls in the record's order: most time first, then by name.
pub(crate) fn sort_calls(calls: &mut [Call]) {
    calls.sort_by(|a, b| b.wall_ns.cmp(&a.wall_ns).then_with(|| a.syscall.cmp(&b.syscall)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_one_name_in_one_process_are_numbered() {
        let images = [(7, "sh"), (7, "python3"), (8, "python3"), (7, "python3"), (7, "ls")];
        assert_eq!(numbers(&images), [0, 1, 0, 2, 0]);
    }
}
