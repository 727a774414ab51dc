//! The parts that all experiments share: the contract, the cases and their bounds, the runner, and
//! the files and devices that are set up and taken down for them.

pub(crate) mod beginning;
pub(crate) mod bounds;
pub(crate) mod cases;
pub(crate) mod claims;
pub(crate) mod cpu_time;
mod experiment;
pub(crate) mod figures;
pub(crate) mod growth;
mod in_progress;
pub(crate) mod judgement;
mod left_behind;
mod lock;
pub(crate) mod memory;
mod merge;
mod notes;
mod own_folder;
pub(crate) mod patience;
mod plan;
mod runner;
pub(crate) mod scratch;
mod share;
pub(crate) mod size;
pub(crate) mod star;
mod state;
pub(crate) mod volumes;
mod zram;

pub use beginning::{check_resume, planned};
pub use bounds::{FreeRoom, Needs};
pub use cases::{Params, points};
pub use claims::Cases;
pub use experiment::{
    Axis, Claim, Experiment, ExperimentDeclaration, Extra, Fold, PreparedExperiment, Sample,
    Sampling, Takes, Value, Wakeups, Watch,
};
pub use judgement::Judgement;
pub use left_behind::remove_left_behind;
pub use lock::{Lock, Locked};
pub use merge::{Given, MergeError, merged};
pub use notes::LeftBehind;
pub use plan::{ExperimentPlan, Progress, RunError, RunHost, Start};
pub use runner::run;
pub use share::{Share, is_same_share};
pub use size::Size;
pub use state::State;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod runner_tests;
