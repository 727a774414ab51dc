//! `herd`: what one connection costs where thousands of processes sleep on the same listening socket.
//!
//! From article 002, where connect() to a listener shared by 16,384 processes in select() took 34 ms,
//! and 1.5 s when each had a thousand duplicates of it. A connection over the loopback is made inside
//! connect(): finding the listener, queueing, and waking all who wait there are part of its time.

use std::collections::HashMap;
use std::net::{SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use iotomy_sys::herd::Herd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, retry_on_intr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use super::gate::{Gate, PATIENCE, Task, load, probe, queued_ns, refused};
use super::herd_claims::{herd_dups, herd_exclusive, herd_linear, herd_load};
use super::{
    Axis, Bench, Claim, Declaration, Experiment, Extra, Fold, Go, Needs, Params, Sample, Sampling,
    Takes, Value, Watch,
};
use crate::limits::Skip;
use crate::limits::room::free_memory;
use crate::limits::storage::Folder;

/// Memory a process takes at most, most of it the kernel's: stack, tables and what fork copies.
const OF_A_PROCESS: u64 = 256 << 10;

/// Memory a duplicate takes in a process: its place in the table of descriptors, and what select or
/// poll hang into the socket's queue for it.
const OF_A_DUPLICATE: u64 = 128;

/// The same for epoll, which keeps an entry of its set and its place in the socket's queue.
const OF_A_WATCH: u64 = 320;

/// Descriptors of a process besides the listener and its duplicates.
const SPARE_DESCRIPTORS: u64 = 8;

/// Connections whose wake-ups are counted.
const WATCHED: usize = 3;

pub(super) struct TheHerd;

static DECLARATION: Declaration = Declaration {
    name: "herd",
    summary: "connect() to a listener shared by N sleeping processes",
    hypothesis: "without exclusive wake-ups one connection wakes every process that waits, in time \
                 linear in their number and in the duplicates each waits for",
    refuted_by: "a time that does not grow, or one process woken whatever the way of waiting",
    controls: &[
        "processes by fork, each asleep in its waiter when connect() begins, none besides",
        "connect() without blocking, timed alone; one not counted first",
        "the next connection when all sleep again, as /proc says of each",
        "127.0.0.1 and a port of the kernel's choice",
    ],
    metric: "time of connect()",
    unit: "ns",
    extras: &[
        Extra {
            name: "woken",
            unit: "",
            summary: "processes that went to sleep anew after a connection, as /proc counts it",
            fold: Fold::Mean,
        },
        Extra {
            name: "empty",
            unit: "",
            summary: "of these, how many found nothing to accept",
            fold: Fold::Mean,
        },
        Extra {
            name: "wakeups",
            unit: "",
            summary: "wake-ups of the processes by a connection, as BPF counts them in the kernel",
            fold: Fold::Mean,
        },
        Extra {
            name: "in_vain",
            unit: "",
            summary: "of these wake-ups, how many found nothing to accept",
            fold: Fold::Mean,
        },
        Extra {
            name: "queued",
            unit: "",
            summary: "processes that waited for a CPU, on average until all slept again",
            fold: Fold::Mean,
        },
        Extra {
            name: "quiet_ns",
            unit: "ns",
            summary: "until all slept again, to the length of a look at them",
            fold: Fold::Median,
        },
        Extra { name: "load", unit: "", summary: "load average of a minute", fold: Fold::Mean },
        Extra {
            name: "memory_bytes",
            unit: "bytes",
            summary: "memory of all processes, the kernel's part included",
            fold: Fold::Median,
        },
    ],
    axes: &[
        Axis {
            name: "waiter",
            unit: "",
            summary: "how the processes wait; reuseport: each at a socket of its own",
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
            summary: "how many wait",
            takes: Takes::Numbers(1, 65_536),
            quick: &[Value::N(1), Value::N(64), Value::N(512)],
            // 4,096 with duplicates take seconds a connection.
            default: &[Value::N(1), Value::N(64), Value::N(512), Value::N(1_024)],
            // Those of the article's charts.
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
            summary: "duplicates of the listener in each, waited for too; with select, poll and epoll",
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
            text: "connect() to a listener shared by N sleeping processes takes time linear in N, for \
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
    sampling: Sampling { a_visit: 16, least: 16, most: 64, tight: 0.05 },
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

impl Experiment for TheHerd {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn is_case(&self, case: &Params) -> bool {
        case.number("duplicates") == 0 || ["select", "poll", "epoll"].contains(&case.name("waiter"))
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

    fn prepare(&self, _: &[Params], _: &Folder) -> Result<Box<dyn Bench>, Skip> {
        Ok(Box::new(Loopback))
    }
}

/// Whether the user may have so many descriptors in sets of epoll, all processes together.
fn watches_fit(watches: u64) -> Result<(), Skip> {
    let file = "/proc/sys/fs/epoll/max_user_watches";
    let most = std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse::<u64>().ok());
    match most {
        Some(most) if most < watches => Err(Skip(format!(
            "needs {watches} places in sets of epoll, and fs.epoll.max_user_watches is {most}; sysctl \
             fs.epoll.max_user_watches={}",
            watches.next_power_of_two()
        ))),
        _ => Ok(()),
    }
}

struct Loopback;

/// The herd of a case, at its gate.
fn herd(case: &Params) -> Result<(Gate, Herd), Skip> {
    let gate = Gate::new(probe(case.name("waiter"))?)?;
    let members = usize::try_from(case.number("processes")).unwrap_or(usize::MAX);
    let duplicates = u32::try_from(case.number("duplicates")).unwrap_or(u32::MAX);
    let herd = gate.herd(members, duplicates)?;
    Ok((gate, herd))
}

impl Bench for Loopback {
    fn visit(&mut self, case: &Params, keep: &mut dyn FnMut(Sample) -> Go) -> Result<(), Skip> {
        let before = free_memory("/".as_ref());
        let (gate, herd) = herd(case)?;
        let mut sleepers = Sleepers::of(&herd);
        sleepers.settle()?;
        let memory = before.zip(free_memory("/".as_ref())).map(|(a, b)| a.saturating_sub(b));
        // The first finds caches cold and tables unmade.
        sleepers.connection(gate.address)?;
        loop {
            let mut sample = sleepers.connection(gate.address)?;
            sample.extra.extend(memory.map(|bytes| ("memory_bytes", bytes as f64)));
            if keep(sample) == Go::Back {
                return Ok(());
            }
        }
    }

    /// Wake-ups are counted in a herd of its own: what is timed is not watched.
    fn watch(
        &mut self,
        case: &Params,
        watch: &mut dyn Watch,
    ) -> Result<Vec<(&'static str, f64)>, Skip> {
        let (gate, herd) = herd(case)?;
        let mut sleepers = Sleepers::of(&herd);
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

/// Connections accepted so far.
fn accepts(herd: &Herd) -> u64 {
    herd.counts().iter().map(|one| one.accepts).sum()
}

/// A herd all of which sleeps.
struct Sleepers<'a> {
    herd: &'a Herd,
    /// How often each went to sleep.
    sleeps: HashMap<i32, u64>,
}

impl<'a> Sleepers<'a> {
    fn of(herd: &'a Herd) -> Self {
        Self { herd, sleeps: HashMap::with_capacity(herd.pids().len()) }
    }

    /// Waits until all sleep; how many went to sleep anew since the last time.
    fn settle(&mut self) -> Result<usize, Skip> {
        let (begun, mut text) = (Instant::now(), String::new());
        let mut awake: Vec<i32> = self.herd.pids().to_vec();
        let mut changed = 0;
        while !awake.is_empty() {
            let mut is_gone = false;
            awake.retain(|pid| match Task::of(*pid, &mut text) {
                Some(Task { is_asleep: true, sleeps }) => {
                    changed += usize::from(self.sleeps.insert(*pid, sleeps) != Some(sleeps));
                    false
                }
                Some(_) => true,
                None => {
                    is_gone = true;
                    false
                }
            });
            if is_gone || begun.elapsed() > PATIENCE {
                self.herd.check().map_err(refused)?;
                let what = if is_gone { "a process ended by itself" } else { "it was never quiet" };
                return Err(Skip(what.to_owned()));
            }
        }
        Ok(changed)
    }

    /// Makes a connection and waits until all sleep again.
    fn connection(&mut self, address: SocketAddr) -> Result<Sample, Skip> {
        let SocketAddr::V4(address) = address else {
            return Err(Skip("no address of IPv4".to_owned()));
        };
        let (before, waited) = (accepts(self.herd), queued_ns(self.herd.pids()));
        let (began, took) = connect_and_wait(address)?;
        let woken = self.settle()?;
        let quiet = began.elapsed();
        let accepted = accepts(self.herd).saturating_sub(before);
        let empty = (woken as u64).saturating_sub(accepted);
        let mut extra = vec![
            ("woken", woken as f64),
            ("empty", empty as f64),
            ("quiet_ns", quiet.as_nanos() as f64),
        ];
        extra.extend(load().map(|minute| ("load", minute)));
        if let Some((before, after)) = waited.zip(queued_ns(self.herd.pids())) {
            let waited = after.saturating_sub(before) as f64;
            extra.push(("queued", waited / quiet.as_nanos() as f64));
        }
        Ok(Sample { value: took.as_nanos() as f64, extra })
    }
}

/// Connects without blocking, and waits until the other side has ended the connection: when connect()
/// began, and what it took.
fn connect_and_wait(address: SocketAddrV4) -> Result<(Instant, Duration), Skip> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
        .map_err(|e| Skip::refused("socket", e))?;
    // Closing resets what is left of the connection, so that no port stays taken.
    sockopt::set_socket_linger(&socket, Some(Duration::ZERO))
        .map_err(|e| Skip::refused("setsockopt SO_LINGER", e))?;
    let began = Instant::now();
    let connected = connect(&socket, &address);
    let took = began.elapsed();
    match connected {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(Skip::refused("connect", error)),
    }
    let patience = Timespec::try_from(PATIENCE).ok();
    let mut waits = [PollFd::new(&socket, PollFlags::IN)];
    let ready = retry_on_intr(|| poll(&mut waits, patience.as_ref()));
    match ready.map_err(|e| Skip::refused("poll", e))? {
        0 => Err(Skip("nobody accepted the connection".to_owned())),
        _ => match retry_on_intr(|| read(&socket, &mut [0u8])) {
            Ok(_) => Ok((began, took)),
            Err(error) => Err(Skip::refused("connect", error)),
        },
    }
}
