//! The watched process: requests that are handed on through 256 threads and back, so that each call finds little of what
//! an observer keeps in the caches.
//!
//! A thread serves the one before it and asks the one behind it, over one of eight connections to each: a lap takes a
//! request from the first thread to the last and the answers back. Before each write, the thread walks through memory:
//! twice the last-level cache in all. A row of a thread is used twice in a lap, in which several times that cache is
//! walked through; one of a descriptor in every eighth lap.
//!
//! All threads are on one CPU, before all other work of it (`SCHED_FIFO`), and go on only where another one blocks. What
//! is between two walks is timed: a write, the entry of a read, a switch, and the return of a read in the next thread.
//!
//! The first laps are without walks: they make the rows. The last of these has walks, but is not timed: it leaves the
//! caches as every other lap does.

use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::child::{die_with_parent, own_path};
use crate::cpus;
use crate::servers::in_path;
use crate::stats;

/// Threads that serve; the first only asks.
pub(crate) const THREADS: usize = 256;
/// Connections between neighbours.
const CONNECTIONS: usize = 8;
/// Descriptors of connections.
pub(crate) const DESCRIPTORS: usize = THREADS * CONNECTIONS * 2;
/// Laps that come first, and those that are timed.
const WARM_LAPS: usize = 32 * CONNECTIONS;
const LAPS: usize = CONNECTIONS;
/// Writes of a lap, each with a walk before it, and of a run.
const LAP_WRITES: usize = 2 * THREADS;
pub(crate) const WRITES: u64 = ((WARM_LAPS + LAPS) * LAP_WRITES) as u64;
/// What is timed in a run.
pub(crate) const TIMED: usize = LAPS * LAP_WRITES;
/// A write and a read are timed together.
const CALLS: f64 = 2.0;
const STACK_BYTES: usize = 128 << 10;
/// Where the kernel does not tell the size of the caches.
const LIKELY_LAST: usize = 64 << 20;
const LIKELY_OWN: usize = 2 << 20;
/// Numbers of a line of the caches.
const LINE: usize = 64 / size_of::<u64>();

/// Options of the subject.
#[derive(Debug, clap::Args)]
pub(crate) struct ColdArgs {
    #[arg(long)]
    cpu: usize,
    #[arg(long)]
    result: PathBuf,
}

/// Returns the command that makes the laps on `cpu` and writes their times to `result`.
pub(super) fn argv(cpu: usize, result: &Path) -> Result<Vec<String>> {
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is not UTF-8");
    let (own, result) = (text(&own_path()?)?, format!("--result={}", text(result)?));
    // By its path: bpftrace wants one that is in no other directory of PATH.
    let chrt = text(&in_path("chrt").context("chrt is not installed")?)?;
    let words = [&*chrt, "--fifo", "1", &own, "trace", "cold", &format!("--cpu={cpu}"), &result];
    Ok(words.map(str::to_owned).to_vec())
}

/// Returns ns per call, from the subject's output.
pub(super) fn read_result(result: &Path) -> Result<f64> {
    let text = fs::read_to_string(result).context("cannot read the subject's result")?;
    let timed: Vec<f64> = text.lines().filter_map(|ns| ns.parse().ok()).collect();
    ensure!(timed.len() == TIMED, "the subject did not end its laps");
    Ok(stats::median_or_nan(&timed) / CALLS)
}

/// Makes the laps.
pub(crate) fn run(args: &ColdArgs) -> Result<()> {
    die_with_parent()?;
    cpus::stay_on(args.cpu)?;
    allow_descriptors()?;
    let place = args.result.with_extension("socket");
    let _ = fs::remove_file(&place);
    let listener = UnixListener::bind(&place).context("cannot listen")?;
    let mut threads: Vec<Neighbours> = (0..=THREADS).map(|_| Neighbours::default()).collect();
    for at in 0..THREADS {
        for _ in 0..CONNECTIONS {
            threads[at].next.push(UnixStream::connect(&place).context("cannot connect")?);
            threads[at + 1].previous.push(listener.accept().context("cannot accept")?.0);
        }
    }
    fs::remove_file(&place).context("cannot remove a socket")?;

    let memory = Memory::new();
    let [first, others @ ..] = &threads[..] else { bail!("no threads") };
    std::thread::scope(|scope| {
        let mut running = Vec::new();
        for one in others {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let body = || (0..WARM_LAPS + LAPS).try_for_each(|lap| one.hand_on(lap, &memory));
            running.push(thread.spawn_scoped(scope, body).context("cannot start a thread")?);
        }
        for lap in 0..WARM_LAPS + LAPS {
            memory.is_walked.store(lap + 1 >= WARM_LAPS, Ordering::Relaxed);
            memory.is_timed.store(lap >= WARM_LAPS, Ordering::Relaxed);
            first.hand_on(lap, &memory)?;
        }
        for thread in running {
            match thread.join() {
                Ok(done) => done?,
                Err(_) => bail!("a thread panicked"),
            }
        }
        Ok(())
    })?;
    let text: String = memory.timed().iter().map(|ns| format!("{ns}\n")).collect();
    fs::write(&args.result, text).context("cannot write the subject's result")
}

/// Raises the limit on descriptors, if it has to be.
fn allow_descriptors() -> Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let needed = DESCRIPTORS as u64 + 64;
    if current.is_some_and(|current| current < needed) {
        let limit = Rlimit { current: Some(needed), maximum: maximum.map(|most| most.max(needed)) };
        setrlimit(Resource::Nofile, limit).context("cannot raise the limit on descriptors")?;
    }
    Ok(())
}

/// The connections of a thread; the first has none to serve, and the last none to ask.
#[derive(Debug, Default)]
struct Neighbours {
    previous: Vec<UnixStream>,
    next: Vec<UnixStream>,
}

