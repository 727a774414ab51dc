//! Commands run against each other.
//!
//! Runs are timed untraced, in random order mirrored within rounds, until the comparison is decided
//! or enough is enough; afterwards each command is traced, and the difference of the times is
//! accounted for. It owns processes and clocks; what it cannot do itself, watching a run, its caller
//! hands in.

mod alone;
pub mod attribution;
mod caches;
mod compare;
mod deny;
mod error;
mod in_progress;
mod interrupts;
mod outputs;
mod plan;
mod price;
mod runner;
mod state;
mod sweep;
mod traced;
mod tracing;
mod words;

use std::time::{Duration, Instant};

use iotomy_record::{Machine, Race, Trace};
use iotomy_sys::launch::Command;

pub use caches::Cache;
pub use deny::Denial;
pub use error::RaceError;
pub use interrupts::Interrupts;
pub use outputs::Output;
pub use sweep::Axis;
pub use words::argv;

use in_progress::{RaceInProgress, run_script};
use runner::Runner;
use sweep::Filled;

/// A race to be run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The commands, as given.
    pub commands: Vec<String>,
    /// Placeholders and their values.
    pub axes: Vec<Axis>,
    /// Calls that are taken away.
    pub denials: Vec<Denial>,
    /// Where standard output goes.
    pub output: Output,
    /// The treatment of caches.
    pub cache: Cache,
    /// Whether all the machine's caches are dropped before each run.
    pub drop_caches: bool,
    /// Untimed runs of each first; `None` for the usual.
    pub warmup: Option<u64>,
    /// Timed runs of each; `None` for as many as it takes.
    pub runs: Option<u64>,
    /// The smallest relevant difference.
    pub min_effect: f64,
    /// How long it may take.
    pub max_time: Option<Duration>,
    /// The seed of the order.
    pub seed: u64,
    /// Lines for the shell: before each run, once first, once last.
    pub prepare: Option<String>,
    /// Run once, first.
    pub setup: Option<String>,
    /// Run once, last, in any case.
    pub cleanup: Option<String>,
    /// Whether runs may fail.
    pub ignore_failure: bool,
    /// Disturbed rounds that may be made again.
    pub redo: u64,
    /// Whether to trace.
    pub trace: bool,
}

/// Why there is no trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untraced {
    /// A signal requested the end meanwhile.
    Interrupted(i32),
    /// It could not be watched: why.
    Cannot(String),
}

/// The services that a race needs from its caller.
pub trait RaceHost {
    /// Runs a command and watches it.
    ///
    /// # Errors
    /// Why it could not be watched.
    fn trace(&mut self, command: &Command) -> Result<Trace, Untraced>;

    /// A function that reports, from another thread, whether a signal has asked [`RaceHost::trace`]
    /// to end. The command is then killed with its group: it may not obey the signal that was
    /// passed on.
    fn is_interrupted(&self) -> fn() -> bool;

    /// Receives the progress of the race.
    fn progress(&mut self, text: &str);
}

/// Most commands: labels are letters, and a round runs each twice.
pub const MOST_COMMANDS: usize = 26;

/// A race that was run to its end.
#[derive(Debug)]
pub struct FinishedRace {
    /// The record.
    pub record: Race,
    /// The error of the clean-up after it: no reason to lose the record.
    pub cleaned: Result<(), RaceError>,
}

/// The commands of a race: those given, each with every combination of its placeholders' values.
///
/// # Errors
/// When the sweep is invalid, or has too many combinations.
pub fn commands(options: &Options) -> Result<Vec<String>, RaceError> {
    Ok(filled(options)?.into_iter().map(|filled| filled.text).collect())
}

fn filled(options: &Options) -> Result<Vec<Filled>, RaceError> {
    let filled = sweep::fill(&options.commands, &options.axes).map_err(RaceError::Options)?;
    if filled.len() > MOST_COMMANDS {
        return Err(RaceError::Options(format!(
            "{} commands exceed {MOST_COMMANDS}; give -L fewer values",
            filled.len()
        )));
    }
    Ok(filled)
}

/// Runs a race. `started` and `machine` go into the record as they are.
///
/// # Errors
/// The error that ended it early. No process is left running, and the clean-up was run.
pub fn race(
    options: &Options,
    started: String,
    machine: Machine,
    around: &mut dyn RaceHost,
) -> Result<FinishedRace, RaceError> {
    let filled = filled(options)?;
    let began = Instant::now();
    let mut runner = Runner::new(&options.output)?;
    let mut cleanup = match &options.cleanup {
        Some(text) => Some(runner.script("--cleanup", text)?),
        None => None,
    };
    let deadline = options.max_time.and_then(|time| began.checked_add(time));
    let raced = RaceInProgress::new(options, &filled, &mut runner, deadline, machine.cpus)
        .and_then(|track| track.run(began, started, machine, around));
    let mut cleaned = Ok(());
    if let Some(script) = &mut cleanup {
        // It has its own time, and its failure does not hide another.
        runner.deadline = None;
        runner.forget_signals();
        cleaned = run_script(&mut runner, script);
    }
    raced.map(|record| FinishedRace { record, cleaned })
}
