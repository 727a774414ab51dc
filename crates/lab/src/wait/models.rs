//! `models`: the cost of the four models in which a program can wait for many descriptors.
//!
//! From article 002, after the BSD book: poll each descriptor repeatedly; receive a signal; pass
//! the set and receive the list of ready descriptors; register what is waited for. The fourth model
//! has two kinds: readiness, where the program then makes the call, and completion, where the call
//! has been made. Every waiter declares its model. Another thread sends the current time at a given
//! pace, and the waiter's thread receives it.

mod claims;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_stats::median;
use iotomy_waiters::rounds::Ring;
use iotomy_waiters::{Events, Interest, Trigger, Waiter};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::harness::bounds::FewSignals;
use crate::harness::cpu_time::Usage;
use crate::harness::{
    Axis, Claim, Experiment, ExperimentDeclaration, Extra, Fold, Needs, Params, PreparedExperiment,
    Sample, Sampling, Takes, Value, Watch,
};
use crate::wait::BATCH;
use crate::wait::models::claims::{models, models_completion};
use crate::wait::pairs::{HOW_MANY, Pairs, waiters};
use crate::wait::round::{count, of_pairs, refused};
use crate::wait::threads::probe;

/// Duration of an idle phase, to measure the CPU time of waiting: long compared with one entry of
/// `poll` with the most descriptors of a default run (2,000 take 2 ms), which occurs once however
/// long the wait.
const IDLE: Duration = Duration::from_millis(60);

/// Events per sample.
const EVENTS: usize = 50;

/// Signals that may be queued while more of them are sent.
const QUEUE: u64 = 16;

/// Only a guard against hanging.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Models;

static DECLARATION: ExperimentDeclaration = ExperimentDeclaration {
    name: "models",
    summary: "the four models of waiting: idle CPU use, latency, CPU time per event",
    hypothesis: "busy polling uses a whole CPU while nothing happens; signals block, but their \
        queue overflows; readiness and registration block and lose nothing",
    refuted_by: "an idle CPU with busy, no overflow of signals in a burst, or another waiter that \
        uses a CPU while idle",
    controls: &[
        "another thread sends at the given pace, to one pair at a time; the receiver does nothing \
         else",
        "shares of the CPU time available to the thread: run queue delay is subtracted",
        "a burst to all descriptors with a signal queue of 16, outside the timed part",
    ],
    metric: "median latency of an event",
    unit: "ns",
    extras: &[
        Extra {
            name: "idle_share",
            unit: "",
            summary: "share of a CPU used while idle",
            fold: Fold::Median,
        },
        Extra {
            name: "share",
            unit: "",
            summary: "share of a CPU used at this pace",
            fold: Fold::Median,
        },
        Extra { name: "event_ns", unit: "ns", summary: "CPU time per event", fold: Fold::Median },
        Extra {
            name: "overflows",
            unit: "",
            summary: "queue overflows in bursts",
            fold: Fold::Mean,
        },
        Extra {
            name: "sweeps",
            unit: "",
            summary: "scans of all descriptors because of overflows",
            fold: Fold::Mean,
        },
        Extra {
            name: "lost",
            unit: "",
            summary: "descriptors of the burst that were never reported",
            fold: Fold::Mean,
        },
    ],
    axes: &[
        Axis {
            name: "model",
            unit: "",
            summary: "the waiter, of one of the models",
            takes: Takes::Listed(waiters),
            quick: &[],
            default: &[],
            full: &[],
        },
        Axis {
            name: "descriptors",
            unit: "",
            summary: "number of descriptors watched; each takes two of the process's descriptors",
            takes: HOW_MANY,
            quick: &[Value::N(100)],
            default: &[Value::N(100), Value::N(400), Value::N(2_000)],
            full: &[Value::N(100), Value::N(400), Value::N(2_000), Value::N(9_000)],
        },
        Axis {
            name: "rate",
            unit: "",
            summary: "events a second",
            takes: Takes::Numbers(10, 1_000_000),
            quick: &[Value::N(1_000), Value::N(5_000)],
            default: &[Value::N(200), Value::N(1_000), Value::N(5_000)],
            full: &[Value::N(100), Value::N(1_000), Value::N(10_000)],
        },
    ],
    along: "rate",
    lines: "model",
    claims: &[
        Claim {
            id: "models",
            source: "002",
            text: "busy polling uses a whole CPU; SIGIO delivers but degrades when its queue \
                overflows; readiness and registration block",
            judge: models,
        },
        Claim {
            id: "models-completion",
            source: "iotomy",
            text: "an event that is a completion takes less CPU time than one of readiness, which \
                the program follows with the call",
            judge: models_completion,
        },
    ],
    sampling: Sampling { a_visit: 1, least: 8, most: 40, tight: 0.05 },
    man: &["select(2)", "poll(2)", "epoll(7)", "fcntl(2)", "signal(7)", "io_uring(7)"],
};

impl Experiment for Models {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &DECLARATION
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        probe(case.name("model"), 2 * case.number("descriptors"))
    }

    fn needs(&self, case: &Params) -> Needs {
        of_pairs(case.number("descriptors"))
    }

    fn prepare(&self, cases: &[Params], _: &Folder) -> Result<Box<dyn PreparedExperiment>, Skip> {
        Ok(Box::new(PacedEvents(Pairs::for_cases(cases)?)))
    }
}

struct PacedEvents(Pairs);

impl PreparedExperiment for PacedEvents {
    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        let done = self.samples(case, keep);
        if done.is_err() {
            self.0.renew()?;
        }
        done
    }

    fn watch(
        &mut self,
        case: &Params,
        _: &mut dyn Watch,
    ) -> Result<Vec<(&'static str, f64)>, Skip> {
        let burst = self.burst(case);
        if !matches!(&burst, Ok(found) if found.iter().all(|(name, n)| *name != "lost" || *n == 0.0))
        {
            self.0.renew()?;
        }
        burst
    }
}

