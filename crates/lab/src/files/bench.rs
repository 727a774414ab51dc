//! The bench of `files`: sets up file systems, directories and processes, makes the rounds, and
//! takes everything down.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};

use super::backends::{BACKENDS, backend};
use super::layouts::{self, check_room};
use super::ledger::{is_watched, ledger};
use super::names::{dentries, fallen, press, reclaimable};
use super::worker::{Program, Worker, WorkerPlan, path_of};
use crate::harness::patience::Patience;
use crate::harness::volumes::{Backing, Volume};
use crate::harness::{Params, PreparedExperiment, Sample, Watch};

/// Approximate duration of the rounds between two reads of the clock: long compared with the
/// clock's resolution and scheduling, short enough for many samples of many cases.
const BATCH_NS: f64 = 8e6;

/// Maximum number of rounds per batch.
const MOST_ROUNDS: f64 = 10_000.0;

/// The divisor for a batch's rounds: this fraction of them is repeated with the clock read at each
/// step.
const STEPS_PART: f64 = 4.0;

/// The steps that the worker reports, in its order.
const STEPS: [&str; 10] = [
    "create_ns",
    "write_ns",
    "sync_ns",
    "close_ns",
    "open_ns",
    "read_ns",
    "reclose_ns",
    "stat_ns",
    "rename_ns",
    "unlink_ns",
];

/// Maximum number of files of a directory that the worker reads back.
const READ_BACK: u64 = 64;

/// How long runs are watched for their ledgers, after all other measurements.
const WATCHING: Duration = Duration::from_secs(4);

/// Maximum number of requests to the machine to release cached names: other programs lose theirs,
/// too.
const PRESSES: u32 = 4;

/// Names looked up at once: their memory is many pages, so counting whole pages is accurate enough.
const NAMES: u64 = 20_000;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// File system, layout, and whether nothing of it may be cached: a file system that is mounted
/// again for this is cold for all its directories.
type Place = (String, String, bool);

/// The state that all cases share.
pub(super) struct Rounds {
    folder: Folder,
    /// By file system and layout, created when first needed.
    volumes: BTreeMap<Place, Result<Volume, Skip>>,
    /// Directories that are filled.
    filled: HashSet<(Place, String)>,
    programs: BTreeMap<&'static str, Program>,
    /// Determined at the first sample of a case.
    batches: BTreeMap<Params, Batch>,
    /// The most files of a directory.
    most_files: u64,
    /// The next unused name: each name is looked up once.
    next_names: u64,
    /// How often the machine was requested to release cached names.
    presses: u32,
    /// The time spent on watching so far.
    watching: Duration,
    patience: Patience,
}

/// How a case is measured.
#[derive(Debug, Clone, Copy)]
struct Batch {
    /// Commands per batch.
    count: u64,
    /// The number of release requests when the case was last measured.
    presses: u32,
}

/// The results of the first rounds of a process, each in ns, if they were made.
struct FirstRounds {
    first: Option<f64>,
    third: Option<f64>,
    /// Commands per batch.
    count: u64,
}

impl Rounds {
    pub(super) fn new(cases: &[Params], folder: &Folder) -> Result<Self, Skip> {
        let folder =
            Folder::open(folder.volume().path.as_ref()).map_err(|error| Skip(error.to_string()))?;
        let mut programs = BTreeMap::new();
        // Any of these programs can fill the directories.
        for one in BACKENDS.iter().filter(|one| one.program().is_ok()) {
            programs.insert(one.name, Program::for_backend(one)?);
        }
        Ok(Self {
            folder,
            volumes: BTreeMap::new(),
            filled: HashSet::new(),
            programs,
            batches: BTreeMap::new(),
            most_files: cases.iter().map(|case| case.number("files")).max().unwrap_or(0),
            next_names: 0,
            presses: 0,
            watching: Duration::ZERO,
            patience: Patience::default(),
        })
    }

