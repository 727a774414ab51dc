//! `rounds WAITER [DESCRIPTORS [ACTIVE [WRITES [ROUNDS]]]]`: what a waiter costs beside a bare loop of
//! `epoll_wait(2)`, in one run, round by round in random order.
//!
//! The rounds are those of libevent's benchmark: pairs of sockets; in each round all readers are
//! registered anew, and one byte is sent to the ACTIVE ones, none of it timed; then, timed, loops
//! that never sleep until all bytes have been received, where each reader receives one byte and, while
//! there are WRITES left, sends one to the next pair. The time is the thread's on the CPU: nothing
//! sleeps, and what else the machine does is not in it.

use std::error::Error;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use iotomy_stats::order::Random;
use iotomy_stats::{median, shift_interval};
use iotomy_sys::epoll::{Change, EpollEvent, epoll_create1, epoll_ctl, epoll_wait};
use iotomy_waiters::{Events, Interest, Settings, Trigger, Waiter};
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// As many as libevent takes at once at most.
const BATCH: usize = 4096;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The pairs and the state of one round.
struct Ring {
    readers: Vec<UnixStream>,
    writers: Vec<UnixStream>,
    received: usize,
    sent: usize,
    writes: usize,
}

impl Ring {
    fn new(pairs: usize) -> Outcome<Self> {
        let (mut readers, mut writers) = (Vec::new(), Vec::new());
        for _ in 0..pairs {
            let (reader, writer) = UnixStream::pair()?;
            reader.set_nonblocking(true)?;
            readers.push(reader);
            writers.push(writer);
        }
        Ok(Self { readers, writers, received: 0, sent: 0, writes: 0 })
    }

    fn begin(&mut self, active: usize, writes: usize) -> Outcome<()> {
        let space = self.readers.len() / active;
        for at in 0..active {
            send(&self.writers[at * space], b"e", SendFlags::empty())?;
        }
        (self.received, self.sent, self.writes) = (0, active, writes);
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.received == self.sent
    }

    /// A reader was told of; whether it had a byte.
    #[inline]
    fn read(&mut self, at: usize) -> bool {
        if recv(&self.readers[at], &mut [0_u8; 1], RecvFlags::empty()).is_err() {
            return false;
        }
        self.has_read(at);
        true
    }

    #[inline]
    fn has_read(&mut self, at: usize) {
        self.received += 1;
        if self.writes > 0 {
            let next = if at + 1 == self.readers.len() { 0 } else { at + 1 };
            if send(&self.writers[next], b"e", SendFlags::empty()).is_ok() {
                (self.writes, self.sent) = (self.writes - 1, self.sent + 1);
            }
        }
    }
}

/// The loop without anything between it and the kernel.
struct Bare {
    epoll: OwnedFd,
    buffer: Vec<EpollEvent>,
}

impl Bare {
    fn register(&self, ring: &Ring, change: Change) -> Outcome<()> {
        for (at, reader) in ring.readers.iter().enumerate() {
            let event = EpollEvent { events: 1, data: at as u64 };
            epoll_ctl(self.epoll.as_fd(), change, reader.as_raw_fd(), event)?;
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

fn register(waiter: &mut dyn Waiter, ring: &Ring) -> Outcome<()> {
    for (at, reader) in ring.readers.iter().enumerate() {
        waiter.add(reader.as_fd(), Interest::READ, at as u64)?;
    }
    Ok(())
}

fn remove(waiter: &mut dyn Waiter, ring: &Ring) -> Outcome<()> {
    ring.readers.iter().try_for_each(|reader| Ok(waiter.remove(reader.as_fd())?))
}

fn run(waiter: &mut dyn Waiter, events: &mut Events, ring: &mut Ring) -> Outcome<()> {
    let abilities = waiter.declaration().abilities;
    while !ring.is_over() {
        waiter.wait(events, Some(Duration::ZERO))?;
        if abilities.receives {
            for at in 0..events.len() {
                let token = events.as_slice()[at].token as usize;
                events.received(at).iter().for_each(|_| ring.has_read(token));
            }
            continue;
        }
        match abilities.trigger {
            Trigger::Level => events.iter().for_each(|event| _ = ring.read(event.token as usize)),
            Trigger::Edge => {
                events.iter().for_each(|event| while ring.read(event.token as usize) {});
            }
            Trigger::OneShot => {
                for event in &*events {
                    let at = event.token as usize;
                    ring.read(at);
                    waiter.modify(ring.readers[at].as_fd(), Interest::READ, event.token)?;
                }
            }
        }
    }
    Ok(())
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
                register(waiter.as_mut(), &ring)?;
                waiter.wait(&mut events, Some(Duration::ZERO))?;
                ring.begin(active, writes)?;
                let start = now_ns()?;
                run(waiter.as_mut(), &mut events, &mut ring)?;
                let took = now_ns()? - start;
                remove(waiter.as_mut(), &ring)?;
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
    register(waiter, &ring)?;
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
