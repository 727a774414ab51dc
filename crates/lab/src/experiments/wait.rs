//! `wait`: libevent's benchmark over the waiters: what readiness costs as idle descriptors grow.
//!
//! From article 000, where event ports beat poll ten times at 7,500 descriptors with few of them
//! active, and twice with many. Its rounds are in [`iotomy_waiters::rounds`]; what is timed never
//! sleeps there, so the loop is run with another thread as the sender, too.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};

use iotomy_waiters::rounds::{Ring, RoundError};
use iotomy_waiters::{Events, Settings, Waiter, waiter};

use super::bounds::SoftLimit;
use super::wait_claims::{
    wait_active, wait_limits, wait_scale, wait_select_poll, wait_shared, wait_small,
};
use super::wait_threads::{Shares, probe, share_out, thread_ns};
use super::{
    Axis, Bench, Claim, Declaration, Experiment, Extra, Fold, Go, Needs, Params, Sample, Sampling,
    Takes, Value, Watch,
};
use crate::limits::Skip;
use crate::limits::storage::Folder;

/// As many events as libevent takes at once at most.
pub(super) const BATCH: usize = 4096;

/// Memory of a pair: two sockets with their files and inodes, and what watches them.
pub(super) const OF_A_PAIR: u64 = 8 << 10;

/// Descriptors besides the pairs.
pub(super) const SPARE_DESCRIPTORS: u64 = 64;

/// A soft limit as the article's system had it.
pub(super) const SOFT_LIMIT: u64 = 256;

pub(super) struct Wait;

static DECLARATION: Declaration = Declaration {
    name: "wait",
    summary: "libevent's benchmark: few or many of N descriptors active, by every waiter",
    hypothesis: "where interest is registered in the kernel an event costs the same however many \
                 descriptors idle; where the set is handed over with each wait it grows with them",
    refuted_by: "epoll or io_uring growing with idle descriptors, or poll not growing",
    controls: &[
        "pairs of UNIX sockets, opened once for all cases; readers registered anew each round, not timed",
        "the same loop, receive and send for all; buffers of 4,096 events; one round first, not counted",
        "at one set shared by 4 threads each event keeps its thread 0.2 ms, apart from what is timed",
        "time on the CPU, which is all there is where the loop never sleeps; the clock's besides",
    ],
    metric: "CPU time of a round",
    unit: "ns",
    extras: &[
        Extra {
            name: "wall_ns",
            unit: "ns",
            summary: "the round by the clock",
            fold: Fold::Median,
        },
        Extra { name: "event_ns", unit: "ns", summary: "CPU time an event", fold: Fold::Median },
        Extra {
            name: "watchable",
            unit: "",
            summary: "of the pairs that were opened, how many it could watch",
            fold: Fold::Mean,
        },
        Extra {
            name: "ceiling",
            unit: "",
            summary: "descriptors the process could have with a soft limit of 256, before it was raised",
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
            summary: "the least of the threads' shares of the events, 1 being all",
            fold: Fold::Median,
        },
        Extra {
            name: "share_most",
            unit: "",
            summary: "the largest of the threads' shares of the events",
            fold: Fold::Median,
        },
        Extra {
            name: "share_lost",
            unit: "",
            summary: "events that came to no thread",
            fold: Fold::Mean,
        },
        Extra {
            name: "share_empty",
            unit: "",
            summary: "wake-ups of a thread an event that another had taken",
            fold: Fold::Mean,
        },
    ],
    axes: &[
        Axis {
            name: "waiter",
            unit: "",
            summary: "how the loop waits",
            takes: Takes::Names(&[
                "busy",
                "sigio",
                "select",
                "poll",
                "epoll",
                "epoll-edge",
                "epoll-oneshot",
                "io-uring-poll",
                "io-uring-recv",
            ]),
            quick: &[
                Value::S("select"),
                Value::S("poll"),
                Value::S("epoll"),
                Value::S("epoll-oneshot"),
                Value::S("io-uring-poll"),
            ],
            default: WAITERS,
            full: WAITERS,
        },
        Axis {
            name: "descriptors",
            unit: "",
            summary: "how many are watched; each takes a pair, so two of the process's",
            takes: Takes::Numbers(1, 500_000),
            quick: &[Value::N(100), Value::N(1_000)],
            // 500 is what select can watch; 9,000 what a limit of 20,000 descriptors leaves.
            default: &[
                Value::N(100),
                Value::N(500),
                Value::N(1_000),
                Value::N(2_500),
                Value::N(5_000),
                Value::N(7_500),
                Value::N(9_000),
            ],
            // Up to the article's 15,000.
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
            ],
        },
        Axis {
            name: "active",
            unit: "",
            summary: "how many have a byte when a round begins",
            takes: Takes::Numbers(1, 500_000),
            quick: ACTIVE,
            default: ACTIVE,
            full: &[Value::N(1), Value::N(100), Value::N(1_000)],
        },
        Axis {
            name: "writes",
            unit: "",
            summary: "bytes that readers send on in a round",
            takes: Takes::Numbers(0, 10_000_000),
            quick: &[Value::N(100)],
            default: &[Value::N(100)],
            full: &[Value::N(100), Value::N(7_500)],
        },
        Axis {
            name: "loop",
            unit: "",
            summary: "spin: readers send, nothing sleeps; block: another thread sends, waits sleep",
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
            text: "registering interest in the kernel costs the same however many descriptors idle; \
                   poll grows with them",
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
            text: "for few descriptors, most of them active, registration can cost slightly more: two \
                   calls an event",
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
            text: "several threads can share one event queue and the kernel spreads the events; sets \
                   of poll are the thread's own",
            judge: wait_shared,
        },
    ],
    sampling: Sampling { a_visit: 5, least: 15, most: 100, tight: 0.02 },
    man: &["select(2)", "poll(2)", "epoll(7)", "io_uring(7)", "fcntl(2)"],
};

