//! `wait`: libevent's benchmark over the waiters: the cost of readiness as idle descriptors grow.
//!
//! From article 000, where event ports were ten times as fast as poll at 7,500 descriptors with few
//! of them active, and twice as fast with many. The rounds are in [`iotomy_waiters::rounds`]. The
//! timed loop never blocks there, so it is also run with another thread as the sender.

mod claims;
mod crew;
pub(crate) mod enter_leave;
mod line;
pub(crate) mod models;
mod pairs;
mod peers;
mod round;
mod rounds;
pub(crate) mod shared_set;
pub(crate) mod thread_each;
mod threads;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use rustix::process::{Resource, getrlimit};

use crate::harness::cases::unmet;
use crate::harness::{
    Axis, Claim, Experiment, ExperimentDeclaration, Extra, Fold, Needs, Params, PreparedExperiment,
    Sampling, Takes, Value,
};
use crate::wait::claims::{
    reactor_tax, wait_active, wait_limits, wait_scale, wait_select_poll, wait_shared, wait_small,
};
use crate::wait::pairs::{blocking_waiters, waiters};
use crate::wait::rounds::Rounds;
use crate::wait::threads::probe;

/// Maximum number of events that libevent receives at once.
pub(super) const BATCH: usize = 4096;

/// Memory per pair: two sockets with their files and inodes, and the structures that watch them.
pub(super) const OF_A_PAIR: u64 = 8 << 10;

/// Descriptors besides the pairs.
pub(super) const SPARE_DESCRIPTORS: u64 = 64;

/// Memory of a process besides its pairs.
const OF_A_PROCESS: u64 = 2 << 20;

/// The soft limit of the article's system.
pub(super) const SOFT_LIMIT: u64 = 256;

pub(super) struct Wait;

static DECLARATION: ExperimentDeclaration = ExperimentDeclaration {
    name: "wait",
    summary: "libevent's benchmark: few or many of N descriptors active, for every waiter",
    hypothesis: "with interest registered in the kernel, the cost of an event does not depend on \
        the number of idle descriptors; with the set passed to each wait, it grows with them",
    refuted_by: "epoll or io_uring growing with idle descriptors, or poll not growing",
    controls: &[
        "pairs of UNIX sockets, opened once for all cases; readers are registered again each \
         round, not timed",
        "the same loop, receive and send for all; buffers of 4,096 events; one uncounted round \
         first",
        "at one set shared by 4 threads, each event keeps its thread busy for 0.2 ms, outside the \
         timed part",
        "CPU time, which is the whole time of a loop that never blocks; wall time in addition",
    ],
    metric: "CPU time of a round",
    unit: "ns",
    extras: &[
        Extra { name: "wall_ns", unit: "ns", summary: "wall time of a round", fold: Fold::Median },
        Extra { name: "event_ns", unit: "ns", summary: "CPU time per event", fold: Fold::Median },
        Extra {
            name: "processes",
            unit: "",
            summary: "processes that share the descriptors, as one may not have so many",
            fold: Fold::Mean,
        },
        Extra {
            name: "watchable",
            unit: "",
            summary: "how many of the opened pairs it could watch",
            fold: Fold::Mean,
        },
        Extra {
            name: "ceiling",
            unit: "",
            summary: "descriptors the process could open with a soft limit of 256, before raising \
                it",
            fold: Fold::Mean,
        },
        Extra {
            name: "shares",
            unit: "",
            summary: "threads that could wait at one set",
            fold: Fold::Mean,
        },
        Extra {
            name: "share_least",
            unit: "",
            summary: "the smallest share of the events of a thread, 1 is all",
            fold: Fold::Median,
        },
        Extra {
            name: "share_most",
            unit: "",
            summary: "the largest share of the events of a thread",
            fold: Fold::Median,
        },
        Extra {
            name: "share_lost",
            unit: "",
            summary: "events that reached no thread",
            fold: Fold::Mean,
        },
        Extra {
            name: "share_empty",
            unit: "",
            summary: "spurious wake-ups of a thread per event: another thread took the event",
            fold: Fold::Mean,
        },
    ],
    axes: &[
        Axis {
            name: "waiter",
            unit: "",
            summary: "how the loop waits; libevent, libuv and mio if their programs are in PATH \
                (make bench-wait)",
            takes: Takes::Registered { all: waiters_and_peers, usual: blocking_waiters },
            quick: JUDGED,
            default: &[],
            full: &[],
        },
        Axis {
            name: "descriptors",
            unit: "",
            summary: "number of descriptors watched; each takes a pair, so two of a process's \
                descriptors, and more processes if one may not have so many",
            takes: Takes::Numbers(1, 500_000),
            quick: &[Value::N(100), Value::N(1_000)],
            // 500 is within what select can watch; 7,500 is the article's value.
            default: &[Value::N(100), Value::N(500), Value::N(2_500), Value::N(7_500)],
            // Up to the article's 64,000, which take several processes here.
            full: &[
                Value::N(100),
                Value::N(250),
                Value::N(500),
                Value::N(1_000),
                Value::N(2_500),
                Value::N(5_000),
                Value::N(7_500),
                Value::N(9_000),
                Value::N(15_000),
                Value::N(32_000),
                Value::N(64_000),
            ],
        },
        Axis {
            name: "active",
            unit: "",
            summary: "how many have a byte at the start of a round",
            takes: Takes::Numbers(1, 500_000),
            quick: ACTIVE,
            default: ACTIVE,
            full: &[Value::N(1), Value::N(100), Value::N(1_000)],
        },
        Axis {
            name: "writes",
            unit: "",
            summary: "bytes that readers pass on in a round",
            takes: Takes::Numbers(0, 10_000_000),
            quick: &[Value::N(100)],
            default: &[Value::N(100)],
            full: &[Value::N(100), Value::N(7_500)],
        },
        Axis {
            name: "loop",
            unit: "",
            summary: "spin: readers send, no wait blocks; block: another thread sends, waits block",
            takes: Takes::Names(&["spin", "block"]),
            quick: LOOPS,
            default: LOOPS,
            full: LOOPS,
        },
    ],
    along: "descriptors",
    lines: "waiter",
    claims: &[
        Claim {
            id: "wait-scale",
            source: "000",
            text: "with interest registered in the kernel, the cost does not depend on the number \
                of idle descriptors; with poll it grows with them",
            judge: wait_scale,
        },
        Claim {
            id: "wait-active",
            source: "000",
            text: "with many active descriptors the advantage shrinks",
            judge: wait_active,
        },
        Claim {
            id: "wait-small",
            source: "000",
            text: "for few descriptors, most of them active, registration can cost slightly more: \
                two calls per event",
            judge: wait_small,
        },
        Claim {
            id: "wait-select-poll",
            source: "000",
            text: "select is no better than poll",
            judge: wait_select_poll,
        },
        Claim {
            id: "wait-limits",
            source: "000",
            text: "the ceilings are real: select's limit of descriptors, and the soft limit of the \
                   process",
            judge: wait_limits,
        },
        Claim {
            id: "wait-shared",
            source: "000",
            text: "several threads can share one event queue, and the kernel distributes the \
                events; a poll set belongs to one thread",
            judge: wait_shared,
        },
        Claim {
            id: "reactor-tax",
            source: "000",
            text: "a portable event library costs more than the bare mechanism, for its \
                bookkeeping per descriptor",
            judge: reactor_tax,
        },
    ],
    // Few samples per visit: rounds of one visit are alike, but visits differ.
    sampling: Sampling { a_visit: 3, least: 18, most: 99, tight: 0.02 },
    man: &["select(2)", "poll(2)", "epoll(7)", "io_uring(7)", "fcntl(2)"],
};

