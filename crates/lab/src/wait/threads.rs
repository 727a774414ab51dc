//! Shared by the experiments on waiters: whether a waiter works here, and several threads that wait
//! on one set.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use iotomy_host::Skip;
use iotomy_waiters::rounds::Ring;
use iotomy_waiters::{Events, Probe, Waiter, waiter};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::wait::round::refused;

/// Threads that wait on one set.
const THREADS: usize = 4;

/// Maximum number of events to distribute.
const EVENTS: usize = 500;

/// How long an event occupies its thread, as a read from a disk would: if no thread is busy, one is
/// enough.
const WORK: Duration = Duration::from_micros(200);

/// How often a thread that found nothing checks whether all is over.
const LOOK: Duration = Duration::from_millis(20);

/// Only a guard against hanging.
const PATIENCE: Duration = Duration::from_secs(20);

/// Checks whether a waiter works here, with descriptors up to about this number.
pub(super) fn probe(name: &str, highest: u64) -> Result<(), Skip> {
    let found = waiter(name).ok_or_else(|| Skip(format!("unknown waiter {name}")))?;
    match found.capabilities.highest {
        Some(most) if highest > u64::from(most.unsigned_abs()) => {
            return Err(Skip(format!(
                "{name} supports descriptors up to {most}, and the highest here is {highest}; use \
                 poll or epoll, which have no such limit"
            )));
        }
        _ => {}
    }
    match (found.probe)() {
        Probe::Ready => Ok(()),
        Probe::Unsupported(reason) => Err(Skip(reason)),
    }
}

/// The distribution of events among the threads that waited on one set.
pub(super) struct Shares {
    /// Threads that could wait; 1 if a set cannot be shared.
    pub(super) threads: f64,
    /// The smallest of their shares, 1 being all events.
    pub(super) least: f64,
    /// The largest share.
    pub(super) most: f64,
    /// Events that no thread received.
    pub(super) lost: f64,
    /// Wake-ups per event that found that another thread had been faster.
    pub(super) empty: f64,
}

/// Sends a byte to each of the ring's readers, the first 500 of them, while threads wait for them,
/// one event per wait.
pub(super) fn share_out(
    ring: &Ring,
    mut waiter: Box<dyn Waiter>,
    pairs: usize,
) -> Result<Shares, Skip> {
    let holds: Vec<_> = (0..THREADS).filter_map(|_| waiter.share()).collect();
    if holds.len() < THREADS {
        return Ok(Shares { threads: 1.0, least: 1.0, most: 1.0, lost: 0.0, empty: 0.0 });
    }
    ring.register(waiter.as_mut()).map_err(|(_, error)| refused(error))?;
    let sent = pairs.min(EVENTS);
    let (received, begun) = (AtomicUsize::new(0), Instant::now());
    let work = |mut hold: Box<dyn Waiter + Send>| {
        let (mut events, mut own, mut empty) = (Events::with_capacity(1), 0_usize, 0_usize);
        while received.load(Ordering::Relaxed) < sent && begun.elapsed() < PATIENCE {
            if hold.wait(&mut events, Some(LOOK)).is_err() {
                break;
            }
            for event in &events {
                let reader = ring.reader(event.token as usize);
                match recv(reader, &mut [0_u8; 1], RecvFlags::empty()) {
                    Ok((1, _)) => {
                        own += 1;
                        std::thread::sleep(WORK);
                        received.fetch_add(1, Ordering::Relaxed);
                    }
                    _ => empty += 1,
                }
            }
        }
        (own, empty)
    };
    let told: Result<Vec<(usize, usize)>, Skip> = std::thread::scope(|scope| {
        let work = &work;
        let begin = |hold| std::thread::Builder::new().spawn_scoped(scope, move || work(hold));
        let threads: io::Result<Vec<_>> = holds.into_iter().map(begin).collect();
        // The threads already started end by themselves: nothing is sent to them.
        let threads = threads.map_err(|e| Skip::refused("clone", e))?;
        for at in 0..sent {
            // An event that is refused is missing in the end, and counted.
            let _ = send(ring.writer(at), b"e", SendFlags::empty());
        }
        Ok(threads.into_iter().filter_map(|thread| thread.join().ok()).collect())
    });
    let told = told?;
    ring.leave(waiter.as_mut(), pairs).map_err(refused)?;
    let all: usize = told.iter().map(|(own, _)| own).sum();
    let share = |own: Option<usize>| own.unwrap_or(0) as f64 / all.max(1) as f64;
    Ok(Shares {
        threads: told.len() as f64,
        least: share(told.iter().map(|(own, _)| *own).min()),
        most: share(told.iter().map(|(own, _)| *own).max()),
        lost: sent.saturating_sub(all) as f64,
        empty: told.iter().map(|(_, empty)| *empty).sum::<usize>() as f64 / sent.max(1) as f64,
    })
}