    fn program(&self, name: &str) -> Result<&Program, Skip> {
        let found = self.programs.get(name);
        found.ok_or_else(|| Skip(format!("no program for {name}")))
    }

    /// Returns the file system of a case, creating it if needed.
    fn volume(&mut self, case: &Params) -> Result<&mut Volume, Skip> {
        let place = place(case);
        if !self.volumes.contains_key(&place) {
            let made = self.make(case);
            self.volumes.insert(place.clone(), made);
        }
        match self.volumes.get_mut(&place) {
            Some(Ok(volume)) => Ok(volume),
            Some(Err(reason)) => Err(reason.clone()),
            None => Err(Skip("no file system was made".to_owned())),
        }
    }

    fn make(&self, case: &Params) -> Result<Volume, Skip> {
        let kind = match case.name("fs") {
            "here" => return Volume::here(&self.folder),
            "tmpfs" => return Volume::memory(),
            "ext4" => "ext4",
            "xfs" => "xfs",
            _ => "btrfs",
        };
        let most = if is_cold(case) { case.number("files") } else { self.most_files };
        let recipe = layouts::recipe(kind, case.name("layout"), most);
        // In memory the measurement covers the file system's own work; `here` covers the disk's.
        Volume::image(&recipe, Backing::Memory)
            .or_else(|_| Volume::image(&recipe, Backing::Folder(&self.folder)))
    }

    /// Returns the directory of a case, filled with its other files.
    fn directory(&mut self, case: &Params) -> Result<OwnedFd, Skip> {
        let (name, files) = (case.number("name"), case.number("files"));
        let called = format!("d{name}-{files}");
        let key = (place(case), called.clone());
        if !self.filled.contains(&key) {
            let volume = self.volume(case)?;
            let directory = made(volume.top()?, &called)?;
            check_room(&directory, files, case)?;
            let orders = WorkerPlan { name, ..WorkerPlan::plain() };
            let program = self.programs.values().next();
            let program = program.ok_or_else(|| Skip("there is no program".to_owned()))?;
            let mut worker = Worker::start(program, as_fd(&directory), &orders, self.patience)?;
            worker.ask(&format!("fill {files}"))?;
            drop(worker);
            // Write everything out now, so that it is not written during other measurements. This
            // excludes a disk shared with other programs, whose writes would have to be waited for,
            // too.
            let volume = self.volume(case)?;
            if volume.is_image() {
                volume.settle()?;
            }
            self.filled.insert(key);
        }
        opened(self.volume(case)?.top()?, &called)
    }

    fn sample(&mut self, case: &Params) -> Result<Sample, Skip> {
        if case.name("op") == "names" {
            return self.names(case);
        }
        drop(self.directory(case)?);
        let is_cold = is_cold(case);
        if is_cold {
            self.volume(case)?.forget()?;
        }
        let directory = self.directory(case)?;
        let mut worker = self.worker(case, &directory)?;
        let (word, rounds) = command(case);
        let FirstRounds { first, third, count } = self.begin(case, &mut worker)?;
        // Times are per command, and each command is several rounds.
        let (wall, cpu) = match first {
            Some(first) if is_cold => (first * rounds, None),
            _ => {
                let (wall, cpu) = batch(case, &mut worker, word, count)?;
                (wall, Some(cpu / rounds))
            }
        };
        let value = wall / rounds;
        let threads = case.number("threads") as f64;
        let mut extra =
            vec![("start_ns", worker.start.as_nanos() as f64), ("rate", 1e9 * threads / value)];
        extra.extend(first.map(|first| ("first_ns", first)));
        extra.extend(third.map(|third| ("third_ns", third)));
        extra.extend(cpu.map(|cpu| ("cpu_ns", cpu / threads)));
        if is_list(case) {
            // The list includes `.` and `..`.
            extra.push(("entry_ns", value / (case.number("files") + 2) as f64));
        }
        extra.extend(steps(case, &mut worker, count)?);
        Ok(Sample { value, extra })
    }