impl Neighbours {
    /// Takes the request of a lap, hands it on, waits for the answer and gives it back.
    fn hand_on(&self, lap: usize, memory: &Memory) -> Result<()> {
        let [previous, next] = [&self.previous, &self.next].map(|all| all.get(lap % CONNECTIONS));
        let mut byte = [0; 1];
        let mut take = |stream: &UnixStream| {
            let count = rustix::io::read(stream, &mut byte).context("cannot read")?;
            ensure!(count == 1, "a thread has gone");
            Ok(())
        };
        let give = |stream: &UnixStream| {
            memory.walk();
            let count = rustix::io::write(stream, b".").context("cannot write")?;
            ensure!(count == 1, "a byte was not written");
            Ok(())
        };
        previous.map_or(Ok(()), &mut take)?;
        next.map_or(Ok(()), give)?;
        next.map_or(Ok(()), &mut take)?;
        previous.map_or(Ok(()), give)
    }
}

/// Memory that is twice as large as the last-level cache, and where the next walk through it begins.
struct Memory {
    numbers: Vec<u64>,
    /// Numbers that a walk goes over.
    step: usize,
    at: AtomicUsize,
    is_walked: AtomicBool,
    is_timed: AtomicBool,
    began: Instant,
    /// When the last walk ended, since `began`.
    left_ns: AtomicU64,
    /// The times between two walks, and their number.
    between_ns: Vec<AtomicU64>,
    count: AtomicUsize,
}

impl Memory {
    fn new() -> Self {
        let (own, last) = caches();
        let number = size_of::<u64>();
        // In a lap, four times the last-level cache; in each walk, twice the CPU's own.
        let step = (4 * last / (2 * THREADS)).max(2 * own) / number;
        Self::of((2 * last / number).div_ceil(step), step)
    }

    /// Creates memory for so many walks over `step` numbers each.
    fn of(walks: usize, step: usize) -> Self {
        Self {
            numbers: (0..(walks * step) as u64).collect(),
            step,
            at: AtomicUsize::new(0),
            is_walked: AtomicBool::new(false),
            is_timed: AtomicBool::new(false),
            began: Instant::now(),
            left_ns: AtomicU64::new(0),
            between_ns: (0..TIMED).map(|_| AtomicU64::new(0)).collect(),
            count: AtomicUsize::new(0),
        }
    }

    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Returns the times between two walks, in ns.
    fn timed(&self) -> Vec<u64> {
        let all = self.between_ns.iter().map(|ns| ns.load(Ordering::Relaxed));
        all.take(self.count.load(Ordering::Relaxed)).collect()
    }

    fn walk(&self) {
        if !self.is_walked.load(Ordering::Relaxed) {
            return;
        }
        if self.is_timed.load(Ordering::Relaxed) {
            let ns = self.now_ns() - self.left_ns.load(Ordering::Relaxed);
            let place = self.between_ns.get(self.count.fetch_add(1, Ordering::Relaxed));
            place.inspect(|place| place.store(ns, Ordering::Relaxed));
        }
        let at = self.at.fetch_add(self.step, Ordering::Relaxed) % self.numbers.len();
        let lines = self.numbers[at..at + self.step].iter().step_by(LINE);
        std::hint::black_box(lines.fold(0u64, |sum, number| sum.wrapping_add(*number)));
        self.left_ns.store(self.now_ns(), Ordering::Relaxed);
    }
}

/// Returns the bytes of the CPU's own largest cache, and of the last-level cache.
fn caches() -> (usize, usize) {
    let folder = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let mut sizes: Vec<(u32, usize)> = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let text = |name| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let level = text("level").trim().parse().ok();
        sizes.extend(level.zip(bytes(&text("size"))));
    }
    let of_level = |level| sizes.iter().filter(move |one| one.0 == level).map(|one| one.1).max();
    let last = sizes.iter().max().map_or(LIKELY_LAST, |one| one.1);
    (of_level(2).unwrap_or(LIKELY_OWN), last)
}

/// Parses `2048K`.
fn bytes(size: &str) -> Option<usize> {
    let (number, unit) = size.trim().split_at_checked(size.trim().len().checked_sub(1)?)?;
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    Some(number.parse::<usize>().ok()? << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_caches_are_read() {
        assert_eq!(bytes("2048K\n"), Some(2 << 20));
        assert_eq!(bytes("1M"), Some(1 << 20));
        assert_eq!(bytes(""), None);
        let (own, last) = caches();
        assert!(own > 0 && own <= last);
    }

    #[test]
    fn a_walk_goes_on_where_the_last_one_ended() {
        let memory = Memory::of(2, 32);
        memory.walk();
        assert_eq!(memory.at.load(Ordering::Relaxed), 0, "the laps that make rows have no walks");
        memory.is_walked.store(true, Ordering::Relaxed);
        for _ in 0..3 {
            memory.walk();
        }
        assert_eq!(memory.at.load(Ordering::Relaxed), 96);
        assert!(memory.timed().is_empty());
        memory.is_timed.store(true, Ordering::Relaxed);
        memory.walk();
        assert_eq!(memory.timed().len(), 1);
    }

    #[test]
    fn a_request_goes_through_every_thread_and_back() {
        let mut threads: Vec<Neighbours> = (0..4).map(|_| Neighbours::default()).collect();
        for at in 0..3 {
            for _ in 0..CONNECTIONS {
                let (one, other) = UnixStream::pair().unwrap();
                threads[at].next.push(one);
                threads[at + 1].previous.push(other);
            }
        }
        let memory = Memory::of(1, 8);
        std::thread::scope(|scope| {
            for one in &threads {
                scope.spawn(|| (0..20).for_each(|lap| one.hand_on(lap, &memory).unwrap()));
            }
        });
    }
}
