//! `herd`: the cost of one connection while thousands of processes are blocked on the same
//! listening socket.
//!
//! From article 002, where connect() to a listener shared by 16,384 processes in select() took 34
//! ms, and 1.5 s when each process had a thousand duplicates of it. A connection over the loopback
//! is made inside connect(): finding the listener, queueing, and waking all waiters are part of its
//! time.

pub(crate) mod accept;
mod claims;
mod clients;
mod gate;
mod member;
mod plan;
mod processes;
mod sleepers;
mod slot;

use std::ops::ControlFlow;
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;

use crate::harness::cases::unmet;
use crate::harness::memory::memory_of;
use crate::harness::patience::Patience;
use crate::harness::{
    Axis, Claim, Experiment, ExperimentDeclaration, Extra, Fold, Needs, Params, PreparedExperiment,
    Sample, Sampling, Takes, Value, Watch,
};
use crate::herd::claims::{herd_dups, herd_exclusive, herd_linear, herd_load};
use crate::herd::gate::{Gate, OF_A_PROCESS, check_loopback, probe};
use crate::herd::processes::Herd;
use crate::herd::sleepers::{Sleepers, accepts};

/// Memory per duplicate in a process: its entry in the descriptor table, and the entry that select
/// or poll adds to the socket's wait queue.
const OF_A_DUPLICATE: u64 = 128;

/// The same for epoll: an entry of its set and an entry in the socket's wait queue.
const OF_A_WATCH: u64 = 320;

/// Descriptors of a process besides the listener and its duplicates.
const SPARE_DESCRIPTORS: u64 = 8;

/// Connections whose wake-ups are counted.
const WATCHED: usize = 3;

pub(super) struct HerdExperiment;

static DECLARATION: ExperimentDeclaration = ExperimentDeclaration {
    name: "herd",
    summary: "connect() to a listener shared by N blocked processes",
    hypothesis: "without exclusive wake-ups one connection wakes every blocked process \
        (thundering herd), in time linear in their number and in the duplicates each waits for",
    refuted_by: "a time that does not grow, or a single process woken for every waiter",
    controls: &[
        "forked processes, each blocked in its waiter when connect() begins, and no others",
        "non-blocking connect(), timed alone, after one uncounted connect()",
        "the next connection starts when all are blocked again, by /proc",
        "127.0.0.1 and a port chosen by the kernel",
    ],
    metric: "time of connect()",
    unit: "ns",
    extras: &[
        Extra {
            name: "woken",
            unit: "",
            summary: "processes that went to sleep again after a connection, counted in /proc",
            fold: Fold::Mean,
        },
        Extra {
            name: "empty",
            unit: "",
            summary: "the spurious ones of these: nothing to accept",
            fold: Fold::Mean,
        },
        Extra {
            name: "wakeups",
            unit: "",
            summary: "wake-ups of the processes by a connection, counted by BPF in the kernel",
            fold: Fold::Mean,
        },
        Extra {
            name: "in_vain",
            unit: "",
            summary: "the spurious ones of these wake-ups: nothing to accept",
            fold: Fold::Mean,
        },
        Extra {
            name: "queued",
            unit: "",
            summary: "processes in a run queue, on average until all were blocked again",
            fold: Fold::Mean,
        },
        Extra {
            name: "quiet_ns",
            unit: "ns",
            summary: "time until all were blocked again, to the resolution of one scan of them",
            fold: Fold::Median,
        },
        Extra { name: "load", unit: "", summary: "one-minute load average", fold: Fold::Mean },
        Extra {
            name: "memory_bytes",
            unit: "bytes",
            summary: "memory of all processes: their share of pages, page tables and kernel stacks",
            fold: Fold::Median,
        },
    ],
    axes: &[
        Axis {
            name: "waiter",
            unit: "",
            summary: "how the processes wait; reuseport: each at its own socket",
            takes: Takes::Names(&[
                "accept",
                "select",
                "poll",
                "epoll",
                "epoll-exclusive",
                "io-uring",
                "reuseport",
            ]),
            quick: &[Value::S("select"), Value::S("epoll"), Value::S("epoll-exclusive")],
            default: ALL,
            full: ALL,
        },
        Axis {
            name: "processes",
            unit: "",
            summary: "number of blocked processes",
            takes: Takes::Numbers(1, 65_536),
            quick: &[Value::N(1), Value::N(64), Value::N(512)],
            // 1,024 with duplicates take 15 s per visit on a loaded machine, and a ratio needs
            // three visits.
            default: &[Value::N(1), Value::N(128), Value::N(512)],
            // The values of the article's charts.
            full: &[
                Value::N(1),
                Value::N(128),
                Value::N(256),
                Value::N(512),
                Value::N(1_024),
                Value::N(2_048),
                Value::N(3_072),
                Value::N(4_096),
                Value::N(8_192),
                Value::N(12_288),
                Value::N(16_384),
            ],
        },
        Axis {
            name: "duplicates",
            unit: "",
            summary: "duplicates of the listener in each process, also waited for; for select, \
                poll and epoll",
            // A set of select has room for 1,024 descriptors.
            takes: Takes::Numbers(0, 1_019),
            quick: DUPLICATES,
            default: DUPLICATES,
            full: DUPLICATES,
        },
    ],
    along: "processes",
    lines: "waiter",
    claims: &[
        Claim {
            id: "herd-linear",
            source: "002",
            text: "connect() to a listener shared by N blocked processes takes time linear in N, for \
                   select and for plain epoll",
            judge: herd_linear,
        },
        Claim {
            id: "herd-dups",
            source: "002",
            text: "a thousand duplicates of the descriptor in each process multiply it",
            judge: herd_dups,
        },
        Claim {
            id: "herd-exclusive",
            source: "002",
            text: "EPOLLEXCLUSIVE helps the average case",
            judge: herd_exclusive,
        },
        Claim {
            id: "herd-load",
            source: "002",
            text: "one event moves thousands of tasks to runnable: the load average explodes",
            judge: herd_load,
        },
    ],
    // Several herds per case, since a result may depend on the herd; sixteen connections per point
    // or more, as in the article.
    sampling: Sampling { a_visit: 6, least: 18, most: 60, tight: 0.05 },
    man: &["connect(2)", "accept(2)", "select(2)", "epoll_ctl(2)", "socket(7)"],
};

