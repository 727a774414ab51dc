//! The verbs that change the history: names, removal, imports.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use iotomy_history::{PackedRun, Pick};
use iotomy_record::store;

use super::{opened, pick, place, print};
use crate::manual::{DONE, FAILED, Manual};
use crate::screen::path_text;
use crate::verbs::saving::{VERSION, keep_in, run_name};

pub(super) const NAME: Manual = Manual {
    examples: &[
        ("iotomy history name last main", "Name the run kept last:"),
        ("iotomy history name 12", "Remove the name of a run:"),
    ],
    status: &[DONE, FAILED],
    see_also: &["iotomy-history-list(1)"],
};

/// Name a run, or remove its name
#[derive(Debug, clap::Args)]
pub(super) struct NameArgs {
    /// The run: its number, its name, or `last`
    #[arg(value_name = "RUN", value_parser = pick)]
    run: Pick,

    /// The new name; without one, the run loses its name
    #[arg(value_name = "NAME", value_parser = run_name)]
    name: Option<String>,
}

pub(super) fn name(args: &NameArgs) -> Result<ExitCode> {
    let mut store = opened()?;
    let kept = store.find(&args.run)?;
    store.rename(kept.id, args.name.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) const RM: Manual = Manual {
    examples: &[("iotomy history rm 3 4", "Forget two runs:")],
    status: &[DONE, FAILED],
    see_also: &["iotomy-history-list(1)"],
};

/// Remove runs from the history
#[derive(Debug, clap::Args)]
pub(super) struct RmArgs {
    /// The runs: numbers, names (the run kept last under each), or `last`
    #[arg(value_name = "RUN", required = true, value_parser = pick)]
    runs: Vec<Pick>,
}

pub(super) fn rm(args: &RmArgs) -> Result<ExitCode> {
    let mut store = opened()?;
    // All are found before one is removed: a wrong name removes none, and `last` is meant once.
    let found = args.runs.iter().map(|run| store.find(run)).collect::<Result<Vec<_>, _>>()?;
    for kept in &found {
        store.remove(kept.id)?;
    }
    store.shrink()?;
    Ok(ExitCode::SUCCESS)
}

pub(super) const IMPORT: Manual = Manual {
    examples: &[(
        "iotomy history import --name main race.json",
        "Keep a record of another machine or day:",
    )],
    status: &[DONE, FAILED],
    see_also: &["iotomy-history-export(1)"],
};

/// Import records written by --json
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// The records; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The name to keep them under
    #[arg(long, value_name = "NAME", value_parser = run_name)]
    name: Option<String>,
}

pub(super) fn import(args: &ImportArgs) -> Result<ExitCode> {
    let packed = |file: &PathBuf| -> Result<PackedRun> {
        let (record, json) = store::load_with_bytes(file)?;
        Ok(PackedRun::from_text(record, json)?)
    };
    // A file that is not a record keeps all others from being kept.
    let runs = args.files.iter().map(packed).collect::<Result<Vec<_>>>()?;
    keep_in(&place()?, |store| {
        for (run, file) in runs.iter().zip(&args.files) {
            let id = store.keep_packed(run, args.name.as_deref(), VERSION)?;
            let file = path_text(file);
            print(&format!("{file}: run {id}\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    })
}