impl PacedEvents {
    /// Opens the case's waiter and registers all of the case's descriptors.
    fn open(&mut self, case: &Params) -> Result<(Box<dyn Waiter>, usize), Skip> {
        let (mut waiter, pairs) = self.0.open(case, case.name("model"))?;
        self.0.register(waiter.as_mut())?;
        Ok((waiter, pairs))
    }

    fn samples(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        let (mut waiter, pairs) = self.open(case)?;
        let mut events = Events::with_capacity(BATCH);
        let pace = Duration::from_secs(1) / u32::try_from(case.number("rate")).unwrap_or(u32::MAX);
        loop {
            let idle = Usage::begin();
            waiter.wait(&mut events, Some(IDLE)).map_err(refused)?;
            let (idle_share, _) = idle.end();
            let usage = Usage::begin();
            let latencies = self.paced(waiter.as_mut(), &mut events, pairs, pace)?;
            let (share, cpu) = usage.end();
            let extra = vec![
                ("idle_share", idle_share),
                ("share", share),
                ("event_ns", cpu / latencies.len() as f64),
            ];
            let value = median(&latencies).ok_or_else(|| Skip("no event came".to_owned()))?;
            if keep(Sample { value, extra }).is_break() {
                self.0.ring.leave(waiter.as_mut(), pairs).map_err(refused)?;
                return Ok(());
            }
        }
    }

    /// Receives the events that another thread sends at this pace; returns the delay of each, in
    /// ns.
    fn paced(
        &self,
        waiter: &mut dyn Waiter,
        events: &mut Events,
        pairs: usize,
        pace: Duration,
    ) -> Result<Vec<f64>, Skip> {
        let (ring, base, is_over) = (&self.0.ring, Instant::now(), AtomicBool::new(false));
        let sender = || {
            for (event, due) in (0..EVENTS).zip(1_u32..) {
                // The pace is a fixed schedule: a late event does not delay the next ones.
                std::thread::sleep((pace * due).saturating_sub(base.elapsed()));
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                // Events are spread, so that no descriptor is favoured.
                let at = event * 37 % pairs;
                let now = u64::try_from(base.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let _ = send(ring.writer(at), &now.to_ne_bytes(), SendFlags::empty());
            }
        };
        let mut latencies = Vec::with_capacity(EVENTS);
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .spawn_scoped(scope, sender)
                .map_err(|e| Skip::refused("clone", e))?;
            let mut told = || -> Result<(), Skip> {
                while latencies.len() < EVENTS {
                    if waiter.wait(events, Some(PATIENCE)).map_err(refused)? == 0 {
                        return Err(Skip("an event was not reported".to_owned()));
                    }
                    let now = base.elapsed().as_nanos() as f64;
                    take(ring, waiter, events, |then| latencies.push((now - then).max(0.0)))?;
                }
                Ok(())
            };
            let ended = told();
            is_over.store(true, Ordering::Relaxed);
            ended
        })?;
        Ok(latencies)
    }

    /// Sends to all descriptors while no thread waits, with room for few signals, and counts how
    /// many are reported.
    fn burst(&mut self, case: &Params) -> Result<Vec<(&'static str, f64)>, Skip> {
        let (mut waiter, pairs) = self.open(case)?;
        let mut events = Events::with_capacity(BATCH);
        waiter.wait(&mut events, Some(Duration::ZERO)).map_err(refused)?;
        let limit = FewSignals::allow(QUEUE)?;
        for at in 0..pairs {
            send(self.0.ring.writer(at), &[0; 8], SendFlags::empty())
                .map_err(|e| Skip::refused("sendto", e))?;
        }
        let mut told = 0;
        // Two polls in a row that find nothing are the end.
        let mut empty = 0;
        while told < pairs && empty < 2 {
            let found = waiter.wait(&mut events, Some(Duration::ZERO)).map_err(refused)?;
            empty = if found == 0 { empty + 1 } else { 0 };
            take(&self.0.ring, waiter.as_mut(), &events, |_| told += 1)?;
        }
        drop(limit);
        let counts = waiter.counts();
        self.0.ring.leave(waiter.as_mut(), pairs).map_err(refused)?;
        Ok(vec![
            ("overflows", counts.overflows as f64),
            ("sweeps", counts.sweeps as f64),
            ("lost", (pairs - told) as f64),
        ])
    }
}

/// Takes the times that the events of a wait announce or contain, as the waiter's trigger requires.
fn take(
    ring: &Ring,
    waiter: &mut dyn Waiter,
    events: &Events,
    mut put: impl FnMut(f64),
) -> Result<(), Skip> {
    let capabilities = &waiter.declaration().capabilities;
    for (at, event) in events.iter().enumerate() {
        let reader = count(event.token);
        if capabilities.receives {
            let times = events.received(at).as_chunks().0;
            times.iter().for_each(|time| put(u64::from_ne_bytes(*time) as f64));
            continue;
        }
        while let Some(time) = received(ring, reader) {
            put(time);
            if capabilities.trigger != Trigger::Edge {
                break;
            }
        }
        if capabilities.trigger == Trigger::OneShot {
            waiter.modify(ring.reader(reader), Interest::READ, event.token).map_err(refused)?;
        }
    }
    Ok(())
}

/// Returns the time that a reader has received, if any.
fn received(ring: &Ring, at: usize) -> Option<f64> {
    let mut bytes = [0_u8; 8];
    match recv(ring.reader(at), &mut bytes, RecvFlags::empty()) {
        Ok((8, _)) => Some(u64::from_ne_bytes(bytes) as f64),
        _ => None,
    }
}
