//! The settings of a watch, as the kernel's side wants them: what follows from the request, and from the kinds of calls.

use iotomy_sys::syscalls::{self, Abi, PathArgument};

use super::object::Knobs;
use crate::Selection;
use crate::filter::Filter;
use crate::naming::{call_name, plain_name};
use crate::request::{Request, Target};
use crate::ring_names;

/// The settings of a watch of nothing.
pub(super) fn trial(has_companions: bool) -> Knobs {
    Knobs {
        by_file: true,
        by_path: false,
        by_peer: false,
        by_thread: true,
        slowest: 0,
        whole_machine: false,
        wanted: None,
        passed: None,
        rings: Some(ring_names::transfers(|_| true)),
        transfers: transfers(),
        paths: [[0; 512]; 2],
        descriptors: [[0; 512]; 2],
        filter: Filter::default(),
        sampled: false,
        rows: 64,
        looked_at: false,
        has_companions,
        selection: Selection::default(),
    }
}

/// Calls that are followed from entry to return whether they are counted or not: they change a thread's program, end
/// it, do the work of rings, or go back to what a signal interrupted.
const NEVER_PASSED: [&str; 7] =
    ["execve", "execveat", "exit", "exit_group", "io_uring_enter", "rt_sigreturn", "sigreturn"];

/// A bit a call for which `is` holds, of the 64-bit and of the 32-bit calls.
fn bits(is: impl Fn(&str) -> bool) -> [[u64; 8]; 2] {
    let mut bits = [[0u64; 8]; 2];
    for (of_abi, abi) in bits.iter_mut().zip([Abi::X86_64, Abi::I386]) {
        for number in (0..512u32).filter(|number| is(&call_name(abi, *number))) {
            of_abi[number as usize / 64] |= 1 << (number % 64);
        }
    }
    bits
}

/// Those of a watch that is asked for.
pub(super) fn knobs(request: &Request, looked_at: bool) -> Knobs {
    let is_filtered = request.calls.is_some() || !request.filter.is_none();
    let wanted = is_filtered.then(|| bits(|name| request.wants(name)));
    // Outside windows all of them are let pass.
    let passed = (is_filtered && request.sample.is_none())
        .then(|| bits(|name| !request.wants(name) && !NEVER_PASSED.contains(&plain_name(name))));
    Knobs {
        by_file: request.files,
        by_path: request.paths,
        by_peer: request.peers,
        by_thread: request.threads,
        slowest: request.slowest,
        whole_machine: matches!(request.target, Target::Machine),
        wanted,
        passed,
        rings: request
            .wants_rings()
            .then(|| ring_names::transfers(|operation| request.wants_ring_operation(operation))),
        transfers: transfers(),
        paths: paths(),
        descriptors: descriptors(request),
        filter: request.filter.clone(),
        sampled: request.sample.is_some(),
        rows: request.rows,
        looked_at,
        has_companions: false,
        selection: Selection::default(),
    }
}

/// What a call moves bytes between, as the kernel side wants it: from + 1 in the low half, to + 1 in the high half.
pub(super) fn transfer(name: &str) -> u8 {
    let how = syscalls::transfer(name).unwrap_or_default();
    let half = |argument: Option<u8>| argument.map_or(0, |at| at + 1);
    half(how.from) | half(how.to) << 4
}

/// Of each call. The calls that are special have other arguments by the 32-bit entry, where they are left out.
fn transfers() -> [[u8; 512]; 2] {
    const SPECIAL: u8 = 0xf;
    let of_abi = |abi| {
        std::array::from_fn(|number| {
            let name = syscalls::name(abi, number as u32);
            if abi == Abi::X86_64 && name == "mmap" {
                return SPECIAL;
            }
            if let Some(count) = syscalls::polls(&name).filter(|_| abi == Abi::X86_64) {
                return SPECIAL | (count + 1) << 4;
            }
            transfer(&name)
        })
    };
    [of_abi(Abi::X86_64), of_abi(Abi::I386)]
}

/// As the kernel side wants it: the text + 1 in the low half, its directory + 1 in the high half of a
/// byte, and in the byte above the same of a second path.
fn paths() -> [[u16; 512]; 2] {
    let wire = |path: &PathArgument| {
        u16::from(path.text + 1) | u16::from(path.directory.map_or(0, |at| at + 1)) << 4
    };
    let of_abi = |abi| {
        std::array::from_fn(|number| {
            let paths = syscalls::paths(&syscalls::name(abi, number as u32));
            (0..).zip(paths).fold(0, |all, (at, path)| all | wire(path) << (8 * at))
        })
    };
    [of_abi(Abi::X86_64), of_abi(Abi::I386)]
}

/// The argument of each call that is a descriptor, + 1, and whether it is an idle wait; or that the call is not reported.
fn descriptors(request: &Request) -> [[u8; 512]; 2] {
    const NOT_KEPT: u8 = 0xff;
    const IDLE_WAIT: u8 = 0x40;
    const WAIT_COUNT: u8 = 0x20;
    let of_abi = |abi| {
        std::array::from_fn(|number| {
            let name = syscalls::name(abi, number as u32);
            match request.wants(&name) {
                true => {
                    let idle = if request.is_left_idle(&name) { IDLE_WAIT } else { 0 };
                    match syscalls::polls(&name).filter(|_| idle > 0) {
                        Some(count) => (count + 1) | WAIT_COUNT | idle,
                        None => syscalls::descriptor(&name).map_or(0, |at| at + 1) | idle,
                    }
                }
                false => NOT_KEPT,
            }
        })
    };
    [of_abi(Abi::X86_64), of_abi(Abi::I386)]
}
