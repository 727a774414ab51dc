//! `iotomy lab`: experiments, and their verdicts on the claims.

mod bound;
mod given;
mod host;
mod list;
mod merge;
mod run;
mod run_args;
mod shard;
mod turns;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Subcommand;
use iotomy_lab::{EXPERIMENTS, Experiment, experiment};

use crate::manual::{DONE, FAILED, Manual};

pub(crate) use list::axis_values;

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        ("iotomy lab list", "List the experiments:"),
        ("iotomy lab run copy --quick", "Run one in some 20 seconds:"),
    ],
    status: &[DONE, FAILED, ("128 + n", "Signal n interrupted a run.")],
    see_also: &["iotomy-report(1)"],
};

/// Of the verbs below.
pub(crate) const MANUALS: &[(&str, &Manual)] =
    &[("lab list", &list::MANUAL), ("lab run", &run::MANUAL), ("lab merge", &merge::MANUAL)];

/// Run experiments that judge claims on this machine
///
/// An experiment sweeps its axes and repeats each case until its confidence interval is tight or
/// the time is up. It judges each claim: holds, fails or inconclusive, with the numbers.
#[derive(Debug, clap::Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    what: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    List(list::ListArgs),
    Run(Box<run_args::RunArgs>),
    Merge(merge::MergeArgs),
}

/// Lists or runs.
///
/// # Errors
/// A name that is none, or an output that cannot be written.
pub(crate) fn run(args: &LabArgs) -> Result<ExitCode> {
    match &args.what {
        LabCommand::List(args) => list::run(args),
        LabCommand::Run(args) => run::run(args),
        LabCommand::Merge(args) => merge::run(args),
    }
}

/// The experiments of these names, each once.
fn named(names: &[String]) -> Result<Vec<&'static dyn Experiment>> {
    let mut found: Vec<&'static dyn Experiment> = Vec::new();
    for name in names {
        let one = experiment(name).with_context(|| {
            let all: Vec<&str> = EXPERIMENTS.iter().map(|one| one.declaration().name).collect();
            format!("unknown experiment {name:?}; the experiments are {}", all.join(", "))
        })?;
        if found.iter().all(|other| other.declaration().name != name) {
            found.push(one);
        }
    }
    Ok(found)
}
