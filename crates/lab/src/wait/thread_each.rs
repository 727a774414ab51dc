//! `thread-each`: one thread per descriptor, against one thread that waits for all of them.
//!
//! From article 000: instead of a poll over a thousand connections, a program could have a thread
//! for each, "but the overhead of thousands of threads adds up as well". Each thread blocks in
//! read(2) of its own socket; the other servers are a single thread with a waiter.
//!
//! A case is served in a process of its own, so that its CPU time and its memory are those of the
//! process.

mod claims;
mod service;

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_sys::crew::Crew;
use iotomy_waiters::Model;

use crate::harness::cases::unmet;
use crate::harness::memory::memory_of;
use crate::harness::patience::Patience;
use crate::harness::{
    Axis, Claim, Experiment, ExperimentDeclaration, Extra, Fold, Needs, Params, PreparedExperiment,
    Sample, Sampling, Takes, Value,
};
use crate::wait::line::{answer, ask};
use crate::wait::pairs::{DESCRIPTORS, HOW_MANY, that};
use crate::wait::round::{count, of_pairs};
use crate::wait::thread_each::claims::thread_each;
use crate::wait::thread_each::service::Service;
use crate::wait::threads::probe;

/// The server without a waiter.
const THREAD_EACH: &str = "thread-each";

/// Events of a sample.
const EVENTS: u64 = 1_000;

/// Memory of a thread: its stacks as far as they are used, and the kernel's structures.
const OF_A_THREAD: u64 = 64 << 10;

/// The axes that the claim selects by.
const SERVER: &str = "server";
const ACTIVE: &str = "active";

pub(crate) struct ThreadEach;

static DECLARATION: ExperimentDeclaration = ExperimentDeclaration {
    name: "thread-each",
    summary: "a thread for each of N descriptors, or one thread that waits for all of them",
    hypothesis: "a thread for each descriptor takes more CPU time per event, because each event \
        wakes another thread, and more memory per descriptor, because each thread has its stacks",
    refuted_by: "as little CPU time or memory with a thread for each descriptor as with one thread \
        and epoll, event ports or /dev/poll",
    controls: &[
        "the same client for all: it sends a byte to each active descriptor, and waits until all \
         of them were received; other descriptors are active in the next round",
        "a process for each visit, with its own pairs of UNIX sockets; an uncounted round first, in \
         which every descriptor is active",
        "CPU time of the whole process, with the client's part in waking the threads",
        "memory of pages that were touched, page tables and kernel stacks; without what the kernel \
         keeps besides for threads, sockets and waiters",
    ],
    metric: "CPU time of an event",
    unit: "ns",
    extras: &[
        Extra { name: "wall_ns", unit: "ns", summary: "wall time per event", fold: Fold::Median },
        Extra {
            name: "memory_bytes",
            unit: "bytes",
            summary: "memory of the process per descriptor: pages, page tables and kernel stacks",
            fold: Fold::Median,
        },
    ],
    axes: &[
        Axis {
            name: SERVER,
            unit: "",
            summary: "thread-each: a thread blocked in read for each descriptor; others: one thread \
                with this waiter",
            takes: Takes::Listed(servers),
            quick: JUDGED,
            default: JUDGED,
            full: &[],
        },
        Axis {
            name: DESCRIPTORS,
            unit: "",
            summary: "number of descriptors served; each takes two of the process's descriptors",
            takes: HOW_MANY,
            quick: &[Value::N(100), Value::N(1_000)],
            // The article's thousand connections, and the most that it measured few events with.
            default: &[Value::N(100), Value::N(1_000), Value::N(7_500)],
            full: &[Value::N(10), Value::N(100), Value::N(1_000), Value::N(2_500), Value::N(7_500)],
        },
        Axis {
            name: ACTIVE,
            unit: "",
            summary: "how many have an event at once",
            takes: Takes::Numbers(1, 500_000),
            quick: FEW_AND_MANY,
            default: FEW_AND_MANY,
            full: FEW_AND_MANY,
        },
    ],
    along: DESCRIPTORS,
    lines: SERVER,
    claims: &[Claim {
        id: "thread-each",
        source: "000",
        text: "a thread for each of a thousand descriptors or more, a hundred of them active, takes \
            more CPU time per event and more memory per descriptor than one thread that waits for \
            all of them",
        judge: thread_each,
    }],
    sampling: Sampling { a_visit: 3, least: 18, most: 60, tight: 0.03 },
    man: &["pthread_create(3)", "read(2)", "epoll(7)", "proc_pid_smaps(5)", "pthreads(7)"],
};

