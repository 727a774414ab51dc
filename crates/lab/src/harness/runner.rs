//! The input of a run of any experiment, the services it needs from its caller, and the ways it may
//! end. [`super::in_progress`] steps through the cases.

use std::time::Duration;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_record::{AxisValue, Machine, Sweep, SweepAxis};

use super::cases::in_common;
use super::in_progress::RunInProgress;
use super::{Experiment, FreeRoom, Params, Size, Watch};

/// The run to make.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Which values the axes have that none are given for.
    pub size: Size,
    /// Values given for axes, in the order they are shown.
    pub given: Vec<(String, Vec<AxisValue>)>,
    /// How long measuring goes on at most, whatever is not tight then.
    pub max_time: Option<Duration>,
    /// The seed of the order of cases.
    pub seed: u64,
    /// Where files are made.
    pub folder: &'a Folder,
    /// The available room of the machine.
    pub room: FreeRoom,
    /// Where the record is to be written in the end, kept for who goes on with it.
    pub json: Option<String>,
}

/// The start of a run.
#[derive(Debug)]
pub struct Start {
    /// When it began, RFC 3339.
    pub started: String,
    /// Where it runs.
    pub machine: Machine,
    /// The measurements or the plan of an interrupted run to resume; its axes, time and order
    /// count, and not the plan's.
    pub before: Option<Sweep>,
}

/// The services that a run needs from its caller.
pub trait RunHost: Watch {
    /// The time since some moment that stays the same.
    fn now(&self) -> Duration;

    /// The number of a signal that asks for the end, if one has come.
    fn interrupted(&mut self) -> Option<i32>;

    /// Hears when, by this clock, whatever it watches has to be over; `None` is never.
    fn end_at(&mut self, end: Option<Duration>);

    /// Hears how far the run is.
    fn progress(&mut self, progress: &Progress<'_>);

    /// Keeps what there is so far.
    fn keep(&mut self, so_far: &Sweep);
}

/// How far a run is.
#[derive(Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The experiment.
    pub experiment: &'a str,
    /// The round, from 1; 0 when what is counted is watched, after the rounds.
    pub round: u64,
    /// Cases of the round that are behind.
    pub done: usize,
    /// Of how many.
    pub all: usize,
    /// The case about to be measured.
    pub case: &'a Params,
    /// How long it still takes at most; `None` when that is not known.
    pub left: Option<Duration>,
}

/// Why a run came to no end of its own.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A signal asked for the end; what there was has been kept.
    #[error("interrupted")]
    Interrupted(i32),
    /// No case could be measured.
    #[error("cannot run {experiment}: {reason}")]
    Prepare {
        /// The experiment.
        experiment: &'static str,
        /// Why.
        reason: String,
    },
    /// The interrupted run is of another machine or version.
    #[error(
        "cannot resume the interrupted run of {experiment}: {reason}; start a new run without \
         --resume"
    )]
    Resume {
        /// The experiment.
        experiment: &'static str,
        /// The difference.
        reason: String,
    },
    /// The interrupted run is of another directory.
    #[error(
        "cannot resume the interrupted run of {experiment} in {here}: it used {folder}; leave out \
         --path, or start a new run without --resume"
    )]
    Elsewhere {
        /// The experiment.
        experiment: &'static str,
        /// Where it was begun.
        folder: String,
        /// Where it was to go on.
        here: String,
    },
}

/// Runs an experiment.
///
/// # Errors
/// The error that ended it early. Nothing is left behind.
pub fn run(
    experiment: &dyn Experiment,
    plan: &Plan<'_>,
    start: Start,
    around: &mut dyn RunHost,
) -> Result<Sweep, RunError> {
    let declared = experiment.declaration();
    let mut track = RunInProgress::new(experiment, plan, start, around.now())?;
    if track.sweep.cases.is_empty() {
        let reason = no_cases(experiment, &track.sweep.axes);
        return Err(RunError::Prepare { experiment: declared.name, reason });
    }
    let open: Vec<Params> = track.open().map(|at| track.params(at)).collect();
    if !open.is_empty() {
        let prepared = experiment.prepare(&open, plan.folder);
        let mut bench = prepared
            .map_err(|Skip(reason)| RunError::Prepare { experiment: declared.name, reason })?;
        track.rounds(&mut *bench, around)?;
        track.watch(&mut *bench, around)?;
    }
    Ok(track.end(around.now()))
}

/// That values make no case, and why.
fn no_cases(experiment: &dyn Experiment, axes: &[SweepAxis]) -> String {
    let all = experiment.combinations(axes);
    let reasons: Vec<_> = all.iter().map(|one| experiment.no_case(one)).collect();
    format!("these values give no valid case: {}", in_common(&reasons).join("; "))
}
