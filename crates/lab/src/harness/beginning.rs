//! The start of a run: from its plan, where cases that do not fit are skipped, or from the results
//! of an interrupted run.

use std::collections::BTreeMap;
use std::path::Path;

use iotomy_host::Skip;
use iotomy_host::folder::is_alike;
use iotomy_record::{ExperimentFacts, Machine, Shard, Sweep, SweepAxis, SweepRun, Volume};

use super::figures::{case_of, nanos};
use super::plan::{ExperimentPlan, RunError, Start};
use super::share::digest;
use super::{Axis, Experiment, ExperimentDeclaration, Params, Share};

/// Returns a planned run as a sweep without measurements or verdicts. Saved, it is enough to start
/// the run at another time.
pub fn planned(experiment: &dyn Experiment, plan: &ExperimentPlan<'_>, start: Start) -> Sweep {
    let declared = experiment.declaration();
    let axis = |axis: &Axis| {
        let given = plan.given.iter().find(|(name, _)| name == axis.name);
        let values = match given {
            Some((_, values)) => values.clone(),
            None => axis.values(plan.size).iter().map(|value| (*value).into()).collect(),
        };
        SweepAxis { name: axis.name.to_owned(), unit: axis.unit.to_owned(), values }
    };
    let axes: Vec<SweepAxis> = declared.axes.iter().map(axis).collect();
    let case = |params: Params| {
        case_of(params.0, (declared.metric, declared.unit), Vec::new(), BTreeMap::new())
    };
    let (size, max_time_ns) = (plan.size.name(), plan.max_time.map(nanos));
    let all = experiment.cases(&axes);
    let shard = plan.share.map(|Share { index, of }| {
        let plan = digest(declared, &axes, &all, (size, max_time_ns));
        Shard { index, of, plan_cases: all.len() as u64, plan }
    });
    let cases = match plan.share {
        Some(share) => share.select(declared.lines, all),
        None => all,
    };
    let run = SweepRun {
        size: size.to_owned(),
        seed: plan.seed,
        max_time_ns,
        is_partial: true,
        volume: Some(plan.folder.volume().clone()),
        json: plan.json.clone(),
        shard,
        ..SweepRun::default()
    };
    Sweep {
        schema: Sweep::SCHEMA.to_owned(),
        started: start.started,
        machine: start.machine,
        experiment: declared.name.to_owned(),
        cases: cases.into_iter().map(case).collect(),
        axes,
        claims: Vec::new(),
        about: about(declared),
        run,
        machines: Vec::new(),
    }
}

/// Starts a planned sweep: skips the cases that do not fit now.
pub(crate) fn begun(
    experiment: &dyn Experiment,
    plan: &ExperimentPlan<'_>,
    mut sweep: Sweep,
) -> Sweep {
    for case in &mut sweep.cases {
        let params = Params(case.params.clone());
        let fits = plan.room.check(experiment.needs(&params));
        let fits = fits.and_then(|()| experiment.probe(&params));
        case.skipped = fits.err().map(|Skip(reason)| reason);
    }
    sweep
}

/// Continues an interrupted run, or starts a planned one.
pub(crate) fn resumed(
    experiment: &dyn Experiment,
    plan: &ExperimentPlan<'_>,
    (before, start): (Sweep, Start),
) -> Result<Sweep, RunError> {
    check_resume(experiment, plan, (&before, &start.machine))?;
    Ok(match before.run.rounds {
        0 => {
            let (started, machine) = (start.started, start.machine);
            begun(experiment, plan, Sweep { started, machine, ..before })
        }
        _ => before,
    })
}

/// Checks whether an interrupted run can continue on this machine, in the directory of the plan.
///
/// # Errors
/// Fails with the difference.
pub fn check_resume(
    experiment: &dyn Experiment,
    plan: &ExperimentPlan<'_>,
    (before, machine): (&Sweep, &Machine),
) -> Result<(), RunError> {
    let declared = experiment.declaration();
    let name = declared.name;
    let here = plan.folder.volume();
    if let Some(volume) = before.run.volume.as_ref().filter(|of| !is_same(&of.path, &here.path)) {
        let (folder, here) = (volume.path.clone(), here.path.clone());
        return Err(RunError::Elsewhere { experiment: name, folder, here });
    }
    check_before(declared, before, (machine, here))
        .map_err(|reason| RunError::Resume { experiment: name, reason })
}

/// Whether two paths refer to the same directory.
fn is_same(one: &str, other: &str) -> bool {
    let found = |path: &str| Path::new(path).canonicalize().ok();
    Path::new(one) == Path::new(other) || found(one).is_some_and(|one| found(other) == Some(one))
}

fn about(declared: &ExperimentDeclaration) -> ExperimentFacts {
    ExperimentFacts {
        summary: declared.summary.to_owned(),
        hypothesis: declared.hypothesis.to_owned(),
        refuted_by: declared.refuted_by.to_owned(),
        controls: declared.controls.iter().map(|&text| text.to_owned()).collect(),
        extras: declared
            .extras
            .iter()
            .map(|extra| iotomy_record::Extra {
                name: extra.name.to_owned(),
                unit: extra.unit.to_owned(),
                summary: extra.summary.to_owned(),
            })
            .collect(),
        along: declared.along.to_owned(),
        lines: declared.lines.to_owned(),
    }
}

/// Checks whether an interrupted run can continue here.
fn check_before(
    declared: &ExperimentDeclaration,
    before: &Sweep,
    (here, volume): (&Machine, &Volume),
) -> Result<(), String> {
    if before.experiment != declared.name {
        return Err(format!("it is of {}", before.experiment));
    }
    if (&before.machine.kernel, &before.machine.cpu) != (&here.kernel, &here.cpu) {
        return Err("it is from another machine or kernel".to_owned());
    }
    // Twins are told apart by their names; older records have none.
    if before.machine.name != here.name && !before.machine.name.is_empty() {
        return Err(format!("it is from the machine {}", before.machine.name));
    }
    if let Some(other) = before.run.volume.as_ref().filter(|other| !is_alike(other, volume)) {
        let (kind, other) = (&volume.file_system, &other.file_system);
        return Err(format!("{} is on another file system: {kind}, and was {other}", volume.path));
    }
    let names = |name: &String| declared.axes.iter().any(|axis| axis.name == name);
    if before.axes.len() != declared.axes.len() || !before.axes.iter().all(|axis| names(&axis.name))
    {
        return Err("its axes differ".to_owned());
    }
    // Another version may have recorded values that this version does not know.
    let known = |axis: &Axis| {
        let values = before.axes.iter().find(|one| one.name == axis.name);
        values.is_some_and(|one| one.values.iter().all(|value| axis.takes.allows(value)))
    };
    match declared.axes.iter().find(|axis| !known(axis)) {
        None => Ok(()),
        Some(axis) => Err(format!("{} has other values", axis.name)),
    }
}
