//! The runs: blocks in which every observer watches every subject, in random order.
//!
//! The overhead of an observer is a difference between neighbouring runs: its run minus the bare
//! run of the same block, subject and number of calls. Drift from block to block is in both figures
//! and cancels out. A disturbance of a single run only makes it slower; therefore a block makes
//! several runs of each kind, and the fastest represents the block.
//!
//! The difficulty is other activity on the machine. Another user's program on a system-call
//! tracepoint slows every process, including the bare ones, and a busy neighbour may share the
//! core. A run waits until there is neither, but only for a limited time; the runs that had to
//! start anyway are counted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use libbpf_rs::query::ProgInfoIter;
use rustix::fs::MemfdFlags;

use crate::child::{Signals, guarded};
use crate::floor::Floor;
use crate::order::Order;
use crate::scratch::Scratch;
use crate::trace::observer::{CountedCall, Length, Observer};
use crate::trace::subject::{DD_BLOCK, Subject};

/// The reads and writes of the whole memory file.
const DD_CALLS: u64 = 2 * 65_536;
/// A bare full run of getppid must take at least 100 ms; the goal is slightly higher.
const FULL_NS: f64 = 120e6;
/// A run of 1.4 s at 88 µs per call, which strace needed on the slowest machine so far.
const SHORT_CALLS: u64 = 16_384;
/// Number of consecutive failures after which an observer is no longer measured.
const PATIENCE: u32 = 2;
/// Runs of an item in a block. For short runs, the overhead is far too large for noise to matter.
const REPEATS: usize = 3;
/// The longest time that a run waits for a quiet machine.
const RUN_PATIENCE: Duration = Duration::from_millis(500);
/// The longest total waiting time of all runs of a bench.
const BENCH_PATIENCE: Duration = Duration::from_secs(60);
/// The duration without other activity after which a machine is considered quiet.
const QUIET: Duration = Duration::from_millis(10);

/// One kind of run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) subject: Subject,
    pub(crate) length: Length,
    pub(crate) observer: Observer,
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) ns_per_call: f64,
    pub(crate) seen: Option<CountedCall>,
}

/// All measurements, by item and block.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) samples: BTreeMap<Item, Vec<Option<Sample>>>,
    /// ns per call of all runs; the samples are the fastest of each block.
    pub(crate) all_runs: BTreeMap<Item, Vec<f64>>,
    pub(crate) calls: BTreeMap<(Subject, Length), u64>,
    /// The reason why an observer is not, or no longer, measured.
    pub(crate) skipped: BTreeMap<(Subject, Observer), String>,
    pub(crate) runs: u64,
    /// Runs that started while other users' watchers or busy processes were active.
    pub(crate) disturbed: u64,
}

/// The environment of runs.
pub(crate) struct Rounds<'a> {
    pub(crate) signals: &'a Signals,
    pub(crate) iotomy: String,
    pub(crate) folder: &'a Scratch,
    empty: Option<Floor>,
    clock: Option<Floor>,
    memory: File,
    cpu: usize,
    failures: BTreeMap<(Subject, Observer), u32>,
    patience: Duration,
    pub(crate) measured: Measured,
}

impl<'a> Rounds<'a> {
    /// Determines the observers that can be measured, and the number of calls for each.
    pub(crate) fn prepare(
        signals: &'a Signals,
        iotomy: String,
        folder: &'a Scratch,
    ) -> Result<Self> {
        std::fs::write(folder.path().join("script.bt"), crate::trace::observer::BPFTRACE_SCRIPT)
            .context("cannot write the script of bpftrace")?;
        let mut measured = Measured::default();
        let empty = Floor::empty();
        let clock = Floor::clock();
        let blank = folder.path().to_string_lossy().contains(char::is_whitespace);
        for subject in Subject::ALL {
            for observer in Observer::ALL {
                let mut reason = observer.version().and_then(Result::err);
                if let (Observer::Empty, Err(error), _) | (Observer::Clock, _, Err(error)) =
                    (observer, &empty, &clock)
                {
                    reason = Some(format!("{error:#}"));
                } else if observer == Observer::Bpftrace && blank {
                    reason = Some("it cannot run a command with blanks in its path".to_owned());
                }
                if let Some(reason) = reason {
                    measured.skipped.insert((subject, observer), reason);
                }
            }
        }
        let mut rounds = Self {
            signals,
            iotomy,
            folder,
            empty: empty.ok(),
            clock: clock.ok(),
            memory: memory_file()?,
            cpu: crate::cpus::last()?,
            failures: BTreeMap::new(),
            patience: BENCH_PATIENCE,
            measured,
        };
        rounds.choose_lengths()?;
        Ok(rounds)
    }

    fn choose_lengths(&mut self) -> Result<()> {
        let pilot =
            Item { subject: Subject::Getppid, length: Length::Full, observer: Observer::Bare };
        let calls = &mut self.measured.calls;
        calls.insert((Subject::Getppid, Length::Full), Subject::Getppid.whole(200_000));
        for subject in Subject::ALL {
            calls.insert((subject, Length::Short), subject.whole(SHORT_CALLS));
        }
        calls.insert((Subject::Dd, Length::Full), DD_CALLS);
        let bare = self.run(pilot)?;
        let needed = (FULL_NS / bare.ns_per_call / 100_000.0).ceil() as u64 * 100_000;
        let needed = Subject::Getppid.whole(needed.clamp(100_000, 10_000_000));
        self.measured.calls.insert((Subject::Getppid, Length::Full), needed);
        Ok(())
    }

