//! One round over the pairs of a process: its needs, its waiter and its times.

use std::time::{Duration, Instant};

use iotomy_host::Skip;
use iotomy_waiters::rounds::{Ring, RoundError};
use iotomy_waiters::{Events, Settings, Waiter, waiter};

use crate::harness::Needs;
use crate::harness::cpu_time::thread_ns;
use crate::wait::{OF_A_PAIR, SPARE_DESCRIPTORS};

/// Converts a number of a case to `usize`.
pub(super) fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Returns the needs of `pairs` pairs in one process.
pub(super) fn of_pairs(pairs: u64) -> Needs {
    Needs {
        descriptors: 2 * pairs + SPARE_DESCRIPTORS,
        memory_bytes: pairs * OF_A_PAIR,
        ..Needs::default()
    }
}

/// Converts an error of a round into the reason why it could not be measured.
pub(super) fn refused(error: impl Into<RoundError>) -> Skip {
    Skip(error.into().to_string())
}

/// Opens a waiter by name.
pub(super) fn open(name: &str, descriptors: usize) -> Result<Box<dyn Waiter>, Skip> {
    let found = waiter(name).ok_or_else(|| Skip(format!("unknown waiter {name}")))?;
    (found.open)(&Settings { descriptors, ..Settings::default() }).map_err(refused)
}

/// Makes a round; returns its CPU time and wall time.
pub(super) fn round(
    ring: &mut Ring,
    waiter: &mut dyn Waiter,
    events: &mut Events,
    (active, writes): (usize, usize),
) -> Result<(f64, f64), Skip> {
    if let Err((watched, error)) = ring.register(waiter) {
        ring.leave(waiter, watched).map_err(refused)?;
        return Err(refused(error));
    }
    waiter.wait(events, Some(Duration::ZERO)).map_err(refused)?;
    ring.begin(active, writes).map_err(refused)?;
    let (began, cpu) = (Instant::now(), thread_ns());
    let ended = ring.run(waiter, events);
    let (cpu, wall) = (thread_ns() - cpu, began.elapsed());
    ended.map_err(refused)?;
    ring.leave(waiter, ring.pairs()).map_err(refused)?;
    Ok((cpu, wall.as_nanos() as f64))
}
