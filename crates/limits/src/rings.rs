//! One call through a ring: a request that does nothing, and its completion.

use std::io;
use std::thread;

use iotomy_host::Skip;
use iotomy_sys::nop_ring::NopRing;

use super::cpus;
use super::limit::{Context, Figure, LimitDeclaration, Scope, Unit};
use super::sampling::Budget;

pub(super) static LIMITS: &[LimitDeclaration] = &[
    LimitDeclaration {
        name: "io_uring-nop",
        unit: Unit::Ns,
        scope: Scope::Machine,
        summary: "one call through io_uring",
        method: "one NOP queued, io_uring_enter waits for it, its completion taken",
        man: &["io_uring(7)", "io_uring_enter(2)"],
        measure: entered,
    },
    LimitDeclaration {
        name: "io_uring-nop-sqpoll",
        unit: Unit::Ns,
        scope: Scope::Machine,
        summary: "one call through io_uring that the kernel polls",
        method: "one NOP queued, taken by the kernel's polling thread on another CPU (SQPOLL), \
            its completion awaited by spinning",
        man: &["io_uring(7)", "io_uring_setup(2)"],
        measure: polled,
    },
];

fn entered(_: &Context<'_>) -> Result<Figure, Skip> {
    round_trip(NopRing::entered())
}

/// Measures with the two threads bound to two CPUs: if the scheduler put both on one CPU, the
/// result would be the length of its time slices.
fn polled(_: &Context<'_>) -> Result<Figure, Skip> {
    let Some((here, there)) = cpus::two()? else {
        return Err(Skip(
            "one CPU: the polling thread and the waiting one would take turns".into(),
        ));
    };
    let there = u32::try_from(there).map_err(|_| Skip(format!("no CPU {there}")))?;
    // A separate thread, so that this one can still run on any CPU.
    thread::scope(|scope| {
        let waiting = thread::Builder::new().spawn_scoped(scope, || {
            cpus::stay_on(here)?;
            round_trip(NopRing::polled_on(there))
        });
        let waiting = waiting.map_err(|e| Skip::refused("clone", e))?;
        waiting.join().unwrap_or_else(|_| Err(Skip("a thread did not end".to_owned())))
    })
}

fn round_trip(ring: io::Result<NopRing>) -> Result<Figure, Skip> {
    let mut ring = ring.map_err(|e| Skip::refused("io_uring_setup", e))?;
    Budget::SHORT.ns_per_call(|count| {
        (0..count).try_for_each(|_| ring.round_trip()).map_err(|e| Skip::refused("io_uring", e))
    })
}
