//! A run of any experiment, from its plan to its record. [`super::in_progress`] goes through the
//! cases.

use iotomy_host::Skip;
use iotomy_record::{Sweep, SweepAxis};

use super::cases::in_common;
use super::in_progress::RunInProgress;
use super::plan::{ExperimentPlan, RunError, RunHost, Start};
use super::{Experiment, Params};

/// Runs an experiment.
///
/// # Errors
/// Fails with the cause that ended the run early. Everything the run made is removed.
pub fn run(
    experiment: &dyn Experiment,
    plan: &ExperimentPlan<'_>,
    start: Start,
    around: &mut dyn RunHost,
) -> Result<Sweep, RunError> {
    let declared = experiment.declaration();
    let mut track = RunInProgress::new(experiment, plan, start, around.now())?;
    let has_plan = track.sweep.run.shard.as_ref().is_some_and(|shard| shard.plan_cases > 0);
    if track.sweep.cases.is_empty() && !has_plan {
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

/// Says that the values make no case, and why.
fn no_cases(experiment: &dyn Experiment, axes: &[SweepAxis]) -> String {
    let all = experiment.combinations(axes);
    let reasons: Vec<_> = all.iter().map(|one| experiment.no_case(one)).collect();
    format!("these values give no valid case: {}", in_common(&reasons).join("; "))
}
