//! The threads of a pool, and the runs of tasks that they do.
//!
//! The one invariant: a run is over when as many tasks were done as it has; nothing is posted
//! beyond that, so the next run begins with an empty queue.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use iotomy_host::Skip;
use iotomy_ports::PortCounts;

use crate::concurrency::pools::Pool;
use crate::concurrency::{EVERY, OF_A_THREAD};
use crate::harness::Sample;
use crate::harness::cpu_time::used_ns;
use crate::harness::patience::Patience;

/// Passes of a task over its thread's memory.
const PASSES: usize = 8;

/// Threads that do tasks until they are dropped.
pub(super) struct Crew {
    work: Arc<Work>,
    threads: Vec<JoinHandle<()>>,
    ids: Vec<i32>,
}

/// What the threads share.
struct Work {
    pool: Box<dyn Pool>,
    pause: Duration,
    /// Whom the last task of a run wakes.
    boss: Thread,
    began: Instant,
    /// Tasks of the run.
    all: AtomicUsize,
    posted: AtomicUsize,
    done: AtomicUsize,
    /// When the last one was done, in ns.
    ended_ns: AtomicU64,
    computing: AtomicUsize,
    most_computing: AtomicUsize,
    /// By thread: its id, and the tasks that it did.
    ids: Vec<AtomicU64>,
    tasks: Vec<AtomicUsize>,
}

impl Crew {
    /// Starts threads at a pool.
    pub(super) fn start(
        pool: Box<dyn Pool>,
        threads: usize,
        pause: Duration,
    ) -> Result<Self, Skip> {
        let work = Arc::new(Work {
            pool,
            pause,
            boss: thread::current(),
            began: Instant::now(),
            all: AtomicUsize::new(0),
            posted: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            ended_ns: AtomicU64::new(0),
            computing: AtomicUsize::new(0),
            most_computing: AtomicUsize::new(0),
            ids: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            tasks: (0..threads).map(|_| AtomicUsize::new(0)).collect(),
        });
        let mut crew = Self { work, threads: Vec::with_capacity(threads), ids: Vec::new() };
        for at in 0..threads {
            let work = crew.work.clone();
            let started = thread::Builder::new().name("pool".into()).spawn(move || work.serve(at));
            crew.threads.push(started.map_err(|e| Skip::refused("clone", e))?);
        }
        for id in &crew.work.ids {
            while id.load(Ordering::Acquire) == 0 {
                thread::park_timeout(Duration::from_millis(1));
            }
        }
        let ids = crew.work.ids.iter().map(|id| id.load(Ordering::Acquire));
        crew.ids = ids.filter_map(|id| i32::try_from(id).ok()).collect();
        Ok(crew)
    }

    /// Does so many tasks, no more of them at once than there are clients.
    pub(super) fn run(
        &self,
        clients: usize,
        tasks: usize,
        patience: Patience,
    ) -> Result<Sample, Skip> {
        let work = &*self.work;
        work.tasks.iter().for_each(|of_thread| of_thread.store(0, Ordering::Relaxed));
        work.most_computing.store(0, Ordering::Relaxed);
        work.done.store(0, Ordering::Relaxed);
        work.all.store(tasks, Ordering::Relaxed);
        let first = clients.min(tasks);
        work.posted.store(first, Ordering::Release);
        let before = Tally::of(self)?;
        let waiting = patience.begin();
        let began = work.began.elapsed();
        (0..first).for_each(|task| work.pool.post(task));
        while work.done.load(Ordering::Acquire) < tasks {
            thread::park_timeout(waiting.left());
            if waiting.is_over() && work.done.load(Ordering::Acquire) < tasks {
                return Err(waiting.in_vain("tasks were left undone"));
            }
        }
        let ended = Duration::from_nanos(work.ended_ns.load(Ordering::Acquire));
        let after = Tally::of(self)?;
        let wall = ended.saturating_sub(began).as_secs_f64();
        let value = tasks as f64 / wall.max(f64::MIN_POSITIVE);
        Ok(Sample { value, extra: self.extras(tasks, &before, &after) })
    }

