//! `accept`: many short connections to several processes, with different strategies to share the
//! work.
//!
//! From article 002: accepting in many processes on one socket degrades instead of scaling, because
//! every connection wakes all of them. Clients are separate processes; for its client, a connection
//! ends when the process that accepted it has closed it.

mod claims;

use std::ops::ControlFlow;
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_stats::quantile;

use crate::harness::cpu_time::used_ns;
use crate::harness::patience::Patience;
use crate::harness::{
    Axis, Claim, Experiment, ExperimentDeclaration, Extra, Fold, Needs, Params, PreparedExperiment,
    Sample, Sampling, Takes, Value, Watch,
};
use crate::herd::accept::claims::accept_share;
use crate::herd::clients::{Clients, Served};
use crate::herd::gate::{Gate, OF_A_PROCESS, Task, check_loopback, probe, refused, waits};
use crate::herd::processes::{Counts, Herd};

/// Descriptors of a process: the listener, a connection, an epoll or a ring, and room.
const DESCRIPTORS: u64 = 16;

/// Maximum number of connections per client while wake-ups are counted.
const WATCHED: usize = 250;

pub(crate) struct Accept;

static DECLARATION: ExperimentDeclaration = ExperimentDeclaration {
    name: "accept",
    summary: "short connections accepted by M processes, for several strategies of sharing the \
        work",
    hypothesis: "on one socket, more processes accept fewer connections a second, because each \
        connection wakes all of them; exclusive wake-ups or one socket each avoid this",
    refuted_by: "as many connections a second with many processes as with one, or no gain from \
        exclusive wake-ups",
    controls: &[
        "the same clients: separate processes that start together",
        "a connection is connect, wait until the other side closes, close; no data",
        "one accept per wake-up; all that there are with an edge trigger, which requires it",
        "127.0.0.1 and a port chosen by the kernel",
        "judged by the CPU time of workers and clients per connection: connections a second \
         depend on other load, and under load more workers get more of the CPUs",
    ],
    metric: "connections accepted a second",
    unit: "1/s",
    extras: &[
        Extra {
            name: "cpu_ns",
            unit: "ns",
            summary: "CPU time of workers and clients per connection",
            fold: Fold::Median,
        },
        Extra {
            name: "wait_p50_ns",
            unit: "ns",
            summary: "median time of a client's connection",
            fold: Fold::Median,
        },
        Extra { name: "wait_p99_ns", unit: "ns", summary: "p99 of the same", fold: Fold::Median },
        Extra {
            name: "wakes",
            unit: "",
            summary: "sleeps of all workers per connection, counted in /proc",
            fold: Fold::Mean,
        },
        Extra {
            name: "wakeups",
            unit: "",
            summary: "wake-ups of all workers per connection, counted by BPF in the kernel",
            fold: Fold::Mean,
        },
        Extra {
            name: "empty",
            unit: "",
            summary: "spurious wake-ups per connection: EAGAIN",
            fold: Fold::Mean,
        },
        Extra {
            name: "gini",
            unit: "",
            summary: "imbalance between the workers: 0 is an equal share for all, near 1 one \
                worker has everything",
            fold: Fold::Mean,
        },
    ],
    axes: &[
        Axis {
            name: "strategy",
            unit: "",
            summary: "how the workers wait; epoll-exclusive-16 moves to the end of the queue \
                after 16 accepts, reuseport is one socket each, epoll-oneshot and event-ports \
                are one set for all, the other waiters one set each",
            takes: Takes::Listed(waits),
            quick: &[Value::S("epoll"), Value::S("epoll-exclusive"), Value::S("reuseport")],
            default: &[],
            full: &[],
        },
        Axis {
            name: "workers",
            unit: "",
            summary: "processes that accept",
            takes: Takes::Numbers(1, 16_384),
            quick: &[Value::N(1), Value::N(8), Value::N(32)],
            default: &[Value::N(1), Value::N(8), Value::N(64)],
            full: &[
                Value::N(1),
                Value::N(2),
                Value::N(4),
                Value::N(8),
                Value::N(16),
                Value::N(32),
                Value::N(64),
                Value::N(128),
                Value::N(256),
            ],
        },
        Axis {
            name: "clients",
            unit: "",
            summary: "processes that connect",
            takes: Takes::Numbers(1, 1_024),
            quick: &[Value::N(4)],
            default: &[Value::N(4)],
            full: &[Value::N(4), Value::N(32)],
        },
        Axis {
            name: "connections",
            unit: "",
            summary: "connections each client makes",
            takes: Takes::Numbers(1, 1_000_000),
            quick: &[Value::N(250)],
            default: &[Value::N(250)],
            full: &[Value::N(2_000)],
        },
    ],
    along: "workers",
    lines: "strategy",
    claims: &[Claim {
        id: "accept-share",
        source: "002",
        text: "accepting in many processes on one socket degrades instead of scaling, unless the \
            wake-up is exclusive or the socket is split",
        judge: accept_share,
    }],
    // One sample per visit: on a loaded machine there are few visits, and a claim needs three.
    sampling: Sampling { a_visit: 1, least: 8, most: 40, tight: 0.03 },
    man: &["accept(2)", "epoll_ctl(2)", "io_uring_enter(2)", "socket(7)"],
};

