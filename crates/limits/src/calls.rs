//! Entering the kernel and returning, and the cost of calls that avoid it.

use std::hint::black_box;

use iotomy_host::Skip;
use iotomy_sys::bare;

use super::limit::{Context, Figure, LimitDeclaration, Scope, Unit};
use super::sampling::Budget;

pub(super) static LIMITS: &[LimitDeclaration] = &[
    LimitDeclaration {
        name: "syscall",
        unit: Unit::Ns,
        scope: Scope::Machine,
        summary: "a direct system call",
        method: "getppid by the syscall instruction",
        man: &["getppid(2)", "syscall(2)"],
        measure: syscall,
    },
    LimitDeclaration {
        name: "syscall-libc",
        unit: Unit::Ns,
        scope: Scope::Machine,
        summary: "a system call through the C library",
        method: "getppid by the C library's function",
        man: &["getppid(2)"],
        measure: syscall_libc,
    },
    LimitDeclaration {
        name: "vdso-clock",
        unit: Unit::Ns,
        scope: Scope::Machine,
        summary: "reading the clock without a system call",
        method: "clock_gettime(CLOCK_MONOTONIC) by the vDSO",
        man: &["vdso(7)", "clock_gettime(2)"],
        measure: vdso_clock,
    },
];

fn syscall(_: &Context<'_>) -> Result<Figure, Skip> {
    Budget::SHORT.ns_per_call(|count| {
        for _ in 0..count {
            black_box(bare::getppid());
        }
        Ok(())
    })
}

fn syscall_libc(_: &Context<'_>) -> Result<Figure, Skip> {
    Budget::SHORT.ns_per_call(|count| {
        for _ in 0..count {
            black_box(bare::getppid_by_libc());
        }
        Ok(())
    })
}

fn vdso_clock(_: &Context<'_>) -> Result<Figure, Skip> {
    if let Some(clock) = clock_behind_a_call() {
        return Err(Skip(format!("reading the clock source {clock} takes a system call")));
    }
    Budget::SHORT.ns_per_call(|count| {
        for _ in 0..count {
            black_box(bare::monotonic_ns());
        }
        Ok(())
    })
}

/// Returns the machine's clock source, if the vDSO cannot read it.
fn clock_behind_a_call() -> Option<String> {
    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    const BY_CALL: [&str; 4] = ["acpi_pm", "hpet", "jiffies", "refined-jiffies"];
    let clock = iotomy_host::kernel_text(CLOCK).ok()?;
    BY_CALL.contains(&clock.trim()).then(|| clock.trim().to_owned())
}