const ALL: &[Value] = &[
    Value::S("accept"),
    Value::S("select"),
    Value::S("poll"),
    Value::S("epoll"),
    Value::S("epoll-exclusive"),
    Value::S("io-uring"),
    Value::S("reuseport"),
];

/// None, and as many as the article's server made.
const DUPLICATES: &[Value] = &[Value::N(0), Value::N(1_019)];

impl Experiment for HerdExperiment {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &DECLARATION
    }

    fn no_case(&self, case: &Params) -> Vec<&'static str> {
        let has_duplicates = ["select", "poll", "epoll"].contains(&case.name("waiter"));
        let is_case = case.number("duplicates") == 0 || has_duplicates;
        unmet(&[(is_case, "duplicates are for select, poll and epoll")])
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        let waiter = case.name("waiter");
        if waiter.starts_with("epoll") {
            watches_fit(case.number("processes") * (case.number("duplicates") + 1))?;
        }
        probe(waiter).map(|_| ())
    }

    fn needs(&self, case: &Params) -> Needs {
        let (processes, duplicates) = (case.number("processes"), case.number("duplicates"));
        let of_one = if case.name("waiter") == "epoll" { OF_A_WATCH } else { OF_A_DUPLICATE };
        Needs {
            processes,
            descriptors: duplicates + SPARE_DESCRIPTORS,
            memory_bytes: processes * (OF_A_PROCESS + duplicates * of_one),
            ..Needs::default()
        }
    }

    fn prepare(&self, _: &[Params], _: &Folder) -> Result<Box<dyn PreparedExperiment>, Skip> {
        check_loopback()?;
        Ok(Box::new(Loopback::default()))
    }
}

/// Checks that the user may have this many descriptors in epoll sets, in all processes together.
fn watches_fit(watches: u64) -> Result<(), Skip> {
    let file = "/proc/sys/fs/epoll/max_user_watches";
    let most = iotomy_host::kernel_text(file).ok().and_then(|text| text.trim().parse::<u64>().ok());
    match most {
        Some(most) if most < watches => Err(Skip(format!(
            "needs {watches} epoll watches, and fs.epoll.max_user_watches is {most}; try sysctl \
             fs.epoll.max_user_watches={}",
            watches.next_power_of_two()
        ))),
        _ => Ok(()),
    }
}

#[derive(Default)]
struct Loopback(Patience);

/// Starts the herd of a case, with its gate.
fn herd(case: &Params, patience: Patience) -> Result<(Gate, Herd), Skip> {
    let gate = Gate::new(probe(case.name("waiter"))?)?;
    let members = usize::try_from(case.number("processes")).unwrap_or(usize::MAX);
    let duplicates = u32::try_from(case.number("duplicates")).unwrap_or(u32::MAX);
    let herd = gate.herd((members, duplicates), patience)?;
    Ok((gate, herd))
}

impl PreparedExperiment for Loopback {
    fn wait_at_most(&mut self, left: Option<Duration>) {
        self.0 = Patience::for_time_left(left);
    }

    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        let (gate, herd) = herd(case, self.0)?;
        let mut sleepers = Sleepers::new(&herd, self.0);
        sleepers.settle()?;
        let memory = memory_of(herd.pids());
        // The first connection finds cold caches and missing page tables.
        sleepers.connection(gate.address)?;
        loop {
            let mut sample = sleepers.connection(gate.address)?;
            sample.extra.extend(memory.map(|bytes| ("memory_bytes", bytes as f64)));
            if keep(sample).is_break() {
                return Ok(());
            }
        }
    }

    /// Wake-ups are counted in a separate herd: timed connections are not watched.
    fn watch(
        &mut self,
        case: &Params,
        watch: &mut dyn Watch,
    ) -> Result<Vec<(&'static str, f64)>, Skip> {
        let (gate, herd) = herd(case, self.0)?;
        let mut sleepers = Sleepers::new(&herd, self.0);
        sleepers.settle()?;
        sleepers.connection(gate.address)?;
        let wakeups = watch.wakeups().map_err(Skip)?;
        let mut found = Vec::new();
        for _ in 0..WATCHED {
            let before = (wakeups.so_far().map_err(Skip)?, accepts(&herd));
            sleepers.connection(gate.address)?;
            let count = wakeups.so_far().map_err(Skip)?.saturating_sub(before.0);
            let accepted = accepts(&herd).saturating_sub(before.1);
            found.push(("wakeups", count as f64));
            found.push(("in_vain", count.saturating_sub(accepted) as f64));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