    /// Makes one block of runs.
    pub(crate) fn block(&mut self, order: &mut Order) -> Result<()> {
        let mut items: Vec<Item> = Subject::ALL.iter().flat_map(|s| items(*s)).collect();
        order.shuffle(&mut items);
        let mut fastest: BTreeMap<Item, Option<Sample>> = BTreeMap::new();
        for item in items {
            let watched = (item.subject, item.observer);
            if self.measured.skipped.contains_key(&watched) {
                continue;
            }
            let run = self.run(item);
            self.signals.check()?;
            let sample = match run {
                Ok(sample) => {
                    self.failures.remove(&watched);
                    Some(sample)
                }
                Err(error) if error.is::<crate::child::Interrupted>() => {
                    return Err(error);
                }
                Err(error) if item.observer == Observer::Bare => return Err(error),
                Err(error) => {
                    let failures = self.failures.entry(watched).or_default();
                    *failures += 1;
                    if *failures >= PATIENCE {
                        self.measured.skipped.insert(watched, format!("failed: {error:#}"));
                    }
                    None
                }
            };
            let best = fastest.entry(item).or_default();
            if let Some(sample) = sample {
                self.measured.all_runs.entry(item).or_default().push(sample.ns_per_call);
                if best.is_none_or(|best| sample.ns_per_call < best.ns_per_call) {
                    *best = Some(sample);
                }
            }
        }
        for (item, sample) in fastest {
            self.measured.samples.entry(item).or_default().push(sample);
        }
        Ok(())
    }

    fn run(&mut self, item: Item) -> Result<Sample> {
        let Item { subject, length, observer } = item;
        let result = self.folder.path().join("result");
        let errors = self.folder.path().join("errors");
        for file in [&result, &self.folder.path().join("seen")] {
            let _ = std::fs::remove_file(file);
        }
        let calls = self.measured.calls[&(subject, length)];
        let subject_argv = subject.argv(calls, self.cpu, &result)?;
        let argv = observer.argv(&self.iotomy, &subject_argv, self.folder.path());
        let mut command =
            guarded(&argv, File::create(&errors).context("cannot create a temporary file")?)?;
        command.stdin(reopened(&self.memory)?);
        self.become_calm()?;
        let floor = match observer {
            Observer::Empty => self.empty.as_mut(),
            Observer::Clock => self.clock.as_mut(),
            _ => None,
        };
        let attached = floor.map(Floor::attach).transpose()?;
        let mut child = command.spawn().context("cannot start a run")?;
        let status = self.signals.wait(&mut child);
        drop(attached);
        let status = status.with_context(|| observer.name())?;
        if !status.success() {
            let stderr = std::fs::read_to_string(&errors).unwrap_or_default();
            let last = stderr.lines().rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
            bail!("{} ended with {status}: {last}", observer.name());
        }
        let seen = observer.seen(subject, self.folder.path()).map_err(anyhow::Error::msg)?;
        Ok(Sample { ns_per_call: subject.read_result(calls, &result)?, seen })
    }

    /// Waits until no other BPF programs are attached to the tracepoints of system calls and no
    /// other thread is runnable.
    fn become_calm(&mut self) -> Result<()> {
        let began = Instant::now();
        let until = began + RUN_PATIENCE.min(self.patience);
        self.measured.runs += 1;
        let mut quiet_since = None;
        loop {
            let now = Instant::now();
            if others_run() || others_watch() {
                quiet_since = None;
            } else if now.duration_since(*quiet_since.get_or_insert(now)) >= QUIET {
                break;
            }
            if now >= until {
                self.measured.disturbed += 1;
                break;
            }
            self.signals.check()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        self.patience = self.patience.saturating_sub(began.elapsed());
        Ok(())
    }
}

/// Returns every kind of run of a subject.
fn items(subject: Subject) -> Vec<Item> {
    let watched =
        Observer::ALL.map(|observer| Item { subject, observer, length: observer.length() });
    let short = Item { subject, observer: Observer::Bare, length: Length::Short };
    let all = watched.into_iter().chain([short]);
    all.flat_map(|item| {
        let repeats = if item.length == Length::Full { REPEATS } else { 1 };
        std::iter::repeat_n(item, repeats)
    })
    .collect()
}

/// Returns whether a BPF program other than this program's has the name of a system-call hook. Only
/// names are available, so a watcher whose programs have other names is not detected.
fn others_watch() -> bool {
    ProgInfoIter::default()
        .any(|program| matches!(program.name.as_bytes(), b"sys_enter" | b"sys_exit"))
}

/// Returns whether a thread other than this one is runnable, from the fourth field of
/// `/proc/loadavg`.
fn others_run() -> bool {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running = text.split(' ').nth(3).and_then(|tasks| tasks.split('/').next()?.parse().ok());
    running.is_some_and(|running: u32| running > 1)
}

/// Creates 512 MiB in memory and outside of any file system, so that nothing is left behind in any
/// case.
fn memory_file() -> Result<File> {
    let file = rustix::fs::memfd_create("iotomy-bench", MemfdFlags::CLOEXEC);
    let mut file = File::from(file.context("cannot make a memory file")?);
    let chunk = vec![0x5A; 1 << 20];
    for _ in 0..DD_CALLS / 2 * DD_BLOCK / (1 << 20) {
        file.write_all(&chunk).context("cannot fill the memory file")?;
    }
    Ok(file)
}

/// Reopens the same file at its beginning, with a separate offset.
pub(crate) fn reopened(file: &File) -> Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    File::open(path).context("cannot open the memory file again")
}

impl Rounds<'_> {
    /// Returns the memory file, at its beginning.
    pub(crate) fn memory(&self) -> Result<File> {
        reopened(&self.memory)
    }
}
