//! Memory bandwidth: by one thread, and by one thread on each CPU.
//!
//! The one invariant: the memory of a chunk has left every cache since it was last touched. The
//! buffers are far larger than the last-level caches and traversed from end to end, one chunk per
//! sample. They lie in huge pages if possible, so that the memory is measured and not the
//! translation of its addresses.

use std::hint::black_box;
use std::sync::mpsc::{Sender, channel};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use iotomy_host::{Skip, room};
use iotomy_sys::mapping::Pages;

use super::cpus;
use super::limit::{Figure, LimitDeclaration, Scope, Unit};
use super::sampling::{Budget, figure};

pub(super) static LIMITS: &[LimitDeclaration] = &[
    LimitDeclaration {
        name: "memory-read",
        unit: Unit::BytesPerSecond,
        scope: Scope::Machine,
        summary: "memory read by one thread",
        method: "sum over a buffer of 4 times the caches, 1 MiB a sample, one thread",
        man: &["madvise(2)"],
        measure: |_| by_one(Work::Read),
    },
    LimitDeclaration {
        name: "memory-write",
        unit: Unit::BytesPerSecond,
        scope: Scope::Machine,
        summary: "memory written by one thread",
        method: "fill (memset) of a buffer of 4 times the caches, 1 MiB a sample, one thread",
        man: &["memset(3)", "madvise(2)"],
        measure: |_| by_one(Work::Write),
    },
    LimitDeclaration {
        name: "memory-copy",
        unit: Unit::BytesPerSecond,
        scope: Scope::Machine,
        summary: "memory copied by one thread",
        method: "memcpy between two buffers of 4 times the caches, 1 MiB a sample, one thread; counted once",
        man: &["memcpy(3)", "madvise(2)"],
        measure: |_| by_one(Work::Copy),
    },
    LimitDeclaration {
        name: "memory-read-all",
        unit: Unit::BytesPerSecond,
        scope: Scope::Machine,
        summary: "memory read by all CPUs",
        method: "memory-read by a thread on each CPU at once, summed",
        man: &["sched_setaffinity(2)"],
        measure: |_| by_all(Work::Read),
    },
    LimitDeclaration {
        name: "memory-write-all",
        unit: Unit::BytesPerSecond,
        scope: Scope::Machine,
        summary: "memory written by all CPUs",
        method: "memory-write by a thread on each CPU at once, summed",
        man: &["memset(3)", "sched_setaffinity(2)"],
        measure: |_| by_all(Work::Write),
    },
    LimitDeclaration {
        name: "memory-copy-all",
        unit: Unit::BytesPerSecond,
        scope: Scope::Machine,
        summary: "memory copied by all CPUs",
        method: "memory-copy by a thread on each CPU at once, summed; counted once",
        man: &["memcpy(3)", "sched_setaffinity(2)"],
        measure: |_| by_all(Work::Copy),
    },
];

/// The work between two reads of the clock: about 0.1 ms.
const CHUNK: usize = 1 << 20;

/// Buffer size as a multiple of the cache size.
const FACTOR: u64 = 4;
/// A guest may see smaller caches than the real ones, or none.
const LEAST_BYTES: u64 = 128 << 20;
const MOST_BYTES: u64 = 2 << 30;

/// How long the threads on all CPUs work at the same time.
const TOGETHER: Duration = Duration::from_millis(200);
/// More samples than a thread makes in that time.
const MOST_SAMPLES: usize = 1 << 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Read,
    Write,
    Copy,
}

impl Work {
    fn buffers(self) -> usize {
        if self == Self::Copy { 2 } else { 1 }
    }
}

fn by_one(work: Work) -> Result<Figure, Skip> {
    let here = cpus::allowed()?;
    let bytes = buffer_bytes(&cpus::last_level_caches(&here[..here.len().min(1)]));
    room::check_memory(work.buffers() * bytes)?;
    let mut walk = Walk::new(work, bytes)?;
    Budget::LONG.figure(|| Ok(walk.step()))
}

fn by_all(work: Work) -> Result<Figure, Skip> {
    let cpus = cpus::allowed()?;
    let bytes = buffer_bytes(&cpus::last_level_caches(&cpus));
    let share = bytes.div_ceil(cpus.len()).next_multiple_of(CHUNK);
    room::check_memory(work.buffers() * share * cpus.len())?;
    let of_each = at_once(
        &cpus,
        || Walk::new(work, share),
        |walk| Budget { time: TOGETHER, most: MOST_SAMPLES }.samples(|| Ok(walk.step())),
    )?;
    figure(&summed(&of_each))
}

