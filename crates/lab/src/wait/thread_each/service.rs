//! The server of a case and its client, in a process of their own.
//!
//! ```text
//! client ──send──▶ socket ──▶ the thread blocked in read(2) of this socket
//!                         ──▶ or the one thread in its waiter ──recv──▶ socket
//! client ◀──unpark── the thread that received the last byte of a round
//! ```
//!
//! The one invariant: a descriptor has at most one byte that was not received, so one read per
//! event is enough, whatever the waiter's trigger. Server threads end with the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Thread};
use std::time::Instant;

use iotomy_host::Skip;
use iotomy_waiters::rounds::Ring;
use iotomy_waiters::{Events, Interest, Trigger, Waiter};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::harness::bounds::SoftLimit;
use crate::harness::cpu_time::process_ns;
use crate::harness::patience::Patience;
use crate::wait::BATCH;
use crate::wait::round::{open, refused};
use crate::wait::thread_each::THREAD_EACH;

/// Pairs of sockets, and the threads that serve one end of each.
pub(super) struct Service {
    shared: Arc<Shared>,
    /// By how many descriptors the active ones of the next round are shifted.
    shift: usize,
    _limit: SoftLimit,
}

/// What the client and the servers share.
struct Shared {
    ring: Ring,
    client: Thread,
    /// Events of the round that were not served.
    left: AtomicUsize,
}

impl Shared {
    /// Receives a descriptor's byte; returns false if there will be no more.
    fn serve(&self, at: usize) -> bool {
        match rustix::io::read(self.ring.reader(at), &mut [0_u8; 1]) {
            Ok(1) => {
                if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                    self.client.unpark();
                }
                true
            }
            Err(Errno::INTR | Errno::AGAIN) => true,
            _ => false,
        }
    }
}

impl Service {
    /// Opens pairs of sockets in this process and starts their server.
    pub(super) fn start(server: &str, descriptors: usize) -> Result<Self, Skip> {
        let limit = SoftLimit::raise()?;
        let ring = Ring::new(descriptors).map_err(refused)?;
        let shared =
            Arc::new(Shared { ring, client: thread::current(), left: AtomicUsize::new(0) });
        match server {
            THREAD_EACH => start_threads(&shared)?,
            waiter => start_waiter(&shared, waiter.to_owned())?,
        }
        Ok(Self { shared, shift: 0, _limit: limit })
    }

    /// Makes rounds with so many active descriptors, evenly spaced; returns their CPU time in all
    /// threads, and their wall time.
    pub(super) fn rounds(&mut self, active: usize, rounds: usize) -> Result<(f64, f64), Skip> {
        let (began, cpu) = (Instant::now(), process_ns());
        for _ in 0..rounds {
            self.round(active)?;
        }
        let (cpu, wall) = (process_ns() - cpu, began.elapsed());
        Ok((cpu, wall.as_nanos() as f64))
    }

    fn round(&mut self, active: usize) -> Result<(), Skip> {
        let Shared { ring, left, .. } = &*self.shared;
        let space = ring.pairs() / active.clamp(1, ring.pairs());
        let shift = self.shift % space;
        self.shift += 1;
        left.store(active, Ordering::Release);
        for at in 0..active {
            send(ring.writer(at * space + shift), b"e", SendFlags::empty())
                .map_err(|e| Skip::refused("sendto", e))?;
        }
        let waiting = Patience::default().begin();
        while left.load(Ordering::Acquire) > 0 {
            thread::park_timeout(waiting.left());
            if waiting.is_over() && left.load(Ordering::Acquire) > 0 {
                return Err(waiting.in_vain("events were not served"));
            }
        }
        Ok(())
    }
}

/// Starts a thread for each descriptor, which blocks in read(2).
fn start_threads(shared: &Arc<Shared>) -> Result<(), Skip> {
    for at in 0..shared.ring.pairs() {
        rustix::io::ioctl_fionbio(shared.ring.reader(at), false)
            .map_err(|e| Skip::refused("ioctl FIONBIO", e))?;
        let shared = shared.clone();
        let serve = move || while shared.serve(at) {};
        thread::Builder::new().spawn(serve).map_err(|e| Skip::refused("clone", e))?;
    }
    Ok(())
}

/// Starts one thread that waits for all descriptors.
fn start_waiter(shared: &Arc<Shared>, name: String) -> Result<(), Skip> {
    let (ready, started): (Sender<Result<(), Skip>>, Receiver<_>) = channel();
    let shared = shared.clone();
    let serve = move || {
        let opened = open(&name, shared.ring.pairs()).and_then(|mut waiter| {
            shared.ring.register(waiter.as_mut()).map_err(|(_, error)| refused(error))?;
            Ok(waiter)
        });
        let (told, waiter) = match opened {
            Ok(waiter) => (Ok(()), Some(waiter)),
            Err(reason) => (Err(reason), None),
        };
        // The process ends if nobody receives it.
        let _ = ready.send(told);
        if let Some(mut waiter) = waiter {
            serve_all(&shared, waiter.as_mut());
        }
    };
    thread::Builder::new().spawn(serve).map_err(|e| Skip::refused("clone", e))?;
    started.recv().map_err(|_| Skip("the server's thread ended".to_owned()))?
}

/// Serves events until a call fails; the client then reports that events were not served.
fn serve_all(shared: &Shared, waiter: &mut dyn Waiter) {
    let rearms = waiter.declaration().capabilities.trigger == Trigger::OneShot;
    let mut events = Events::with_capacity(BATCH);
    while waiter.wait(&mut events, None).is_ok() {
        for event in &events {
            let at = event.token as usize;
            let reader = shared.ring.reader(at);
            if !shared.serve(at)
                || rearms && waiter.modify(reader, Interest::READ, event.token).is_err()
            {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::thread_each::servers;
    use crate::wait::threads::probe;

    #[test]
    fn every_server_serves_every_event() {
        for server in servers() {
            if let (true, Err(Skip(reason))) = (server != THREAD_EACH, probe(server, 64)) {
                iotomy_test_requirements::skip(
                    iotomy_test_requirements::Need::Machine,
                    &format!("{server}: {reason}"),
                );
                continue;
            }
            let mut service = Service::start(server, 12).unwrap();
            for (active, rounds) in [(12, 1), (1, 30), (5, 7)] {
                let (cpu, wall) = service.rounds(active, rounds).unwrap();
                assert!(cpu > 0.0 && wall > 0.0, "{server}");
                assert_eq!(service.shared.left.load(Ordering::Acquire), 0, "{server}");
            }
            assert_eq!(service.shift, 38, "other descriptors are active in each round");
        }
    }
}