// Asking each descriptor by a call of its own takes seconds a round with thousands, so `busy` is there
// only when it is asked for.
const WAITERS: &[Value] = &[
    Value::S("sigio"),
    Value::S("select"),
    Value::S("poll"),
    Value::S("epoll"),
    Value::S("epoll-edge"),
    Value::S("epoll-oneshot"),
    Value::S("io-uring-poll"),
    Value::S("io-uring-recv"),
];

const ACTIVE: &[Value] = &[Value::N(1), Value::N(100)];

const LOOPS: &[Value] = &[Value::S("spin"), Value::S("block")];

impl Experiment for Wait {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn is_case(&self, case: &Params) -> bool {
        case.number("active") <= case.number("descriptors")
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        probe(case.name("waiter"), 2 * case.number("descriptors"))
    }

    fn needs(&self, case: &Params) -> Needs {
        let pairs = case.number("descriptors");
        Needs {
            descriptors: 2 * pairs + SPARE_DESCRIPTORS,
            memory_bytes: pairs * OF_A_PAIR,
            ..Needs::default()
        }
    }

    fn prepare(&self, cases: &[Params], _: &Folder) -> Result<Box<dyn Bench>, Skip> {
        let ceiling = under(SOFT_LIMIT)?;
        let limit = SoftLimit::raise()?;
        let most = cases.iter().map(|case| case.number("descriptors")).max().unwrap_or(1);
        let ring = Ring::new(count(most)).map_err(refused)?;
        let (most, watchable) = (count(most), HashMap::new());
        Ok(Box::new(Rounds { ring, most, ceiling, watchable, _limit: limit }))
    }
}

/// A number of a case as one of things in memory.
pub(super) fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Why a round could not be measured.
pub(super) fn refused(error: impl Into<RoundError>) -> Skip {
    Skip(error.into().to_string())
}

/// A waiter of this name.
pub(super) fn open(name: &str, descriptors: usize) -> Result<Box<dyn Waiter>, Skip> {
    let found = waiter(name).ok_or_else(|| Skip(format!("there is no waiter {name}")))?;
    (found.open)(&Settings { descriptors, ..Settings::default() }).map_err(refused)
}

/// How many descriptors this process can have under a soft limit, by opening them.
fn under(soft_limit: u64) -> Result<f64, Skip> {
    let limit = SoftLimit::set(soft_limit)?;
    let mut opened: Vec<OwnedFd> = Vec::new();
    while opened.len() < 2 * count(soft_limit) {
        match rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC) {
            Ok(fd) => opened.push(fd),
            Err(_) => break,
        }
    }
    drop(limit);
    // The kernel gives the lowest number that is free.
    let highest = opened.iter().map(|fd| fd.as_raw_fd()).max().unwrap_or(-1);
    Ok(f64::from(highest + 1))
}

