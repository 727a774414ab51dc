//! `rounds WAITER [DESCRIPTORS [ACTIVE [WRITES [ROUNDS]]]]`: what a waiter costs beside a bare loop of
//! `epoll_wait(2)`, in one run, round by round in random order.
//!
//! The rounds are those of libevent's benchmark ([`iotomy_waiters::rounds`]). The time is the thread's on the CPU: nothing
//! sleeps, and what else the machine does is not in it.

use std::error::Error;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use iotomy_stats::order::Random;
use iotomy_stats::{median, shift_interval};
use iotomy_sys::epoll::{Change, EpollEvent, epoll_create1, epoll_ctl, epoll_wait};
use iotomy_waiters::rounds::Ring;
use iotomy_waiters::{Events, Settings, Waiter};

/// As many as libevent takes at once at most.
const BATCH: usize = 4096;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The loop without anything between it and the kernel.
struct Bare {
    epoll: OwnedFd,
    buffer: Vec<EpollEvent>,
}

impl Bare {
    fn register(&self, ring: &Ring, change: Change) -> Outcome<()> {
        for at in 0..ring.pairs() {
            let event = EpollEvent { events: 1, data: at as u64 };
            epoll_ctl(self.epoll.as_fd(), change, ring.reader(at).as_raw_fd(), event)?;
        }
        Ok(())
    }

    fn run(&mut self, ring: &mut Ring) -> Outcome<()> {
        while !ring.is_over() {
            let found = epoll_wait(self.epoll.as_fd(), &mut self.buffer, 0)?;
            for event in &self.buffer[..found] {
                ring.read(event.data as usize);
            }
        }
        Ok(())
    }
}

fn main() -> Outcome<()> {
    let mut words = std::env::args().skip(1);
    let name =
        words.next().ok_or("usage: rounds WAITER [DESCRIPTORS [ACTIVE [WRITES [ROUNDS]]]]")?;
    let mut number = |otherwise| words.next().map_or(Ok(otherwise), |word| word.parse::<usize>());
    let (pairs, active, writes) = (number(100)?, number(1)?, number(100)?);
    let rounds = number(25)?;
    raise_descriptors()?;

    let declaration = iotomy_waiters::waiter(&name).ok_or("no such waiter")?;
    let mut waiter = (declaration.open)(&Settings { descriptors: pairs, ..Settings::default() })?;
    if declaration.calls.wait.is_empty() {
        return by_nothing(waiter.as_mut(), pairs, rounds);
    }
    let mut ring = Ring::new(pairs)?;
    let mut events = Events::with_capacity(BATCH);
    let mut bare = Bare { epoll: epoll_create1()?, buffer: vec![EpollEvent::default(); BATCH] };
    let mut random = Random::new(1);
    let mut times = [Vec::new(), Vec::new()];
    // The first round of each is for warming up.
    for round in 0..=rounds {
        let first = usize::from(random.coin());
        for which in [first, 1 - first] {
            let took = if which == 0 {
                bare.register(&ring, Change::Add)?;
                epoll_wait(bare.epoll.as_fd(), &mut bare.buffer, 0)?;
                ring.begin(active, writes)?;
                let start = now_ns()?;
                bare.run(&mut ring)?;
                let took = now_ns()? - start;
                bare.register(&ring, Change::Remove)?;
                took
            } else {
                ring.register(waiter.as_mut()).map_err(|(_, error)| error)?;
                waiter.wait(&mut events, Some(Duration::ZERO))?;
                ring.begin(active, writes)?;
                let start = now_ns()?;
                ring.run(waiter.as_mut(), &mut events)?;
                let took = now_ns()? - start;
                ring.leave(waiter.as_mut(), pairs)?;
                took
            };
            if round > 0 {
                times[which].push(took as f64);
            }
        }
    }
    report(&name, [pairs, active, writes], &times);
    Ok(())
}

fn report(name: &str, [pairs, active, writes]: [usize; 3], [bare, ours]: &[Vec<f64>; 2]) {
    let middle = |samples: &[f64]| median(samples).unwrap_or(f64::NAN);
    let logs: Vec<_> = ours.iter().zip(bare).map(|(ours, bare)| (ours / bare).ln()).collect();
    let differences: Vec<_> = ours.iter().zip(bare).map(|(ours, bare)| ours - bare).collect();
    let events = (active + writes) as f64;
    let interval = |samples: &[f64]| {
        shift_interval(samples, 0.05).map_or((f64::NAN, f64::NAN), |i| (i.low, i.high))
    };
    let (low, high) = interval(&logs);
    let (less, more) = interval(&differences);
    println!(
        "{name:>15}  n={pairs} a={active} w={writes}: {:.1} us, bare {:.1} us, ratio {:.3} [{:.3}, {:.3}], \
         {:+.1} [{:+.1}, {:+.1}] ns an event",
        middle(ours) / 1e3,
        middle(bare) / 1e3,
        middle(&logs).exp(),
        low.exp(),
        high.exp(),
        middle(&differences) / events,
        less / events,
        more / events,
    );
}

/// What the trait costs an event by itself: batches of `null` against a loop over the same tokens.
fn by_nothing(waiter: &mut dyn Waiter, pairs: usize, rounds: usize) -> Outcome<()> {
    let (ring, mut events) = (Ring::new(pairs)?, Events::with_capacity(BATCH));
    ring.register(waiter).map_err(|(_, error)| error)?;
    let tokens: Vec<u64> = (0..pairs as u64).collect();
    let mut times = [Vec::new(), Vec::new()];
    const WAITS: usize = 10_000;
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..WAITS {
            std::hint::black_box(&tokens).iter().for_each(|token| _ = std::hint::black_box(*token));
        }
        times[0].push(start.elapsed().as_secs_f64() * 1e9 / WAITS as f64);
        let start = Instant::now();
        for _ in 0..WAITS {
            waiter.wait(&mut events, None)?;
            events.iter().for_each(|event| _ = std::hint::black_box(event.token));
        }
        times[1].push(start.elapsed().as_secs_f64() * 1e9 / WAITS as f64);
    }
    report("null", [pairs, pairs, 0], &times);
    Ok(())
}

/// The thread's time on the CPU.
fn now_ns() -> Outcome<u64> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Ok(u64::try_from(now.tv_sec)? * 1_000_000_000 + u64::try_from(now.tv_nsec)?)
}

fn raise_descriptors() -> Outcome<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
