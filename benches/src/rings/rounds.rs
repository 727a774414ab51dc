//! The runs: blocks in which every observer watches every subject, in random order.
//!
//! The overhead of an observer is the difference between its run and the bare run of the same block. A disturbance of a
//! run only makes it slower; therefore a block makes several runs of each kind, and the fastest represents the block.
//!
//! Another user's programs on the same tracepoints slow every run, also the bare ones. A run waits until there are none,
//! but only for a limited time; the runs that had to start anyway are counted.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use iotomy_record::store;
use libbpf_rs::query::ProgInfoIter;

use crate::child::{Signals, guarded};
use crate::floor::Floor;
use crate::order::Order;
use crate::rings::subject::Subject;
use crate::scratch::Scratch;

/// Runs of a kind in a block.
const REPEATS: usize = 2;
/// The longest time that a run waits for others' programs to go.
const RUN_PATIENCE: Duration = Duration::from_secs(1);
/// The longest total waiting time.
const BENCH_PATIENCE: Duration = Duration::from_secs(60);

/// The observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Observer {
    Bare,
    Empty,
    Clock,
    Trace,
}

impl Observer {
    pub(crate) const ALL: [Self; 4] = [Self::Bare, Self::Empty, Self::Clock, Self::Trace];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Empty => "two empty BPF programs",
            Self::Clock => "two that read the clock",
            Self::Trace => "iotomy trace",
        }
    }
}

/// A kind of run.
pub(crate) type Item = (Subject, Observer);

/// A run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) ns_per_request: f64,
    /// iotomy's own figure: ns from the submission of a request to its completion.
    pub(crate) inside_ns: Option<f64>,
}

/// The environment of runs.
pub(crate) struct Rounds<'a> {
    signals: &'a Signals,
    iotomy: &'a str,
    folder: &'a Scratch,
    empty: Floor,
    clock: Floor,
    cpu: usize,
    patience: Duration,
    /// Runs that began beside others' programs.
    pub(crate) disturbed: u64,
    /// The fastest run of each block.
    pub(crate) samples: BTreeMap<Item, Vec<Sample>>,
}

impl<'a> Rounds<'a> {
    /// Loads the programs to compare with.
    pub(crate) fn prepare(
        signals: &'a Signals,
        iotomy: &'a str,
        folder: &'a Scratch,
    ) -> Result<Self> {
        let (empty, clock) = (Floor::empty_of_rings()?, Floor::clock_of_rings()?);
        let cpu = crate::cpus::last()?;
        let (patience, disturbed, samples) = (BENCH_PATIENCE, 0, BTreeMap::new());
        Ok(Self { signals, iotomy, folder, empty, clock, cpu, patience, disturbed, samples })
    }

    /// Makes one block of runs.
    pub(crate) fn block(&mut self, order: &mut Order) -> Result<()> {
        let kinds = Subject::ALL.iter().flat_map(|subject| Observer::ALL.map(|by| (*subject, by)));
        let mut items: Vec<Item> =
            kinds.flat_map(|item| std::iter::repeat_n(item, REPEATS)).collect();
        order.shuffle(&mut items);
        let mut fastest: BTreeMap<Item, Sample> = BTreeMap::new();
        for item in items {
            let sample = self.run(item)?;
            let best = fastest.entry(item).or_insert(sample);
            if sample.ns_per_request < best.ns_per_request {
                *best = sample;
            }
        }
        for (item, sample) in fastest {
            self.samples.entry(item).or_default().push(sample);
        }
        Ok(())
    }

    /// Waits until no other programs are on the tracepoints of io_uring or of system calls.
    fn be_alone(&mut self) -> Result<()> {
        let began = Instant::now();
        let longest = RUN_PATIENCE.min(self.patience);
        while others_watch() {
            if began.elapsed() >= longest {
                self.disturbed += 1;
                break;
            }
            self.signals.check()?;
            std::thread::sleep(Duration::from_millis(2));
        }
        self.patience = self.patience.saturating_sub(began.elapsed());
        Ok(())
    }

    fn run(&mut self, (subject, observer): Item) -> Result<Sample> {
        self.signals.check()?;
        let place = |name: &str| self.folder.path().join(name);
        let (result, errors, seen) = (place("result"), place("errors"), place("seen"));
        for file in [&result, &seen] {
            let _ = fs::remove_file(file);
        }
        let seen_text = seen.to_string_lossy();
        let trace = [self.iotomy, "trace", "--quiet", "--observer=bpf", "--json", &seen_text, "--"];
        let before = if observer == Observer::Trace { &trace[..] } else { &[] };
        let mut argv: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
        argv.extend(subject.argv(self.cpu, &result)?);
        let mut command =
            guarded(&argv, File::create(&errors).context("cannot create a temporary file")?)?;
        self.be_alone()?;
        let floor = match observer {
            Observer::Empty => Some(&mut self.empty),
            Observer::Clock => Some(&mut self.clock),
            Observer::Bare | Observer::Trace => None,
        };
        let attached = floor.map(Floor::attach).transpose()?;
        let mut child = command.spawn().context("cannot start a run")?;
        let status = self.signals.wait(&mut child);
        drop(attached);
        let status = status.with_context(|| observer.name())?;
        if !status.success() {
            let stderr = fs::read_to_string(&errors).unwrap_or_default();
            let last = stderr.lines().rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
            bail!("{} ended with {status}: {last}", observer.name());
        }
        let inside_ns = match observer {
            Observer::Trace => Some(seen_by_iotomy(&seen, subject)?),
            _ => None,
        };
        Ok(Sample { ns_per_request: subject.read_result(&result)?, inside_ns })
    }
}

/// Returns whether a BPF program has the name of one of iotomy's: only names are available, so watchers whose programs
/// have other names are not detected. None of this bench's is loaded between runs.
fn others_watch() -> bool {
    ProgInfoIter::default()
        .any(|program| matches!(program.name.as_bytes(), b"sys_enter" | b"ring_complete"))
}

/// Returns ns from a request's submission to its completion. An observer that does not count would win every
/// comparison: it must have seen every request.
fn seen_by_iotomy(path: &Path, subject: Subject) -> Result<f64> {
    let record = store::load_trace(path)?;
    let rows = || record.ring_operations.iter().filter(|row| row.op == subject.name());
    let counted: u64 = rows().map(|row| row.completed).sum();
    let inline: u64 = rows().map(|row| row.inline).sum();
    let (due, lost) = (subject.requests(), record.observer.lost_requests);
    ensure!(
        (counted, inline, lost) == (due, due, 0),
        "iotomy saw {counted} requests, {inline} of them carried out inline, and lost {lost}; there were {due}"
    );
    Ok(rows().map(|row| row.wall_ns).sum::<u64>() as f64 / counted as f64)
}
