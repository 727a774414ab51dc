//! Merging records: all shards of one plan, or whole records of several machines, become one record.
//!
//! 1. Each record is checked against the cases that this version makes of its axes (`plan.rs`), and
//!    against the first record: all are of one plan.
//! 2. Shards must be complete, and each there once. Whole records must be of different machines.
//! 3. Of one machine, the result is as a run in one piece has it. Of several, the machine becomes an
//!    axis, and the claims are judged for each and over all (`verdicts.rs`).
//!
//! The invariant: cases of two machines never reach one judge.

mod error;
mod plan;
mod verdicts;

use std::collections::BTreeMap;

use iotomy_host::folder::is_alike;
use iotomy_record::{
    AxisValue, Case, Machine, MergedShard, Sweep, SweepAxis, SweepMachine, SweepRun, Volume,
};

use super::{Experiment, Params, Share};
pub use error::MergeError;
use plan::WholePlan;

/// A record to merge.
#[derive(Debug, Clone)]
pub struct Given {
    /// Its name, for errors.
    pub name: String,
    /// The record.
    pub sweep: Sweep,
}

/// The records of one machine.
struct OfMachine<'a>(Vec<&'a Given>);

/// Merges records of an experiment.
///
/// # Errors
/// Fails with the first reason why they do not make one record.
pub fn merged(experiment: &dyn Experiment, records: &[Given]) -> Result<Sweep, MergeError> {
    let plan = plan::common(experiment, records)?;
    let mut records = once_each(records)?;
    check_complete(&records)?;
    // Whatever the order they are named in.
    records.sort_by_key(|one| one.sweep.run.shard.as_ref().map(|shard| shard.index));
    let mut machines: Vec<OfMachine<'_>> = Vec::new();
    for one in &records {
        match machines.iter_mut().find(|machine| machine.name() == one.sweep.machine.name) {
            Some(machine) => {
                check_same_machine(machine.0[0], one)?;
                machine.0.push(one);
            }
            None => machines.push(OfMachine(vec![one])),
        }
    }
    Ok(match machines.as_slice() {
        [one] => of_one(&plan, one),
        several => of_several(&plan, several),
    })
}

/// The records without those that are there twice.
fn once_each(records: &[Given]) -> Result<Vec<&Given>, MergeError> {
    let mut kept: Vec<&Given> = Vec::new();
    for one in records {
        let is_rival = |other: &&&Given| match (&one.sweep.run.shard, &other.sweep.run.shard) {
            (Some(shard), Some(known)) => shard.index == known.index,
            _ => one.sweep.machine.name == other.sweep.machine.name,
        };
        match kept.iter().find(is_rival) {
            Some(known) if known.sweep == one.sweep => {}
            Some(known) => return Err(MergeError::twice(known, one)),
            None => kept.push(one),
        }
    }
    Ok(kept)
}

/// Whether all shards are there, if these are shards.
fn check_complete(records: &[&Given]) -> Result<(), MergeError> {
    let shards = || records.iter().filter_map(|one| one.sweep.run.shard.as_ref());
    let Some(of) = shards().map(|shard| shard.of).next() else { return Ok(()) };
    let is_missing = |index: &u64| shards().all(|shard| shard.index != *index);
    let missing: Vec<Share> =
        (1..=of).filter(is_missing).map(|index| Share { index, of }).collect();
    if missing.is_empty() { Ok(()) } else { Err(MergeError::Missing { missing }) }
}

/// Whether two records that name one machine are of one, in comparable directories.
fn check_same_machine(one: &Given, other: &Given) -> Result<(), MergeError> {
    let (a, b) = (&one.sweep.machine, &other.sweep.machine);
    for (what, a, b) in [("kernels", &a.kernel, &b.kernel), ("processors", &a.cpu, &b.cpu)] {
        if a != b {
            return Err(MergeError::namesakes((one, other), what, (a, b)));
        }
    }
    match (&one.sweep.run.volume, &other.sweep.run.volume) {
        (Some(a), Some(b)) if a != b && !is_alike(a, b) => {
            Err(MergeError::volumes((one, other), (a, b)))
        }
        _ => Ok(()),
    }
}

impl OfMachine<'_> {
    fn name(&self) -> &str {
        &self.0[0].sweep.machine.name
    }

    fn machine(&self) -> &Machine {
        &self.0[0].sweep.machine
    }

    fn volume(&self) -> Option<&Volume> {
        self.0.iter().find_map(|one| one.sweep.run.volume.as_ref())
    }

    /// Its cases, by their values.
    fn cases(&self) -> BTreeMap<Params, &Case> {
        let cases = self.0.iter().flat_map(|one| &one.sweep.cases);
        cases.map(|case| (Params(case.params.clone()), case)).collect()
    }
}

