//! `concurrency`: what a concurrency value is worth to a pool of threads.
//!
//! Windows' completion ports have one: of the threads that retrieve from a port no more run than the
//! value says, those that waited last are released first, and one that blocks frees its place. So a
//! pool may have many threads for tasks that block, and only as many as there are CPUs compete for
//! these. Beside it is a plain pool: the same threads at a queue with a lock and a condition, which
//! wakes a thread for every task.
//!
//! Every task computes on memory of its thread, and one in [`EVERY`] then blocks in the kernel.
//! A task that ends has its client post the next one, as a server's requests do.

mod claims;
mod crew;
mod pools;

use std::ops::ControlFlow;
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;

use crate::concurrency::claims::{blocked, cpu_time, same_rate};
use crate::concurrency::crew::Crew;
use crate::concurrency::pools::{Knowledge, PLAIN, PORT, PORT_EXACT, pool};
use crate::harness::patience::Patience;
use crate::harness::{
    Axis, Claim, Experiment, ExperimentDeclaration, Extra, Fold, Needs, Params, PreparedExperiment,
    Sample, Sampling, Takes, Value,
};

/// Of so many tasks one blocks.
const EVERY: usize = 8;

/// Tasks of a sample: few if some of them block, and without that as many as it takes until the
/// threads compete.
const BLOCKING_TASKS: usize = 128;
const TASKS: usize = 1_024;

/// Memory of a thread that its tasks work on: what a core's own caches hold once, and not 64 times.
const OF_A_THREAD: usize = 64 << 10;

/// Memory that a thread takes besides: its stack as far as it is used, and the kernel's part.
const STACK: u64 = 64 << 10;

/// Descriptors beside those of the process: one for a look at a thread.
const DESCRIPTORS: u64 = 2;

/// The axes that claims select by.
const POOL: &str = "pool";
const THREADS: &str = "threads";
const CLIENTS: &str = "clients";
const PAUSE: &str = "pause";

pub(super) struct Concurrency;