/// Those that the claim compares, and poll, which the article had instead of threads.
const JUDGED: &[Value] = &[
    Value::S(THREAD_EACH),
    Value::S("poll"),
    Value::S("epoll"),
    Value::S("event-ports"),
    Value::S("dev-poll"),
];

const FEW_AND_MANY: &[Value] = &[Value::N(1), Value::N(100)];

/// A thread for each, and the waiters that block until a descriptor is ready.
fn servers() -> Vec<&'static str> {
    let waiters = that(|of| of.sleeps && !of.receives && of.model != Model::Signals);
    [THREAD_EACH].into_iter().chain(waiters).collect()
}

fn is_thread_each(case: &Params) -> bool {
    case.name(SERVER) == THREAD_EACH
}

impl Experiment for ThreadEach {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &DECLARATION
    }

    fn no_case(&self, case: &Params) -> Vec<&'static str> {
        let fits = case.number(ACTIVE) <= case.number(DESCRIPTORS);
        unmet(&[(fits, "the number of active descriptors exceeds their total")])
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        match is_thread_each(case) {
            true => Ok(()),
            false => probe(case.name(SERVER), 2 * case.number(DESCRIPTORS)),
        }
    }

    fn needs(&self, case: &Params) -> Needs {
        let descriptors = case.number(DESCRIPTORS);
        let threads = if is_thread_each(case) { descriptors } else { 1 };
        let pairs = of_pairs(descriptors);
        Needs {
            processes: threads + 1,
            memory_bytes: pairs.memory_bytes + threads * OF_A_THREAD,
            ..pairs
        }
    }

    fn prepare(&self, _: &[Params], _: &Folder) -> Result<Box<dyn PreparedExperiment>, Skip> {
        Ok(Box::new(Services::default()))
    }
}

#[derive(Default)]
struct Services {
    patience: Patience,
}

impl Services {
    /// Has the process of a case make rounds with so many active descriptors; returns their CPU
    /// time and wall time.
    fn rounds(&self, line: &UnixStream, request: [u64; 2]) -> Result<(f64, f64), Skip> {
        let waiting = self.patience.begin();
        let left = waiting.left().max(Duration::from_millis(1));
        line.set_read_timeout(Some(left)).map_err(|e| Skip::refused("setsockopt", e))?;
        ask(line, request).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => waiting.in_vain("events were not served"),
            _ => Skip(error.to_string()),
        })
    }
}

impl PreparedExperiment for Services {
    fn wait_at_most(&mut self, left: Option<Duration>) {
        self.patience = Patience::for_time_left(left);
    }

    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        let (server, descriptors) = (case.name(SERVER), case.number(DESCRIPTORS));
        let work = |_: usize, mut line: UnixStream| {
            let prepare = || Service::start(server, count(descriptors));
            // The requester is gone, or has received the reason why there is no answer.
            let _ = answer(&mut line, prepare, |service, [active, rounds]| {
                service.rounds(count(active), count(rounds))
            });
        };
        let crew = Crew::start(1, &work).map_err(|e| Skip::refused("fork", e))?;
        let line = crew.lines().first().ok_or_else(|| Skip("no process was forked".to_owned()))?;
        self.rounds(line, [descriptors, 1])?;
        let memory = memory_of(crew.pids()).map(|all| all as f64 / descriptors as f64);
        let active = case.number(ACTIVE);
        let rounds = EVENTS.div_ceil(active);
        let events = (active * rounds) as f64;
        loop {
            let (cpu, wall) = self.rounds(line, [active, rounds])?;
            let extra = [("wall_ns", wall / events)].into_iter();
            let extra = extra.chain(memory.map(|of_one| ("memory_bytes", of_one))).collect();
            if keep(Sample { value: cpu / events, extra }).is_break() {
                return Ok(());
            }
        }
    }
}