    /// Makes the first rounds of a process and finds how many make a batch.
    fn begin(&mut self, case: &Params, worker: &mut Worker) -> Result<FirstRounds, Skip> {
        let (word, rounds) = command(case);
        let mut single = || Ok::<_, Skip>(worker.time(&format!("{word} 1"))?.0 / rounds);
        let known = self.batches.get(case).copied();
        // A list takes long, and its third time shows nothing new. Nor does the first time of a
        // list that is a batch by itself, where everything is still cached from its last sample.
        let is_still_cached =
            |known: Batch| known.count == 1 && known.presses == self.presses && is_list(case);
        let first = if known.is_some_and(is_still_cached) { None } else { Some(single()?) };
        let third = if is_list(case) { None } else { single().and_then(|_| single()).map(Some)? };
        let found = || fitting(third.or(first).unwrap_or(BATCH_NS), rounds);
        let count = known.map_or_else(found, |known| known.count);
        self.batches.insert(case.clone(), Batch { count, presses: self.presses });
        Ok(FirstRounds { first, third, count })
    }

    /// Starts a process to make the rounds of a case.
    fn worker(&self, case: &Params, directory: &OwnedFd) -> Result<Worker, Skip> {
        let program = self.program(case.name("way"))?;
        Worker::start(program, as_fd(directory), &WorkerPlan::from_case(case), self.patience)
    }

    /// Looks up names that do not exist, which the kernel caches all the same.
    fn names(&mut self, case: &Params) -> Result<Sample, Skip> {
        const CALLED: &str = "names";
        let top = self.volume(case)?.top()?;
        let directory = made(top, CALLED)?;
        let mut worker = self.worker(case, &directory)?;
        let tag = self.next_names;
        self.next_names += 1;
        let before = (reclaimable(), dentries());
        let (took, cpu) = worker.time(&format!("names {NAMES} n{tag}"))?;
        let start = worker.start.as_nanos() as f64;
        // The cached names stay without any process that uses them.
        drop(worker);
        let after = (reclaimable(), dentries());
        let grown = |before: Option<u64>, after: Option<u64>| {
            Some((after? as f64 - before? as f64) / NAMES as f64)
        };
        let rate = 1e9 * NAMES as f64 / took;
        let mut extra = vec![("start_ns", start), ("rate", rate), ("cpu_ns", cpu / NAMES as f64)];
        extra.extend(grown(before.0, after.0).map(|bytes| ("name_bytes", bytes)));
        extra.extend(grown(before.1, after.1).map(|bytes| ("dentry_bytes", bytes)));
        if self.presses < PRESSES && press() {
            self.presses += 1;
            let (before, full, now) = match before.1 {
                Some(bytes) => (before.1, after.1, fallen(dentries, bytes)),
                None => (before.0, after.0, fallen(reclaimable, before.0.unwrap_or(0))),
            };
            // Names of other programs are released, too: a cache smaller than before holds none of
            // these.
            extra.extend(grown(before, now).map(|bytes| ("left_bytes", bytes.max(0.0))));
            let freed = full.zip(now).map(|(full, now)| full as f64 - now as f64);
            extra.extend(freed.map(|bytes| ("freed_bytes", bytes)));
        }
        drop(directory);
        // The cached negative entries are released with the directory.
        unlinkat(self.volume(case)?.top()?, CALLED, AtFlags::REMOVEDIR)
            .map_err(|e| Skip::refused("rmdir", e))?;
        Ok(Sample { value: took / NAMES as f64, extra })
    }
}