/// The record of one machine, as of a run in one piece.
fn of_one(plan: &WholePlan<'_>, machine: &OfMachine<'_>) -> Sweep {
    let own = machine.cases();
    let cases = plan.cases.iter().filter_map(|params| own.get(params).copied());
    Sweep {
        schema: Sweep::SCHEMA.to_owned(),
        started: started(&machine.0),
        machine: machine.machine().clone(),
        experiment: plan.declared.name.to_owned(),
        axes: plan.axes.to_vec(),
        cases: cases.cloned().collect(),
        claims: verdicts::of_machine(plan, &own),
        about: machine.0[0].sweep.about.clone(),
        run: SweepRun { volume: machine.volume().cloned(), ..run(&machine.0) },
        machines: Vec::new(),
    }
}

/// The record of several machines.
fn of_several(plan: &WholePlan<'_>, machines: &[OfMachine<'_>]) -> Sweep {
    let records: Vec<&Given> = machines.iter().flat_map(|machine| machine.0.clone()).collect();
    let value = |machine: &OfMachine<'_>| AxisValue::Name(machine.name().to_owned());
    let axis = SweepAxis {
        name: Sweep::MACHINE.to_owned(),
        unit: String::new(),
        values: machines.iter().map(value).collect(),
    };
    let (mut cases, mut each) = (Vec::new(), Vec::new());
    for machine in machines {
        let own = machine.cases();
        for case in plan.cases.iter().filter_map(|params| own.get(params).copied()) {
            let mut case = case.clone();
            case.params.insert(Sweep::MACHINE.to_owned(), value(machine));
            cases.push(case);
        }
        each.push(SweepMachine {
            machine: machine.machine().clone(),
            started: started(&machine.0),
            volume: machine.volume().cloned(),
            claims: verdicts::of_machine(plan, &own),
        });
    }
    let counts: Vec<usize> = machines.iter().map(|machine| machine.cases().len()).collect();
    Sweep {
        schema: Sweep::SCHEMA.to_owned(),
        started: started(&records),
        machine: in_common(machines),
        experiment: plan.declared.name.to_owned(),
        axes: [axis].into_iter().chain(plan.axes.iter().cloned()).collect(),
        cases,
        claims: verdicts::over_all(plan, &each, &counts),
        about: records[0].sweep.about.clone(),
        run: run(&records),
        machines: each,
    }
}

/// When the first of these began.
fn started(records: &[&Given]) -> String {
    records.iter().map(|one| one.sweep.started.clone()).min().unwrap_or_default()
}

/// How these were run, together.
fn run(records: &[&Given]) -> SweepRun {
    let runs = || records.iter().map(|one| &one.sweep.run);
    let first = &records[0].sweep.run;
    let shards = |one: &&Given| match &one.sweep.run.shard {
        Some(shard) => vec![MergedShard {
            index: shard.index,
            machine: one.sweep.machine.name.clone(),
            cases: one.sweep.cases.len() as u64,
            started: one.sweep.started.clone(),
            wall_ns: one.sweep.run.wall_ns,
            rounds: one.sweep.run.rounds,
            seed: one.sweep.run.seed,
        }],
        // Merged before, from those of its machine.
        None => one.sweep.run.shards.clone(),
    };
    SweepRun {
        size: first.size.clone(),
        seed: first.seed,
        max_time_ns: first.max_time_ns,
        wall_ns: runs().fold(0, |all, run| all.saturating_add(run.wall_ns)),
        rounds: runs().map(|run| run.rounds).max().unwrap_or(0),
        loose: runs().fold(0, |all, run| all.saturating_add(run.loose)),
        shards: records.iter().flat_map(shards).collect(),
        ..SweepRun::default()
    }
}

/// The facts that are the same for all machines; the others are empty or 0.
fn in_common(machines: &[OfMachine<'_>]) -> Machine {
    fn same<T: PartialEq + Clone + Default>(
        machines: &[OfMachine<'_>],
        fact: impl Fn(&Machine) -> T,
    ) -> T {
        let first = fact(machines[0].machine());
        let is_same = machines.iter().all(|one| fact(one.machine()) == first);
        if is_same { first } else { T::default() }
    }
    Machine {
        kernel: same(machines, |one| one.kernel.clone()),
        cpu: same(machines, |one| one.cpu.clone()),
        cpus: same(machines, |one| one.cpus),
        memory_bytes: same(machines, |one| one.memory_bytes),
        virtualization: same(machines, |one| one.virtualization.clone()),
        mitigations: same(machines, |one| one.mitigations.clone()),
        clock: same(machines, |one| one.clock.clone()),
        name: String::new(),
    }
}

#[cfg(test)]
mod tests;
