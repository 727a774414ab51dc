//! The plan that records have in common.

use iotomy_record::{Sweep, SweepAxis};

use super::super::share::{digest, shards};
use super::{Given, MergeError};
use crate::harness::{Experiment, ExperimentDeclaration, Params};

/// A plan of which all records are.
pub(super) struct WholePlan<'a> {
    pub(super) declared: &'static ExperimentDeclaration,
    pub(super) axes: &'a [SweepAxis],
    /// All of its cases, in order.
    pub(super) cases: Vec<Params>,
}

/// Returns the plan of all records.
///
/// # Errors
/// Fails with the first record that is of another one, or that is not fit to be merged.
pub(super) fn common<'a>(
    experiment: &dyn Experiment,
    records: &'a [Given],
) -> Result<WholePlan<'a>, MergeError> {
    let first = records.first().ok_or(MergeError::Nothing)?;
    for one in records {
        check_alone(experiment, one)?;
        if let Some(reason) = difference(&first.sweep, &one.sweep) {
            return Err(MergeError::apart(first, one, reason));
        }
    }
    let axes = &first.sweep.axes;
    Ok(WholePlan { declared: experiment.declaration(), axes, cases: experiment.cases(axes) })
}

/// Whether a record can be part of a merged one.
fn check_alone(experiment: &dyn Experiment, one: &Given) -> Result<(), MergeError> {
    let (declared, sweep) = (experiment.declaration(), &one.sweep);
    let unfit = |reason: String| Err(MergeError::unfit(one, reason));
    if sweep.experiment != declared.name {
        return unfit(format!(
            "it is of the experiment {}, and others are of {}; merge those of each experiment alone",
            sweep.experiment, declared.name
        ));
    }
    if sweep.run.is_partial {
        return unfit("its run was interrupted; run it again to resume it".to_owned());
    }
    if !sweep.machines.is_empty() {
        return unfit(
            "it was merged from several machines; merge the records that it was made of".to_owned(),
        );
    }
    if sweep.machine.name.is_empty() {
        return unfit("it does not name its machine; run it again with this iotomy".to_owned());
    }
    if !is_of_this_version(experiment, sweep) {
        return unfit(
            "this iotomy makes other cases of its axes; run all with the same version, and merge \
             them with it"
                .to_owned(),
        );
    }
    Ok(())
}

/// Whether this version of the experiment has the record's cases for its axes.
fn is_of_this_version(experiment: &dyn Experiment, sweep: &Sweep) -> bool {
    let declared = experiment.declaration();
    let has_axes =
        declared.axes.iter().map(|axis| axis.name).eq(sweep.axes.iter().map(|axis| &axis.name));
    let allows = |axis: &crate::Axis, has: &SweepAxis| {
        has.values.iter().all(|value| axis.takes.is_kind_of(value))
    };
    if !has_axes || !declared.axes.iter().zip(&sweep.axes).all(|(axis, has)| allows(axis, has)) {
        return false;
    }
    let metric = (declared.metric, declared.unit);
    if sweep.cases.iter().any(|case| (case.metric.as_str(), case.unit.as_str()) != metric) {
        return false;
    }
    let all = experiment.cases(&sweep.axes);
    let has = |cases: &[&Params]| {
        cases.iter().map(|case| &case.0).eq(sweep.cases.iter().map(|case| &case.params))
    };
    let Some(shard) = &sweep.run.shard else { return has(&all.iter().collect::<Vec<_>>()) };
    let options = (sweep.run.size.as_str(), sweep.run.max_time_ns);
    let plan = digest(declared, &sweep.axes, &all, options);
    let of = shards(declared.lines, &all, shard.of);
    let mine = all.iter().zip(of).filter(|(_, of)| *of == shard.index).map(|(case, _)| case);
    (&shard.plan, shard.plan_cases) == (&plan, all.len() as u64) && has(&mine.collect::<Vec<_>>())
}

/// How the plans of two records differ, and what to do.
fn difference(one: &Sweep, other: &Sweep) -> Option<String> {
    let values =
        |of: &SweepAxis| of.values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let same = "give all runs the same options";
    for (a, b) in one.axes.iter().zip(&other.axes) {
        if a != b {
            let (name, a, b) = (&a.name, values(a), values(b));
            return Some(format!(
                "the values of the axis {name} differ: {a} and {b}; give all runs the same -L"
            ));
        }
    }
    if one.run.size != other.run.size {
        let (a, b) = (&one.run.size, &other.run.size);
        return Some(format!("their sizes differ: {a} and {b}; {same}"));
    }
    if one.run.max_time_ns != other.run.max_time_ns {
        let seconds = |of: &Sweep| match of.run.max_time_ns {
            Some(ns) => format!("{} s", ns as f64 / 1e9),
            None => "no limit".to_owned(),
        };
        return Some(format!(
            "their --max-time differs: {} and {}; {same}",
            seconds(one),
            seconds(other)
        ));
    }
    match (&one.run.shard, &other.run.shard) {
        (Some(a), Some(b)) if a.of != b.of => Some(format!(
            "they are shards {}/{} and {}/{}, of different numbers of shards",
            a.index, a.of, b.index, b.of
        )),
        (Some(a), None) => Some(mixed(a)),
        (None, Some(b)) => Some(mixed(b)),
        _ => None,
    }
}

fn mixed(shard: &iotomy_record::Shard) -> String {
    format!(
        "one is a whole record, the other shard {}/{}; merge the shards of each machine first, then \
         the whole records",
        shard.index, shard.of
    )
}