impl PreparedExperiment for Rounds {
    fn wait_at_most(&mut self, left: Option<Duration>) {
        self.patience = Patience::for_time_left(left);
    }

    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        while keep(self.sample(case)?).is_continue() {}
        Ok(())
    }

    fn watch(
        &mut self,
        case: &Params,
        watch: &mut dyn Watch,
    ) -> Result<Vec<(&'static str, f64)>, Skip> {
        if !is_watched(case) {
            return Ok(Vec::new());
        }
        if self.watching > WATCHING {
            return Err(Skip("the time limit ended".to_owned()));
        }
        let began = Instant::now();
        let directory = self.directory(case)?;
        let depth = case.number("depth");
        let rounds = self.batches.get(case).map_or(1, |batch| batch.count * depth);
        let mut arguments: Vec<OsString> = WorkerPlan::from_case(case).arguments().into();
        arguments.push(path_of(directory.as_raw_fd()).into());
        arguments.push(format!("round {rounds}").into());
        let program = self.program(case.name("way"))?.path();
        let trace = watch.program(&program, &arguments).map_err(Skip);
        self.watching += began.elapsed();
        let trace = trace?;
        Ok(ledger(&trace, rounds as f64))
    }
}

/// Measures the steps of some more rounds, each in ns, where they can be timed separately.
fn steps(case: &Params, worker: &mut Worker, count: u64) -> Result<Vec<(&'static str, f64)>, Skip> {
    let is_ring = backend(case.name("way")).is_some_and(|way| way.has_depth);
    if case.name("op") != "round" || is_ring {
        return Ok(Vec::new());
    }
    let count = (count as f64 / STEPS_PART).ceil();
    let steps = worker.ask(&format!("steps {count}"))?;
    let is_there = |(name, _): &(&str, f64)| *name != "sync_ns" || case.name("sync") != "none";
    let steps = STEPS.into_iter().zip(steps.iter().map(|ns| *ns as f64 / count));
    Ok(steps.filter(is_there).collect())
}

fn is_list(case: &Params) -> bool {
    ["list", "ls-l"].contains(&case.name("op"))
}

/// Returns how many commands fit into the time of a batch, with `rounds` rounds each and `round_ns`
/// per round.
fn fitting(round_ns: f64, rounds: f64) -> u64 {
    let fit = (BATCH_NS / (round_ns * rounds)).clamp(1.0, (MOST_ROUNDS / rounds).max(1.0));
    (fit as u64).max(1)
}

/// Returns the wall and CPU time of one command in a batch.
fn batch(case: &Params, worker: &mut Worker, word: &str, count: u64) -> Result<(f64, f64), Skip> {
    // The worker counts rounds, and a ring makes as many at once as its depth.
    let depth = if word == "round" { case.number("depth") } else { 1 };
    let (wall, cpu) = worker.time(&format!("{word} {}", count * depth))?;
    Ok((wall / count as f64, cpu / count as f64))
}

/// Returns the command for the worker, and its number of rounds.
fn command(case: &Params) -> (&'static str, f64) {
    match case.name("op") {
        "back" => ("back", case.number("files").min(READ_BACK) as f64),
        "list" => ("list", 1.0),
        "ls-l" => ("stats", 1.0),
        _ => ("round", case.number("depth") as f64),
    }
}

fn place(case: &Params) -> Place {
    (case.name("fs").to_owned(), case.name("layout").to_owned(), is_cold(case))
}

fn is_cold(case: &Params) -> bool {
    case.name("cache") == "cold"
}

fn as_fd(directory: &OwnedFd) -> BorrowedFd<'_> {
    std::os::fd::AsFd::as_fd(directory)
}

/// Creates a directory in another one and opens it.
fn made(parent: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Skip> {
    mkdirat(parent, name, Mode::RWXU).map_err(|e| Skip::refused("mkdir", e))?;
    opened(parent, name)
}

fn opened(parent: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Skip> {
    openat(parent, name, FOLDER, Mode::empty()).map_err(|e| Skip::refused("open", e))
}

impl WorkerPlan {
    /// Returns a plan with one thread that creates short names.
    fn plain() -> Self {
        Self { name: 1, threads: 1, depth: 1, sync: "none".into(), sched: "normal".into() }
    }

    fn from_case(case: &Params) -> Self {
        Self {
            name: case.number("name"),
            threads: case.number("threads"),
            depth: case.number("depth"),
            sync: case.name("sync").to_owned(),
            sched: case.name("sched").to_owned(),
        }
    }
}