    fn extras(&self, tasks: usize, before: &Tally, after: &Tally) -> Vec<(&'static str, f64)> {
        let work = &*self.work;
        let of_a_task = |count: u64| count as f64 / tasks as f64;
        let voluntary = after.sleeps.saturating_sub(before.sleeps);
        let preempted = after.preemptions.saturating_sub(before.preemptions);
        let used = work.tasks.iter().filter(|tasks| tasks.load(Ordering::Relaxed) > 0).count();
        let mut extras = vec![
            ("switches", of_a_task(voluntary + preempted)),
            ("wakes", of_a_task(voluntary)),
            ("used", used as f64),
            ("computing", work.most_computing.load(Ordering::Relaxed) as f64),
        ];
        if let Some((before, after)) = before.used_ns.zip(after.used_ns) {
            extras.push(("cpu_ns", of_a_task(after.saturating_sub(before))));
        }
        if let Some(port) = work.pool.port() {
            let (before, after) = (before.port, after.port);
            let pauses = if work.pause.is_zero() { 0 } else { tasks / EVERY };
            let found = (after.blocked - before.blocked) as f64;
            extras.push(("released", of_a_task(after.woken - before.woken)));
            extras.push(("looks", of_a_task(after.looks - before.looks)));
            extras.push(("found", found / pauses.max(1) as f64));
            extras.push(("value", port.concurrency() as f64));
            extras.push(("exact", f64::from(u8::from(port.watch().is_exact()))));
        }
        extras
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.work.pool.close();
        for thread in self.threads.drain(..) {
            // It returns nothing; its panic was printed.
            let _ = thread.join();
        }
    }
}

impl Work {
    /// What a thread does.
    fn serve(&self, at: usize) {
        let mut memory = vec![1_u64; OF_A_THREAD / size_of::<u64>()];
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        self.ids[at].store(u64::from(id.unsigned_abs()), Ordering::Release);
        while let Some(task) = self.pool.get() {
            self.compute(&mut memory);
            if task % EVERY == EVERY - 1 && !self.pause.is_zero() {
                thread::sleep(self.pause);
            }
            self.tasks[at].fetch_add(1, Ordering::Relaxed);
            let next = self.posted.fetch_add(1, Ordering::AcqRel);
            let all = self.all.load(Ordering::Relaxed);
            if next < all {
                self.pool.post(next);
            }
            let now = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.ended_ns.fetch_max(now, Ordering::AcqRel);
            if self.done.fetch_add(1, Ordering::AcqRel) + 1 == all {
                self.boss.unpark();
            }
        }
    }

    fn compute(&self, memory: &mut [u64]) {
        let now = self.computing.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_computing.fetch_max(now, Ordering::Relaxed);
        for _ in 0..PASSES {
            let mut last = 0;
            for word in &mut *memory {
                last ^= *word;
                *word = last.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
        }
        black_box(&mut *memory);
        self.computing.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The kernel's counts of the threads so far, and the port's.
struct Tally {
    sleeps: u64,
    preemptions: u64,
    /// `None` if the kernel does not count it.
    used_ns: Option<u64>,
    port: PortCounts,
}

impl Tally {
    fn of(crew: &Crew) -> Result<Self, Skip> {
        let (mut sleeps, mut preemptions) = (0, 0);
        for id in &crew.ids {
            let status = iotomy_host::kernel_text(format!("/proc/self/task/{id}/status"));
            let status = status.map_err(|e| Skip::refused("read of /proc/self/task", e))?;
            let (slept, preempted) = switches(&status)
                .ok_or_else(|| Skip("the kernel does not count context switches".to_owned()))?;
            (sleeps, preemptions) = (sleeps + slept, preemptions + preempted);
        }
        let port = crew.work.pool.counts();
        Ok(Self { sleeps, preemptions, used_ns: used_ns(&crew.ids), port })
    }
}

/// The context switches of a thread: those in which it went to sleep, and the others.
fn switches(status: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    Some((field("voluntary_ctxt_switches:")?, field("nonvoluntary_ctxt_switches:")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concurrency::pools::{PLAIN, PORT, pool};

    fn extra(sample: &Sample, name: &str) -> Option<f64> {
        sample.extra.iter().find(|(one, _)| *one == name).map(|(_, value)| *value)
    }

    #[test]
    fn every_task_is_done_once_whatever_the_pool() {
        for name in [PLAIN, PORT] {
            let crew =
                Crew::start(pool(name, None).unwrap(), 5, Duration::from_micros(200)).unwrap();
            for tasks in [1, 64, 256] {
                let sample = crew.run(16, tasks, Patience::default()).unwrap();
                let done = crew.work.tasks.iter().map(|tasks| tasks.load(Ordering::Relaxed));
                assert_eq!(done.sum::<usize>(), tasks, "{name}");
                assert!(
                    sample.value > 0.0 && extra(&sample, "switches") >= extra(&sample, "wakes")
                );
                let used = extra(&sample, "used").unwrap();
                assert!((1.0..=5.0).contains(&used), "{name}: {used}");
                let computing = extra(&sample, "computing").unwrap();
                assert!((1.0..=5.0).contains(&computing), "{name}: {computing}");
                assert_eq!(extra(&sample, "exact"), (name == PORT).then_some(0.0));
            }
        }
    }

    #[test]
    fn context_switches_are_read_as_the_kernel_writes_them() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(switches(status), Some((17, 3)));
        assert_eq!(switches("Name:\ta\n"), None);
    }
}