/// Returns the results of `run` on a thread on each CPU. All threads begin at the same moment, when
/// every thread is ready. Each thread creates its own data, so that on a NUMA machine the data is
/// near.
fn at_once<T, R: Send>(
    cpus: &[usize],
    make: impl Fn() -> Result<T, Skip> + Sync,
    run: impl Fn(&mut T) -> Result<R, Skip> + Sync,
) -> Result<Vec<R>, Skip> {
    let gate = RwLock::new(false);
    let (tell, told) = channel();
    let one = |cpu: usize, tell: Sender<bool>| {
        let ready = cpus::stay_on(cpu).and_then(|()| make());
        // The receiver waits for all threads.
        let _ = tell.send(ready.is_ok());
        let is_open = *gate.read().unwrap_or_else(PoisonError::into_inner);
        // A thread that was not let in reports nothing; another one has the reason.
        let mut ready = ready?;
        is_open.then(|| run(&mut ready)).transpose()
    };
    thread::scope(|scope| {
        // The gate stays closed while the lock is held, also on every early return.
        let mut is_open = gate.write().unwrap_or_else(PoisonError::into_inner);
        let mut threads = Vec::with_capacity(cpus.len());
        for &cpu in cpus {
            let (tell, one) = (tell.clone(), &one);
            let thread = thread::Builder::new().spawn_scoped(scope, move || one(cpu, tell));
            threads.push(thread.map_err(|e| Skip::refused("clone", e))?);
        }
        drop(tell);
        *is_open = told.iter().take(threads.len()).all(|is_ready| is_ready);
        drop(is_open);
        let crashed = || Err(Skip("a thread did not end".to_owned()));
        let mut all = Vec::with_capacity(cpus.len());
        for thread in threads {
            all.extend(thread.join().unwrap_or_else(|_| crashed())?);
        }
        Ok(all)
    })
}

/// Returns the sum of the threads' first samples, of their second ones, and so on while all have
/// one.
fn summed(of_each: &[Vec<f64>]) -> Vec<f64> {
    let common = of_each.iter().map(Vec::len).min().unwrap_or(0);
    (0..common).map(|at| of_each.iter().map(|samples| samples[at]).sum()).collect()
}

fn buffer_bytes(caches: &[u64]) -> usize {
    let bytes = caches.iter().sum::<u64>().saturating_mul(FACTOR).clamp(LEAST_BYTES, MOST_BYTES);
    usize::try_from(bytes).map_or(usize::MAX, |bytes| bytes.next_multiple_of(CHUNK))
}

/// A repeated traversal of the buffers.
struct Walk {
    work: Work,
    source: Pages,
    target: Option<Pages>,
    at: usize,
}

impl Walk {
    /// Creates buffers of `bytes` each, a multiple of [`CHUNK`], with every page touched.
    fn new(work: Work, bytes: usize) -> Result<Self, Skip> {
        let touched = || -> Result<Pages, Skip> {
            let mut pages = Pages::new(bytes).map_err(|e| Skip::refused("mmap", e))?;
            // Without huge pages it is somewhat slower, and still the machine's memory.
            let _ = pages.advise_huge_pages(true);
            pages.fill(1);
            Ok(pages)
        };
        let source = touched()?;
        let target = if work == Work::Copy { Some(touched()?) } else { None };
        Ok(Self { work, source, target, at: 0 })
    }

    /// Returns the bytes per second of the next chunk.
    fn step(&mut self) -> f64 {
        let part = self.at..self.at + CHUNK;
        self.at = if part.end + CHUNK > self.source.len() { 0 } else { part.end };
        let begun = Instant::now();
        match (self.work, &mut self.target) {
            (Work::Copy, Some(target)) => {
                target[part.clone()].copy_from_slice(black_box(&self.source[part.clone()]));
                black_box(&target[part]);
            }
            (Work::Write, _) => {
                self.source[part.clone()].fill(black_box(2));
                black_box(&self.source[part]);
            }
            _ => _ = black_box(sum(&self.source[part])),
        }
        // A clock too coarse to measure a chunk must not give an infinite rate.
        CHUNK as f64 / begun.elapsed().as_secs_f64().max(1e-9)
    }
}

/// Sums the words; the compiler turns this into wide loads.
fn sum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_ne_bytes(*word)).fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn buffers_are_far_larger_than_the_caches() {
        assert_eq!(buffer_bytes(&[]), 128 << 20);
        assert_eq!(buffer_bytes(&[32 << 20]), 128 << 20);
        assert_eq!(buffer_bytes(&[96 << 20, 32 << 20]), 512 << 20);
        assert_eq!(buffer_bytes(&[u64::MAX >> 1]), 2 << 30);
    }

    #[test]
    fn the_walk_comes_back_to_the_start_and_does_its_work() {
        let mut walk = Walk::new(Work::Copy, 2 * CHUNK).unwrap();
        walk.source[CHUNK] = 7;
        assert!(walk.step() > 0.0 && walk.step() > 0.0);
        assert_eq!((walk.at, walk.target.as_ref().unwrap()[CHUNK]), (0, 7));
        let mut walk = Walk::new(Work::Write, CHUNK).unwrap();
        walk.step();
        assert!(walk.source.iter().all(|byte| *byte == 2));
        assert_eq!(sum(&[1; 64]), 8 * 0x0101_0101_0101_0101);
    }

    #[test]
    fn threads_begin_together_or_not_at_all() {
        let cpus = cpus::allowed().unwrap();
        let made = AtomicUsize::new(0);
        let make = || Ok(made.fetch_add(1, Ordering::Relaxed));
        let seen = at_once(&cpus, make, |_| Ok(made.load(Ordering::Relaxed))).unwrap();
        assert_eq!(seen, vec![cpus.len(); cpus.len()]);
        let make = || match made.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => Ok(()),
            _ => Err(Skip("no room".to_owned())),
        };
        let run = |_: &mut ()| -> Result<(), Skip> { panic!("one began alone") };
        made.store(1, Ordering::Relaxed);
        assert_eq!(at_once(&cpus, make, run), Err(Skip("no room".to_owned())));
    }

    #[test]
    fn threads_are_summed_as_far_as_all_have_samples() {
        assert_eq!(summed(&[vec![1.0, 2.0, 9.0], vec![10.0, 20.0]]), [11.0, 22.0]);
        assert!(summed(&[]).is_empty());
    }
}
