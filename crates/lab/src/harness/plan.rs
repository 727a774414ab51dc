//! The plan of a run of any experiment, the services it needs from outside, and the errors that
//! end it.

use std::time::Duration;

use iotomy_host::folder::Folder;
use iotomy_record::{AxisValue, Machine, Sweep};

use super::{FreeRoom, Params, Share, Size, Watch};

/// The plan of a run.
#[derive(Debug)]
pub struct ExperimentPlan<'a> {
    /// Selects the values of axes for which no values are given.
    pub size: Size,
    /// Values given for axes, in the order in which they are shown.
    pub given: Vec<(String, Vec<AxisValue>)>,
    /// Maximum duration of measuring, even if some cases are not tight by then.
    pub max_time: Option<Duration>,
    /// Seed of the order of the cases.
    pub seed: u64,
    /// The directory in which files are created.
    pub folder: &'a Folder,
    /// The free resources of the machine.
    pub room: FreeRoom,
    /// Where to write the final record; saved for a run that continues this one.
    pub json: Option<String>,
    /// The share of the cases to run; `None` for all.
    pub share: Option<Share>,
}

/// The starting point of a run.
#[derive(Debug)]
pub struct Start {
    /// When it began, in RFC 3339.
    pub started: String,
    /// The machine it runs on.
    pub machine: Machine,
    /// The results or the plan of an interrupted run to continue from; its axes, time and order
    /// apply instead of the plan's.
    pub before: Option<Sweep>,
}

/// The services that a run needs from its host.
pub trait RunHost: Watch {
    /// Returns the time since a fixed moment.
    fn now(&self) -> Duration;

    /// Returns the number of a signal that requests the end, if one has arrived.
    fn interrupted(&mut self) -> Option<i32>;

    /// Sets when watching must be over, by this clock; `None` means never.
    fn end_at(&mut self, end: Option<Duration>);

    /// Reports the progress of the run.
    fn progress(&mut self, progress: &Progress<'_>);

    /// Saves the results so far.
    fn keep(&mut self, so_far: &Sweep);
}

/// The progress of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The experiment.
    pub experiment: &'a str,
    /// The round, from 1; 0 while counted extras are watched, after the rounds.
    pub round: u64,
    /// Cases of the round that are done.
    pub done: usize,
    /// All cases of the round.
    pub all: usize,
    /// The case about to be measured.
    pub case: &'a Params,
    /// Upper bound of the remaining time; `None` when it is unknown.
    pub left: Option<Duration>,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A signal requested the end; the results so far have been saved.
    #[error("interrupted")]
    Interrupted(i32),
    /// No case could be measured.
    #[error("cannot run {experiment}: {reason}")]
    Prepare {
        /// The experiment.
        experiment: &'static str,
        /// The reason.
        reason: String,
    },
    /// The run to be continued is of another machine or version.
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
    /// The run to be continued used another directory.
    #[error(
        "cannot resume the interrupted run of {experiment} in {here}: it used {folder}; leave out \
         --path, or start a new run without --resume"
    )]
    Elsewhere {
        /// The experiment.
        experiment: &'static str,
        /// Where it was started.
        folder: String,
        /// Where it was to continue.
        here: String,
    },
}