/// Those that the claims compare.
const JUDGED: &[Value] = &[
    Value::S("select"),
    Value::S("poll"),
    Value::S("epoll"),
    Value::S("epoll-oneshot"),
    Value::S("io-uring-poll"),
    Value::S("event-ports"),
    Value::S("dev-poll"),
];

const ACTIVE: &[Value] = &[Value::N(1), Value::N(100)];

const LOOPS: &[Value] = &[Value::S("spin"), Value::S("block")];

/// The waiters, and the event libraries of other projects.
fn waiters_and_peers() -> Vec<&'static str> {
    waiters().into_iter().chain(peers::NAMES).collect()
}

impl Experiment for Wait {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &DECLARATION
    }

    fn no_case(&self, case: &Params) -> Vec<&'static str> {
        let fits = case.number("active") <= case.number("descriptors");
        unmet(&[
            (fits, "the number of active descriptors exceeds their total"),
            (
                !(is_peer(case) && case.name("loop") == "block"),
                "the blocking loop does not support event libraries",
            ),
        ])
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        match is_peer(case) {
            true if processes(case) > 1 => Err(Skip(format!(
                "the comparator has one process, and one may have {} descriptors",
                most_descriptors()
            ))),
            true => peers::probe(case.name("waiter")),
            false => {
                probe(case.name("waiter"), 2 * case.number("descriptors").div_ceil(processes(case)))
            }
        }
    }

    fn needs(&self, case: &Params) -> Needs {
        let (pairs, processes) = (case.number("descriptors"), processes(case));
        Needs {
            descriptors: 2 * pairs.div_ceil(processes) + SPARE_DESCRIPTORS,
            memory_bytes: pairs * OF_A_PAIR + (processes - 1) * OF_A_PROCESS,
            // One of the processes is this one.
            processes: if processes > 1 { processes } else { 0 },
            ..Needs::default()
        }
    }

    fn prepare(&self, cases: &[Params], _: &Folder) -> Result<Box<dyn PreparedExperiment>, Skip> {
        Ok(Box::new(Rounds::new(cases)?))
    }
}

/// Whether a separate program makes the rounds of this case, with another event library.
pub(super) fn is_peer(case: &Params) -> bool {
    peers::NAMES.contains(&case.name("waiter"))
}

/// Returns the maximum number of descriptors per process.
fn most_descriptors() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// Returns the number of processes needed so that each may open its descriptors.
pub(super) fn processes(case: &Params) -> u64 {
    let of_one = (most_descriptors().saturating_sub(SPARE_DESCRIPTORS) / 2).max(1);
    case.number("descriptors").div_ceil(of_one).max(1)
}
