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
use crate::verbs::this_machine::machine_name;

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
    examples: &[
        ("iotomy history import --name main race.json", "Keep a record of another machine or day:"),
        (
            "iotomy history import --name main --machine web1 web1/*.json",
            "Keep records that do not name their machine:",
        ),
    ],
    status: &[DONE, FAILED],
    see_also: &["iotomy-history-export(1)"],
};

/// Import records written by --json
///
/// A record that is kept already is not kept again.
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// The records; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The name to keep them under
    #[arg(long, value_name = "NAME", value_parser = run_name)]
    name: Option<String>,

    /// The machine of the records, instead of the name in each
    #[arg(long, value_name = "NAME", value_parser = machine_name)]
    machine: Option<String>,
}

pub(super) fn import(args: &ImportArgs) -> Result<ExitCode> {
    let packed = |file: &PathBuf| -> Result<PackedRun> {
        let (record, json) = store::load_with_bytes(file)?;
        let run = PackedRun::from_text(record, json)?;
        Ok(match &args.machine {
            Some(machine) => run.on_machine(machine),
            None => run,
        })
    };
    // A file that is not a record keeps all others from being kept.
    let runs = args.files.iter().map(packed).collect::<Result<Vec<_>>>();
    let runs = runs.map_err(|error| match args.files.len() {
        1 => error,
        files => error.context(format!("nothing imported of {files} files")),
    })?;
    keep_in(&place()?, |store| {
        for (run, file) in runs.iter().zip(&args.files) {
            let kept = store.import(run, args.name.as_deref(), VERSION)?;
            let (file, id) = (path_text(file), kept.id);
            match kept.is_again {
                true => print(&format!("{file}: run {id}, kept before\n"))?,
                false => print(&format!("{file}: run {id}\n"))?,
            };
        }
        Ok(ExitCode::SUCCESS)
    })
}
