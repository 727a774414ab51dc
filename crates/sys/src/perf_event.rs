//! `perf_event_open(2)`: events that count, and events that interrupt.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

pub(crate) const PERF_TYPE_HARDWARE: u32 = 0;
pub(crate) const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_TYPE_TRACEPOINT: u32 = 2;
pub(crate) const PERF_COUNT_HW_CPU_CYCLES: u64 = 0;
pub(crate) const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
pub(crate) const PERF_COUNT_SW_DUMMY: u64 = 9;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// `disabled`, the first bit field of `struct perf_event_attr`.
pub(crate) const DISABLED: u64 = 1;
/// `exclude_kernel`: needs less privilege.
pub(crate) const EXCLUDE_KERNEL: u64 = 1 << 5;
/// `exclude_hv`.
pub(crate) const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// `exclude_idle`.
const EXCLUDE_IDLE: u64 = 1 << 7;
/// `freq`: the period is a rate a second.
const IS_RATE: u64 = 1 << 10;

/// The scope of an event: one thread on any CPU, or one CPU with any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The thread of this id; 0 is the calling one.
    Thread(i32),
    /// All threads of this CPU.
    Cpu(u32),
}

/// The source of the interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ticker {
    /// This many cycles of the processor, counted by it; they interrupt also where interrupts are
    /// disabled.
    Cycles,
    /// A timer of the kernel's.
    CpuClock,
}

/// Opens an event, disabled, that interrupts `hz` times a second while its scope is busy.
///
/// # Errors
/// The kernel's error: there is no such event, it is not allowed, or the rate is too high.
pub fn open_sampler(ticker: Ticker, scope: Scope, hz: u32) -> io::Result<OwnedFd> {
    let (kind, config) = match ticker {
        Ticker::Cycles => (PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES),
        Ticker::CpuClock => (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK),
    };
    let attributes = Attributes {
        kind,
        config,
        sample_period: u64::from(hz),
        flags: DISABLED | EXCLUDE_HYPERVISOR | EXCLUDE_IDLE | IS_RATE,
        ..Attributes::default()
    };
    perf_event_open(attributes, scope)
}

/// Opens a timer of the kernel's, disabled, that interrupts at this interval, also while its scope is idle.
///
/// # Errors
/// The kernel's error: it is not allowed.
pub fn open_clock(scope: Scope, interval: Duration) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_CPU_CLOCK,
        sample_period: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX >> 1),
        flags: DISABLED,
        ..Attributes::default()
    };
    perf_event_open(attributes, scope)
}

/// Opens the event of a tracepoint, by the number that tracefs has for it. A BPF program that is attached to
/// it runs wherever the tracepoint is passed, on every CPU.
///
/// # Errors
/// The kernel's error: there is no such tracepoint, or it is not allowed.
pub fn open_tracepoint(number: u64) -> io::Result<OwnedFd> {
    let attributes =
        Attributes { kind: PERF_TYPE_TRACEPOINT, config: number, ..Attributes::default() };
    perf_event_open(attributes, Scope::Cpu(0))
}

/// Lets an event, of this process or another's that it was handed by, run from now on, or rest.
///
/// # Errors
/// As `ioctl(2)` with `PERF_EVENT_IOC_ENABLE` and `PERF_EVENT_IOC_DISABLE`.
pub fn set_running(event: impl AsFd, on: bool) -> io::Result<()> {
    /// `_IO('$', 0)` and `_IO('$', 1)` of linux/perf_event.h.
    const ENABLE: libc::c_ulong = 0x2400;
    const DISABLE: libc::c_ulong = 0x2401;
    const THIS_ALONE: libc::c_int = 0;
    let request = if on { ENABLE } else { DISABLE };
    // SAFETY: both requests take an integer and touch no memory of this process.
    let got = unsafe { libc::ioctl(event.as_fd().as_raw_fd(), request, THIS_ALONE) };
    if got < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `struct perf_event_attr` as of PERF_ATTR_SIZE_VER3, of Linux 3.7; `clockid` has a name since 4.1.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup_events: u32,
    pub(crate) bp_type: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) sample_regs_user: u64,
    pub(crate) sample_stack_user: u32,
    pub(crate) clockid: i32,
}

pub(crate) fn perf_event_open(mut attributes: Attributes, scope: Scope) -> io::Result<OwnedFd> {
    const ANY: libc::c_int = -1;
    const NO_GROUP: libc::c_int = -1;
    let (thread, cpu) = match scope {
        Scope::Thread(thread) => (thread, ANY),
        Scope::Cpu(cpu) => (ANY, libc::c_int::try_from(cpu).unwrap_or(libc::c_int::MAX)),
    };
    attributes.size = 96;
    // SAFETY: `attributes` is readable for the size it names; the kernel copies it, and the string
    // it may point to, before it returns.
    let got = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw mut attributes,
            thread,
            cpu,
            NO_GROUP,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    match i32::try_from(got) {
        // SAFETY: the kernel has just made this descriptor, and nobody else has it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_the_size_they_name() {
        assert_eq!(size_of::<Attributes>(), 96);
    }

    #[test]
    fn what_is_no_event_cannot_be_switched() {
        let file = std::fs::File::open("/dev/null").expect("it is everywhere");
        assert!(set_running(&file, true).is_err());
    }

    #[test]
    fn an_impossible_rate_is_refused() {
        assert!(open_sampler(Ticker::CpuClock, Scope::Thread(0), u32::MAX).is_err());
    }
}
