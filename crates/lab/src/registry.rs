//! The list of all experiments.

use crate::harness::Experiment;
use crate::{alignment, concurrency, copy, device, files, herd, wait};

/// Every experiment, in the order they are listed.
pub static EXPERIMENTS: &[&dyn Experiment] = &[
    &copy::Copy,
    &copy::null_sink::NullSink,
    &wait::Wait,
    &wait::enter_leave::EnterLeave,
    &wait::models::Models,
    &wait::thread_each::ThreadEach,
    &wait::shared_set::SharedSet,
    &herd::HerdExperiment,
    &herd::accept::Accept,
    &concurrency::Concurrency,
    &files::Files,
    &device::Device,
    &alignment::Alignment,
];

/// Returns the experiment called `name`.
pub fn experiment(name: &str) -> Option<&'static dyn Experiment> {
    EXPERIMENTS.iter().copied().find(|one| one.declaration().name == name)
}
