//! `perf_event_open(2)`: one event on this thread, opened and closed.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};

use super::Refusal;
use crate::perf_event::{
    Attributes, DISABLED, EXCLUDE_HYPERVISOR, EXCLUDE_KERNEL, PERF_COUNT_HW_CPU_CYCLES,
    PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, Scope, perf_event_open,
};

const PERF_SAMPLE_IP: u64 = 1;
const PERF_SAMPLE_CALLCHAIN: u64 = 1 << 5;

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
    open(attributes).map(drop)
}

/// The processor's cycles of this thread, in user mode, over a moment's work.
///
/// # Errors
/// The kernel's refusal.
pub fn count_cycles() -> Result<u64, Refusal> {
    let event = open(Attributes {
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
    open(attributes).map(drop)
}

fn open(attributes: Attributes) -> Result<OwnedFd, Refusal> {
    const THIS_THREAD: i32 = 0;
    perf_event_open(attributes, Scope::Thread(THIS_THREAD))
        .map_err(|source| Refusal::new("perf_event_open", source))
}
