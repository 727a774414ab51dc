//! `perf_event_open(2)`: one event on this thread, opened and closed.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};

use super::Refusal;
use super::bpf::descriptor;

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_HW_CPU_CYCLES: u64 = 0;
const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
const PERF_SAMPLE_IP: u64 = 1;
const PERF_SAMPLE_CALLCHAIN: u64 = 1 << 5;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// `disabled`, the first bit field of `struct perf_event_attr`.
const DISABLED: u64 = 1;
/// `exclude_kernel`: needs less privilege.
const EXCLUDE_KERNEL: u64 = 1 << 5;
/// `exclude_hv`.
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

/// `struct perf_event_attr` as of PERF_ATTR_SIZE_VER1.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
}

/// Samples this thread by the CPU clock, with the kernel's part of the call chain.
///
/// # Errors
/// The kernel's refusal.
pub fn sample_cpu_clock() -> Result<(), Refusal> {
    let attributes = Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_CPU_CLOCK,
        sample_period: 1_000_000,
        sample_type: PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
        flags: DISABLED,
        ..Attributes::default()
    };
    perf_event_open(attributes).map(drop)
}

/// The processor's cycles of this thread, in user mode, over a moment's work.
///
/// # Errors
/// The kernel's refusal.
pub fn count_cycles() -> Result<u64, Refusal> {
    let event = perf_event_open(Attributes {
        kind: PERF_TYPE_HARDWARE,
        config: PERF_COUNT_HW_CPU_CYCLES,
        flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        ..Attributes::default()
    })?;
    std::hint::black_box((0..100_000u64).fold(1u64, |a, b| std::hint::black_box(a ^ b)));
    let mut cycles = 0u64;
    let size = size_of_val(&cycles);
    // SAFETY: `cycles` is writable and `size` is its size.
    let got = unsafe { libc::read(event.as_raw_fd(), (&raw mut cycles).cast(), size) };
    if usize::try_from(got) == Ok(size) { Ok(cycles) } else { Err(Refusal::last("read")) }
}

/// Sets a probe, which stays disabled, on the kernel function `function`; `kind` is the number in
/// `/sys/bus/event_source/devices/kprobe/type`.
///
/// # Errors
/// The kernel's refusal.
pub fn kprobe(kind: u32, function: &CStr) -> Result<(), Refusal> {
    let attributes = Attributes {
        kind,
        flags: DISABLED,
        config1: function.as_ptr().expose_provenance() as u64,
        ..Attributes::default()
    };
    perf_event_open(attributes).map(drop)
}

fn perf_event_open(mut attributes: Attributes) -> Result<OwnedFd, Refusal> {
    const THIS_THREAD: libc::pid_t = 0;
    const ANY_CPU: libc::c_int = -1;
    const NO_GROUP: libc::c_int = -1;
    attributes.size = 72;
    // SAFETY: `attributes` is readable for the size it names; the kernel copies it, and the string
    // it may point to, before it returns.
    let got = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw mut attributes,
            THIS_THREAD,
            ANY_CPU,
            NO_GROUP,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    descriptor("perf_event_open", got)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_the_size_they_name() {
        assert_eq!(size_of::<Attributes>(), 72);
    }
}
