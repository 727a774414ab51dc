//! Threads that serve the events of one set as fast as they can.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use iotomy_host::Skip;
use rustix::io::Errno;

use crate::harness::Sample;
use crate::harness::cpu_time::thread_ns;
use crate::harness::patience::{Patience, Waiting};
use crate::wait::shared_set::sets::Shared;

/// Events of a sample.
const EVENTS: usize = 1_000;

/// How often a thread that is told nothing checks whether all is over.
const LOOK: Duration = Duration::from_millis(5);

/// A run of some events.
struct Run<'s> {
    shared: &'s Shared,
    waiting: Waiting,
    sent: AtomicUsize,
    served: AtomicUsize,
    is_over: AtomicBool,
}

/// What one thread did.
struct Part {
    cpu_ns: f64,
    /// Deliveries of bytes that another thread had received.
    stale: usize,
    /// When it served the last event of the run.
    ended: Option<Instant>,
}

/// Has threads serve events; a socket that was served gets the next byte at once.
pub(super) fn run(shared: &Shared, threads: usize, patience: Patience) -> Result<Sample, Skip> {
    let run = Run {
        shared,
        waiting: patience.begin(),
        sent: AtomicUsize::new(0),
        served: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    };
    let began = Instant::now();
    let parts: Result<Vec<Result<Part, Errno>>, Skip> = thread::scope(|scope| {
        let run = &run;
        let begin = |_| thread::Builder::new().spawn_scoped(scope, || run.serve());
        let started: io::Result<Vec<_>> = (0..threads).map(begin).collect();
        let started = started.map_err(|e| {
            run.is_over.store(true, Ordering::Release);
            Skip::refused("clone", e)
        })?;
        let sent = (0..shared.sockets()).try_for_each(|at| run.send(at));
        if sent.is_err() {
            run.is_over.store(true, Ordering::Release);
        }
        let parts = started.into_iter().map(|one| one.join().unwrap_or(Err(Errno::CANCELED)));
        let parts = parts.collect();
        sent.map_err(|e| Skip::refused("sendto", e)).map(|()| parts)
    });
    let parts: Result<Vec<Part>, Errno> = parts?.into_iter().collect();
    let parts = parts.map_err(|e| Skip::refused("poll of a shared set", e))?;
    let Some(ended) = parts.iter().find_map(|part| part.ended) else {
        return Err(run.waiting.in_vain("events were not served"));
    };
    let of_an_event = |all: f64| all / EVENTS as f64;
    let stale: usize = parts.iter().map(|part| part.stale).sum();
    Ok(Sample {
        value: of_an_event(parts.iter().map(|part| part.cpu_ns).sum()),
        extra: vec![
            ("wall_ns", of_an_event(ended.duration_since(began).as_nanos() as f64)),
            ("stale", of_an_event(stale as f64)),
        ],
    })
}

impl Run<'_> {
    /// Sends a byte to a socket, unless all were sent.
    fn send(&self, at: usize) -> Result<(), Errno> {
        match self.sent.fetch_add(1, Ordering::AcqRel) {
            sent if sent < EVENTS => self.shared.send(at),
            _ => Ok(()),
        }
    }

    fn serve(&self) -> Result<Part, Errno> {
        let (mut part, cpu) = (Part { cpu_ns: 0.0, stale: 0, ended: None }, thread_ns());
        let done = self.serve_events(&mut part);
        self.is_over.store(true, Ordering::Release);
        part.cpu_ns = thread_ns() - cpu;
        done.map(|()| part)
    }

    fn serve_events(&self, part: &mut Part) -> Result<(), Errno> {
        while !self.is_over.load(Ordering::Acquire) && !self.waiting.is_over() {
            let Some(at) = self.shared.wait(LOOK)? else { continue };
            if self.shared.receive(at)? {
                if self.served.fetch_add(1, Ordering::AcqRel) + 1 == EVENTS {
                    part.ended = Some(Instant::now());
                    self.is_over.store(true, Ordering::Release);
                }
                self.send(at)?;
            } else {
                part.stale += 1;
            }
            self.shared.served(at)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::shared_set::sets::{DEV_POLL, DEV_POLL_LOCK, EVENT_PORTS};

    #[test]
    fn every_event_is_served_and_only_a_set_without_a_lock_tells_of_served_ones() {
        for set in [EVENT_PORTS, DEV_POLL_LOCK, DEV_POLL] {
            for (threads, sockets) in [(1, 3), (4, 1), (4, 16)] {
                let shared = Shared::new(set, sockets).unwrap();
                for _ in 0..2 {
                    let sample = run(&shared, threads, Patience::default()).unwrap();
                    let stale = sample.extra.iter().find(|(name, _)| *name == "stale").unwrap().1;
                    assert!(sample.value > 0.0, "{set}");
                    assert!(stale == 0.0 || set == DEV_POLL && threads > 1, "{set}: {stale}");
                }
            }
        }
    }
}
