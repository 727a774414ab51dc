//! `shared-set`: several threads at one `/dev/poll` set or one event port.
//!
//! From article 000: `/dev/poll` "works great, except that multi-threaded apps can't use it without
//! synchronization"; an event port lets the kernel synchronise the threads. A poll tells which
//! descriptors are ready now, so it reports one to every thread that polls until the first of them
//! has received; an event of a port ends the association, so it reaches one thread.
//!
//! Whether events are delivered twice is counted in turns, in which every thread polls before the
//! first one receives ([`turns`]): the counts depend on the set and not on the scheduler. How often
//! it happens among threads that run freely, and what a lock costs, is measured beside it
//! ([`free_run`]).

mod claims;
mod free_run;
mod sets;
mod turns;

use std::ops::ControlFlow;
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;

use crate::harness::patience::Patience;
use crate::harness::{
    Axis, Claim, Experiment, ExperimentDeclaration, Extra, Fold, Needs, Params, PreparedExperiment,
    Sample, Sampling, Takes, Value, Watch,
};
use crate::wait::round::{count, of_pairs};
use crate::wait::shared_set::claims::dev_poll_locks;
use crate::wait::shared_set::sets::{DEV_POLL, DEV_POLL_LOCK, EVENT_PORTS, Shared};

/// Events that are delivered in turns.
const EVENTS: usize = 100;

/// The axes that the claim selects by.
const SET: &str = "set";
const THREADS: &str = "threads";
const ACTIVE: &str = "active";

pub(crate) struct SharedSet;

static DECLARATION: ExperimentDeclaration = ExperimentDeclaration {
    name: "shared-set",
    summary: "threads that share a /dev/poll set, with a lock and without, or an event port",
    hypothesis: "a /dev/poll set reports the same event to each thread that polls it, unless a lock \
        is held from the poll to the removal of the descriptor; an event port delivers each event \
        to one thread",
    refuted_by: "no duplicates from /dev/poll without a lock, or duplicates from an event port",
    controls: &[
        "the same threads, sockets and calls to receive; room for one event per wait",
        "counted in turns: every thread polls once for each of 100 events before the first one \
         receives; a delivery after another thread has received is a duplicate",
        "timed while the threads run freely: a descriptor gets its next byte as soon as it is \
         served; CPU time of all threads for 1,000 events",
        "with the lock, a thread polls, removes the descriptor from the set, unlocks, serves the \
         event and adds the descriptor again; with an event port it associates it again",
    ],
    metric: "CPU time of an event",
    unit: "ns",
    extras: &[
        Extra { name: "wall_ns", unit: "ns", summary: "wall time per event", fold: Fold::Median },
        Extra {
            name: "stale",
            unit: "",
            summary: "deliveries per event, among threads that run freely, that came after another \
                thread had served it",
            fold: Fold::Mean,
        },
        Extra { name: "events", unit: "", summary: "events sent in turns", fold: Fold::Mean },
        Extra {
            name: "duplicates",
            unit: "",
            summary: "deliveries in turns beyond the first of each event",
            fold: Fold::Mean,
        },
        Extra {
            name: "lost",
            unit: "",
            summary: "events in turns that reached no thread",
            fold: Fold::Mean,
        },
    ],
    axes: &[
        Axis {
            name: SET,
            unit: "",
            summary: "event-ports: a port; dev-poll: a /dev/poll set as it is; dev-poll-lock: the \
                same, with a mutex of the program",
            takes: Takes::Names(&[EVENT_PORTS, DEV_POLL, DEV_POLL_LOCK]),
            quick: SETS,
            default: SETS,
            full: SETS,
        },
        Axis {
            name: THREADS,
            unit: "",
            summary: "threads that share the set",
            takes: Takes::Numbers(1, 256),
            quick: &[Value::N(1), Value::N(2), Value::N(4)],
            default: &[Value::N(1), Value::N(2), Value::N(4)],
            full: &[Value::N(1), Value::N(2), Value::N(4), Value::N(16)],
        },
        Axis {
            name: ACTIVE,
            unit: "",
            summary: "descriptors in the set, each of which has an event",
            takes: Takes::Numbers(1, 10_000),
            quick: FEW_AND_MANY,
            default: FEW_AND_MANY,
            full: FEW_AND_MANY,
        },
    ],
    along: THREADS,
    lines: SET,
    claims: &[Claim {
        id: "dev-poll-locks",
        source: "000",
        text: "threads that share a /dev/poll set need a lock, because it reports the same event to \
            each of them; an event port delivers each event to one thread",
        judge: dev_poll_locks,
    }],
    sampling: Sampling { a_visit: 2, least: 12, most: 60, tight: 0.03 },
    man: &["devpoll(7)", "iotomy-ports(7)", "port_get(3)", "epoll(7)", "pthread_mutex_lock(3)"],
};

const SETS: &[Value] = &[Value::S(EVENT_PORTS), Value::S(DEV_POLL), Value::S(DEV_POLL_LOCK)];

const FEW_AND_MANY: &[Value] = &[Value::N(1), Value::N(16)];

impl Experiment for SharedSet {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &DECLARATION
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        sets::open(case.name(SET)).map(drop)
    }

    fn needs(&self, case: &Params) -> Needs {
        Needs { processes: case.number(THREADS), ..of_pairs(case.number(ACTIVE)) }
    }

    fn prepare(&self, _: &[Params], _: &Folder) -> Result<Box<dyn PreparedExperiment>, Skip> {
        Ok(Box::new(Threads::default()))
    }
}

#[derive(Default)]
struct Threads {
    patience: Patience,
}

/// Opens the set of a case; returns it with the number of threads.
fn shared(case: &Params) -> Result<(Shared, usize), Skip> {
    let shared = Shared::new(case.name(SET), count(case.number(ACTIVE)))?;
    Ok((shared, count(case.number(THREADS))))
}

impl PreparedExperiment for Threads {
    fn wait_at_most(&mut self, left: Option<Duration>) {
        self.patience = Patience::for_time_left(left);
    }

    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        let (shared, threads) = shared(case)?;
        free_run::run(&shared, threads, self.patience)?;
        while keep(free_run::run(&shared, threads, self.patience)?).is_continue() {}
        Ok(())
    }

    fn watch(
        &mut self,
        case: &Params,
        _: &mut dyn Watch,
    ) -> Result<Vec<(&'static str, f64)>, Skip> {
        let (shared, threads) = shared(case)?;
        let found = turns::deliver(&shared, threads, EVENTS)?;
        Ok(vec![
            ("events", EVENTS as f64),
            ("duplicates", found.duplicates as f64),
            ("lost", found.lost as f64),
        ])
    }
}