static DECLARATION: ExperimentDeclaration = ExperimentDeclaration {
    name: "concurrency",
    summary: "pools of threads with a concurrency value and without, for tasks that block now and then",
    hypothesis: "with more threads than CPUs, a pool of which no more threads run than there are \
        CPUs switches less and takes less CPU time per task; tasks that block cost it nothing, as \
        they free their place",
    refuted_by: "as much CPU time per task without a concurrency value, or fewer tasks a second \
        with it when tasks block",
    controls: &[
        "the same threads and tasks; every thread has 64 KiB that its tasks work on",
        "one task in 8 blocks by clock_nanosleep after its computation, for the pause",
        "a task that ends has the next one posted; as many are under way as there are clients",
        "a completion port whose concurrency value is the number of CPUs, and a queue with a mutex \
         and a condition",
        "port looks into /proc for threads that block (exact 0), port-exact has BPF tell them \
         (exact 1); what either takes of the threads is in its times",
        "CPU time and context switches of the pool's threads, by /proc before and after; without \
         tasks that block, pools are compared by CPU time, because under other load more threads \
         get more of the CPUs",
    ],
    metric: "tasks done a second",
    unit: "1/s",
    extras: &[
        Extra {
            name: "cpu_ns",
            unit: "ns",
            summary: "CPU time of the threads per task",
            fold: Fold::Median,
        },
        Extra {
            name: "switches",
            unit: "",
            summary: "context switches of the threads per task",
            fold: Fold::Mean,
        },
        Extra {
            name: "wakes",
            unit: "",
            summary: "those of them in which a thread went to sleep, to be woken later",
            fold: Fold::Mean,
        },
        Extra {
            name: "used",
            unit: "",
            summary: "threads that did a task of a sample",
            fold: Fold::Mean,
        },
        Extra {
            name: "computing",
            unit: "",
            summary: "most threads that were in a computation at once",
            fold: Fold::Mean,
        },
        Extra {
            name: "released",
            unit: "",
            summary: "threads that the port woke per task",
            fold: Fold::Mean,
        },
        Extra {
            name: "found",
            unit: "",
            summary: "threads found blocked per task that blocks",
            fold: Fold::Mean,
        },
        Extra {
            name: "looks",
            unit: "",
            summary: "looks at the threads per task",
            fold: Fold::Mean,
        },
        Extra {
            name: "value",
            unit: "",
            summary: "the concurrency value: the CPUs that iotomy may use",
            fold: Fold::Mean,
        },
        Extra {
            name: "exact",
            unit: "",
            summary: "1 if the kernel tells which threads run, 0 if user space looks",
            fold: Fold::Mean,
        },
    ],
    axes: &[
        Axis {
            name: POOL,
            unit: "",
            summary: "port: a completion port with a concurrency value, which looks into /proc for \
                threads that block; port-exact: the same, told by the kernel (BPF); plain: a queue \
                without one",
            takes: Takes::Names(&[PLAIN, PORT, PORT_EXACT]),
            quick: POOLS,
            default: POOLS,
            full: POOLS,
        },
        Axis {
            name: THREADS,
            unit: "",
            summary: "threads of the pool",
            takes: Takes::Numbers(1, 1_024),
            quick: &[Value::N(1), Value::N(2), Value::N(64)],
            default: &[Value::N(1), Value::N(2), Value::N(4), Value::N(16), Value::N(64)],
            full: &[
                Value::N(1),
                Value::N(2),
                Value::N(4),
                Value::N(8),
                Value::N(16),
                Value::N(32),
                Value::N(64),
            ],
        },
        Axis {
            name: CLIENTS,
            unit: "",
            summary: "tasks under way at once",
            takes: Takes::Numbers(1, 4_096),
            quick: &[Value::N(64)],
            default: &[Value::N(64)],
            full: &[Value::N(4), Value::N(64)],
        },
        Axis {
            name: PAUSE,
            unit: "",
            summary: "how long one task in 8 blocks, in µs; 0: none does",
            takes: Takes::Numbers(0, 1_000_000),
            quick: &[Value::N(0), Value::N(5_000)],
            default: &[Value::N(0), Value::N(1_000), Value::N(5_000)],
            full: &[Value::N(0), Value::N(100), Value::N(1_000), Value::N(5_000)],
        },
    ],
    along: THREADS,
    lines: POOL,
    claims: &[
        Claim {
            id: "concurrency-cpu",
            source: "iotomy",
            text: "with many more threads than CPUs and tasks that never block, a task takes less \
                CPU time in a pool with a concurrency value than in a plain one",
            judge: cpu_time,
        },
        Claim {
            id: "concurrency-blocked",
            source: "iotomy",
            text: "a thread that blocks frees its place: when tasks block, more threads than the \
                concurrency value do more tasks a second than as many as it",
            judge: blocked,
        },
        Claim {
            id: "concurrency-same",
            source: "iotomy",
            text: "when tasks block, a pool with a concurrency value does as many of them a second \
                as a plain one with the same threads",
            judge: same_rate,
        },
    ],
    sampling: Sampling { a_visit: 2, least: 12, most: 60, tight: 0.03 },
    man: &[
        "pthread_cond_wait(3)",
        "futex(2)",
        "clock_nanosleep(2)",
        "proc_pid_stat(5)",
        "sched(7)",
    ],
};

const POOLS: &[Value] = &[Value::S(PLAIN), Value::S(PORT), Value::S(PORT_EXACT)];

impl Experiment for Concurrency {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &DECLARATION
    }

    fn probe(&self, _: &Params) -> Result<(), Skip> {
        Ok(())
    }

    fn needs(&self, case: &Params) -> Needs {
        let threads = case.number(THREADS);
        Needs {
            processes: threads,
            descriptors: DESCRIPTORS,
            memory_bytes: threads * (OF_A_THREAD as u64 + STACK),
            ..Needs::default()
        }
    }

    fn prepare(&self, _: &[Params], _: &Folder) -> Result<Box<dyn PreparedExperiment>, Skip> {
        Ok(Box::new(Pools::default()))
    }
}

#[derive(Default)]
struct Pools {
    patience: Patience,
    exact: Option<Knowledge>,
}

impl PreparedExperiment for Pools {
    fn wait_at_most(&mut self, left: Option<Duration>) {
        self.patience = Patience::for_time_left(left);
    }

    fn needs_run_watch(&self, case: &Params) -> bool {
        case.name(POOL) == PORT_EXACT
    }

    fn take_run_watch(&mut self, watch: Knowledge) {
        self.exact = Some(watch);
    }

    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        let number = |axis: &str| usize::try_from(case.number(axis)).unwrap_or(usize::MAX);
        let pause = Duration::from_micros(case.number(PAUSE));
        let pool = pool(case.name(POOL), self.exact.take())?;
        let crew = Crew::start(pool, number(THREADS), pause)?;
        let clients = number(CLIENTS);
        let tasks = if pause.is_zero() { TASKS } else { BLOCKING_TASKS };
        // The threads have touched their memory; this wakes some of them a first time.
        crew.run(clients, tasks / 4, self.patience)?;
        loop {
            if keep(crew.run(clients, tasks, self.patience)?).is_break() {
                return Ok(());
            }
        }
    }
}
