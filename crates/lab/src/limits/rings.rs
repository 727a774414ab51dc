//! One call through a ring: a request that does nothing, there and back.

use iotomy_sys::nop_ring::NopRing;

use super::cpus;
use super::sampling::Budget;
use super::{Context, Declaration, Figure, Scope, Skip, Unit};

pub(super) static LIMITS: &[Declaration] = &[
    Declaration {
        name: "io_uring-nop",
        unit: Unit::Ns,
        scope: Scope::Machine,
        summary: "one call through io_uring",
        method: "one NOP queued, io_uring_enter that waits for it, its completion taken",
        man: &["io_uring(7)", "io_uring_enter(2)"],
        measure: entered,
    },
    Declaration {
        name: "io_uring-nop-sqpoll",
        unit: Unit::Ns,
        scope: Scope::Machine,
        summary: "one call through io_uring that the kernel polls",
        method: "one NOP queued, taken by the kernel's polling thread (SQPOLL), its completion spun for",
        man: &["io_uring(7)", "io_uring_setup(2)"],
        measure: polled,
    },
];

fn entered(_: &Context<'_>) -> Result<Figure, Skip> {
    round_trip(false)
}

fn polled(_: &Context<'_>) -> Result<Figure, Skip> {
    if cpus::allowed()?.len() < 2 {
        return Err(Skip(
            "one CPU: the polling thread and the waiting one would take turns".into(),
        ));
    }
    round_trip(true)
}

fn round_trip(polled: bool) -> Result<Figure, Skip> {
    let mut ring = NopRing::new(polled).map_err(|e| Skip::refused("io_uring_setup", e))?;
    Budget::SHORT.ns_per_call(|count| {
        (0..count).try_for_each(|_| ring.round_trip()).map_err(|e| Skip::refused("io_uring", e))
    })
}
