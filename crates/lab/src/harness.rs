//! What all experiments share: the contract, the cases and their bounds, the runner, and what is made for
//! them and taken down again.

pub(crate) mod beginning;
pub(crate) mod bounds;
pub(crate) mod cases;
pub(crate) mod claims;
pub(crate) mod cpu_time;
mod experiment;
pub(crate) mod figures;
pub(crate) mod judgement;
mod lock;
mod made;
mod notes;
pub(crate) mod patience;
mod runner;
pub(crate) mod scratch;
pub(crate) mod size;
pub(crate) mod star;
mod state;
mod track;
pub(crate) mod volumes;
mod zram;

pub use beginning::planned;
pub use bounds::{Needs, Room};
pub use cases::{Params, points};
pub use claims::Cases;
pub use experiment::{
    Axis, Bench, Claim, Declaration, Experiment, Extra, Fold, Go, Sample, Sampling, Takes, Value,
    Wakeups, Watch,
};
pub use judgement::Judgement;
pub use lock::{Lock, Locked};
pub use notes::{LeftBehind, remove_left_behind};
pub use runner::{Around, Plan, Progress, RunError, Start, run};
pub use size::Size;
pub use state::State;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod runner_tests;