impl Experiment for Accept {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &DECLARATION
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        probe(case.name("strategy")).map(|_| ())
    }

    fn needs(&self, case: &Params) -> Needs {
        let processes = case.number("workers") + case.number("clients");
        let times = case.number("clients") * case.number("connections") * 8;
        let memory_bytes = processes * OF_A_PROCESS + times;
        Needs { processes, descriptors: DESCRIPTORS, memory_bytes, ..Needs::default() }
    }

    fn prepare(&self, _: &[Params], _: &Folder) -> Result<Box<dyn PreparedExperiment>, Skip> {
        check_loopback()?;
        Ok(Box::new(Loopback::default()))
    }
}

#[derive(Default)]
struct Loopback(Patience);

impl PreparedExperiment for Loopback {
    fn wait_at_most(&mut self, left: Option<Duration>) {
        self.0 = Patience::for_time_left(left);
    }

    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        let gate = Gate::new(probe(case.name("strategy"))?)?;
        let size = |axis: &str| usize::try_from(case.number(axis)).unwrap_or(usize::MAX);
        let herd = gate.herd((size("workers"), 0), self.0)?;
        let both = (&gate, &herd);
        // Warm up caches and wait queues.
        serve(both, (size("clients"), size("connections").div_ceil(10)), self.0)?;
        loop {
            let before = Tally::for_herd(&herd)?;
            let served = serve(both, (size("clients"), size("connections")), self.0)?;
            let after = Tally::for_herd(&herd)?;
            if keep(sample(&served, &before, &after)).is_break() {
                return Ok(());
            }
        }
    }

    fn watch(
        &mut self,
        case: &Params,
        watch: &mut dyn Watch,
    ) -> Result<Vec<(&'static str, f64)>, Skip> {
        let gate = Gate::new(probe(case.name("strategy"))?)?;
        let size = |axis: &str| usize::try_from(case.number(axis)).unwrap_or(usize::MAX);
        let herd = gate.herd((size("workers"), 0), self.0)?;
        let both = (&gate, &herd);
        let connections = size("connections").min(WATCHED);
        serve(both, (size("clients"), connections.div_ceil(10)), self.0)?;
        // The clients start later, and are not counted.
        let wakeups = watch.wakeups().map_err(Skip)?;
        let served = serve(both, (size("clients"), connections), self.0)?;
        let count = wakeups.so_far().map_err(Skip)?;
        Ok(vec![("wakeups", count as f64 / served.times_ns.len() as f64)])
    }
}

/// Lets clients make all their connections.
fn serve(
    (gate, herd): (&Gate, &Herd),
    (clients, connections): (usize, usize),
    patience: Patience,
) -> Result<Served, Skip> {
    let mut clients = Clients::start(gate.address, clients, connections).map_err(refused)?;
    let pause = Duration::from_millis(1);
    let waiting = patience.begin();
    while !clients.is_ready() && !waiting.is_over() {
        std::thread::sleep(pause);
    }
    clients.go();
    while !clients.is_over() {
        herd.check().map_err(refused)?;
        if waiting.is_over() {
            return Err(waiting.in_vain("connections were left unaccepted"));
        }
        std::thread::sleep(pause);
    }
    clients.end().map_err(refused)
}