struct Rounds {
    ring: Ring,
    /// How many pairs it has.
    most: usize,
    /// How many descriptors the process could have under [`SOFT_LIMIT`].
    ceiling: f64,
    _limit: SoftLimit,
    /// How many of them each waiter can watch, once it was tried.
    watchable: HashMap<String, f64>,
}

impl Rounds {
    /// Has a waiter watch as many as it can, once.
    fn watchable(&mut self, name: &str) -> Result<f64, Skip> {
        if let Some(found) = self.watchable.get(name) {
            return Ok(*found);
        }
        self.ring.take_first(self.most);
        let mut waiter = open(name, self.most)?;
        let found = match self.ring.register(waiter.as_mut()) {
            Ok(()) => self.most,
            Err((watched, _)) => watched,
        };
        self.ring.leave(waiter.as_mut(), found).map_err(refused)?;
        self.watchable.insert(name.to_owned(), found as f64);
        Ok(found as f64)
    }

    fn samples(&mut self, case: &Params, keep: &mut dyn FnMut(Sample) -> Go) -> Result<(), Skip> {
        let watchable = self.watchable(case.name("waiter"))?;
        let (pairs, active) = (count(case.number("descriptors")), count(case.number("active")));
        let writes = count(case.number("writes"));
        self.ring.take_first(pairs);
        self.ring.set_partner(case.name("loop") == "block").map_err(refused)?;
        let mut waiter = open(case.name("waiter"), pairs)?;
        let mut events = Events::with_capacity(BATCH);
        let mut is_first = true;
        loop {
            let (cpu, wall) = self.round(waiter.as_mut(), &mut events, pairs, (active, writes))?;
            if std::mem::take(&mut is_first) {
                continue;
            }
            let extra = vec![
                ("wall_ns", wall),
                ("event_ns", cpu / (active + writes) as f64),
                ("watchable", watchable),
                ("ceiling", self.ceiling),
            ];
            if keep(Sample { value: cpu, extra }) == Go::Back {
                return Ok(());
            }
        }
    }

    /// A round: what it took on the CPU and by the clock.
    fn round(
        &mut self,
        waiter: &mut dyn Waiter,
        events: &mut Events,
        pairs: usize,
        (active, writes): (usize, usize),
    ) -> Result<(f64, f64), Skip> {
        if let Err((watched, error)) = self.ring.register(waiter) {
            self.ring.leave(waiter, watched).map_err(refused)?;
            return Err(refused(error));
        }
        waiter.wait(events, Some(std::time::Duration::ZERO)).map_err(refused)?;
        self.ring.begin(active, writes).map_err(refused)?;
        let (began, cpu) = (std::time::Instant::now(), thread_ns());
        let ended = self.ring.run(waiter, events);
        let (cpu, wall) = (thread_ns() - cpu, began.elapsed());
        ended.map_err(refused)?;
        self.ring.leave(waiter, pairs).map_err(refused)?;
        Ok((cpu, wall.as_nanos() as f64))
    }
}

impl Bench for Rounds {
    fn visit(&mut self, case: &Params, keep: &mut dyn FnMut(Sample) -> Go) -> Result<(), Skip> {
        let done = self.samples(case, keep);
        let ended = self.ring.set_partner(false);
        if done.is_err() {
            // Bytes that were not received must not be found by the next case.
            self.ring = Ring::new(self.most).map_err(refused)?;
        }
        done.and(ended.map_err(refused))
    }

    fn watch(
        &mut self,
        case: &Params,
        _: &mut dyn Watch,
    ) -> Result<Vec<(&'static str, f64)>, Skip> {
        // How events are shared out depends neither on the loop nor on what else is active.
        if case.name("loop") != "spin" || case.number("active") != 1 {
            return Ok(Vec::new());
        }
        let pairs = count(case.number("descriptors"));
        self.ring.take_first(pairs);
        let waiter = open(case.name("waiter"), pairs)?;
        let Shares { threads, least, most, lost, empty } = share_out(&self.ring, waiter, pairs)?;
        if threads < 2.0 {
            return Ok(vec![("shares", threads)]);
        }
        Ok(vec![
            ("shares", threads),
            ("share_least", least),
            ("share_most", most),
            ("share_lost", lost),
            ("share_empty", empty),
        ])
    }
}
