//! What a run begins with: the cases that fit, or what an interrupted run had measured.

use std::collections::BTreeMap;

use iotomy_record::{About, AxisValue, Case, Machine, Sweep, SweepAxis, SweepRun};

use super::figures::{case_of, nanos};
use super::runner::{Plan, Start};
use super::{Axis, Declaration, Experiment, Params, Takes};
use crate::limits::Skip;

/// A sweep of which nothing has been measured: the cases that do not fit are skipped.
pub(super) fn fresh(experiment: &dyn Experiment, plan: &Plan<'_>, start: Start) -> Sweep {
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
        let fits =
            plan.room.check(experiment.needs(&params)).and_then(|()| experiment.probe(&params));
        let skipped = fits.err().map(|Skip(reason)| reason);
        let nothing = BTreeMap::new();
        let case = case_of(params.0, (declared.metric, declared.unit), Vec::new(), nothing);
        Case { skipped, ..case }
    };
    let run = SweepRun {
        size: plan.size.name().to_owned(),
        seed: plan.seed,
        max_time_ns: plan.max_time.map(nanos),
        is_partial: true,
        ..SweepRun::default()
    };
    Sweep {
        schema: Sweep::SCHEMA.to_owned(),
        started: start.started,
        machine: start.machine,
        experiment: declared.name.to_owned(),
        cases: experiment.cases(&axes).into_iter().map(case).collect(),
        axes,
        claims: Vec::new(),
        about: about(declared),
        run,
    }
}

fn about(declared: &Declaration) -> About {
    About {
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

/// Whether an interrupted run can go on here.
pub(super) fn check_before(
    declared: &Declaration,
    before: &Sweep,
    here: &Machine,
) -> Result<(), String> {
    if before.experiment != declared.name {
        return Err(format!("it is of {}", before.experiment));
    }
    if (&before.machine.kernel, &before.machine.cpu) != (&here.kernel, &here.cpu) {
        return Err("it was made on another machine or kernel".to_owned());
    }
    let names = |name: &String| declared.axes.iter().any(|axis| axis.name == name);
    if before.axes.len() != declared.axes.len() || !before.axes.iter().all(|axis| names(&axis.name))
    {
        return Err("its axes are others".to_owned());
    }
    // Values of another version may be none of this one.
    let known = |axis: &Axis| {
        let values = before.axes.iter().find(|one| one.name == axis.name);
        values.is_some_and(|one| one.values.iter().all(|value| takes(axis.takes, value)))
    };
    match declared.axes.iter().find(|axis| !known(axis)) {
        None => Ok(()),
        Some(axis) => Err(format!("{} has other values", axis.name)),
    }
}

fn takes(takes: Takes, value: &AxisValue) -> bool {
    match (takes, value) {
        (Takes::Names(names), AxisValue::Name(name)) => names.contains(&name.as_str()),
        (Takes::Numbers(least, most), AxisValue::Number(n)) => (least..=most).contains(n),
        _ => false,
    }
}