/// The counters of the workers so far.
struct Tally {
    counts: Vec<Counts>,
    /// How often the workers blocked, in total.
    sleeps: u64,
    /// The CPU time of the workers; `None` if the kernel does not count it.
    used_ns: Option<u64>,
}

impl Tally {
    fn for_herd(herd: &Herd) -> Result<Self, Skip> {
        let mut text = String::new();
        let of = |pid: &i32| {
            let task = Task::for_pid(*pid, &mut text);
            task.map(|task| task.sleeps).ok_or_else(|| Skip("a worker ended by itself".to_owned()))
        };
        let sleeps = herd.pids().iter().map(of).sum::<Result<u64, Skip>>()?;
        Ok(Self { counts: herd.counts(), sleeps, used_ns: used_ns(herd.pids()) })
    }
}

/// Computes the sample from the served connections, and the workers' counters before and after.
fn sample(served: &Served, before: &Tally, after: &Tally) -> Sample {
    let times: Vec<f64> = served.times_ns.iter().map(|time| *time as f64).collect();
    let connections = times.len() as f64;
    let pairs = before.counts.iter().zip(&after.counts);
    let shares: Vec<u64> =
        pairs.map(|(before, after)| after.accepts.saturating_sub(before.accepts)).collect();
    let empty = |tally: &Tally| tally.counts.iter().map(|one| one.empty).sum::<u64>();
    let at = |share: f64| quantile(&times, share).unwrap_or(0.0);
    let of_one = |all: u64| all as f64 / connections;
    let mut extra = vec![
        ("wait_p50_ns", at(0.5)),
        ("wait_p99_ns", at(0.99)),
        ("wakes", of_one(after.sleeps.saturating_sub(before.sleeps))),
        ("empty", of_one(empty(after).saturating_sub(empty(before)))),
        ("gini", gini(shares)),
    ];
    if let Some((before, after)) = before.used_ns.zip(after.used_ns) {
        extra.push(("cpu_ns", of_one(after.saturating_sub(before) + served.cpu_ns)));
    }
    Sample { value: connections / (served.wall_ns as f64 / 1e9), extra }
}

/// Gini's coefficient: half of the mean difference of two shares, divided by their mean.
fn gini(mut shares: Vec<u64>) -> f64 {
    shares.sort_unstable();
    let (count, sum) = (shares.len() as f64, shares.iter().sum::<u64>() as f64);
    if sum == 0.0 {
        return 0.0;
    }
    let ranked = (1..).zip(&shares).map(|(rank, share)| f64::from(rank) * *share as f64);
    (2.0 * ranked.sum::<f64>() / (count * sum) - (count + 1.0) / count).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_that_are_alike_have_no_gini_and_one_that_has_all_the_most() {
        assert_eq!(gini(vec![5, 5, 5, 5]), 0.0);
        assert!((gini(vec![0, 0, 0, 9]) - 0.75).abs() < 1e-12);
        // Half of the mean absolute difference over the mean: (2/4 × 2) / (2 × 2) = 1/4.
        assert!((gini(vec![1, 3]) - 0.25).abs() < 1e-12);
        assert_eq!(gini(vec![0, 0]), 0.0);
        assert_eq!(gini(vec![]), 0.0);
    }

    #[test]
    fn a_sample_is_of_what_was_counted_meanwhile() {
        let times_ns = (1..=100).collect();
        let served = Served { wall_ns: 1_000_000_000, times_ns, cpu_ns: 500_000 };
        let counts = |accepts, empty| Counts { wakes: 0, accepts, empty };
        let tally = |counts: [Counts; 2], sleeps, used| Tally {
            counts: counts.into(),
            sleeps,
            used_ns: Some(used),
        };
        let before = tally([counts(10, 5), counts(0, 0)], 100, 7);
        let after = tally([counts(60, 5), counts(50, 30)], 250, 500_007);
        let found = sample(&served, &before, &after);
        let extra = |name| found.extra.iter().find(|(one, _)| *one == name).unwrap().1;
        assert_eq!(found.value, 100.0);
        assert_eq!((extra("wakes"), extra("empty"), extra("gini")), (1.5, 0.3, 0.0));
        assert_eq!((extra("wait_p50_ns"), extra("cpu_ns")), (50.5, 10_000.0));
    }
}
