//! What changes the history: names, removal, records from elsewhere, salvage.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use iotomy_history::Pick;
use iotomy_record::{printable, store};

use super::{opened, pick, place, print};
use crate::manual::{DONE, FAILED, Manual};
use crate::verbs::keeping::{VERSION, begun, run_name};

pub(super) const NAME: Manual = Manual {
    examples: &[
        ("iotomy history name last main", "Name the run kept last:"),
        ("iotomy history name 12", "Take the name of a run away:"),
    ],
    status: &[DONE, FAILED],
    see_also: &["iotomy-history-list(1)"],
};

/// Give a run a name, or take it away
#[derive(Debug, clap::Args)]
pub(super) struct NameArgs {
    /// The run: its number, its name, or `last`
    #[arg(value_name = "RUN", value_parser = pick)]
    run: Pick,

    /// Its name from now on; without one it has none
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

/// Forget runs
#[derive(Debug, clap::Args)]
pub(super) struct RmArgs {
    /// The runs: numbers, names, each for the one kept last of that name, or `last`
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

/// Keep records that were written by --json
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// The records; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Their name
    #[arg(long, value_name = "NAME", value_parser = run_name)]
    name: Option<String>,
}

pub(super) fn import(args: &ImportArgs) -> Result<ExitCode> {
    let records = args.files.iter().map(store::load_with_bytes);
    // A file that is no record keeps all others from being kept.
    let records = records.collect::<Result<Vec<_>, _>>()?;
    let mut store = begun(&place()?)?;
    for ((record, json), file) in records.iter().zip(&args.files) {
        let id = store.keep_bytes(json, record.as_ref(), args.name.as_deref(), VERSION)?;
        let file = printable(&file.to_string_lossy(), true);
        print(&format!("{file}: run {id}\n"))?;
    }
    store.close()?;
    Ok(ExitCode::SUCCESS)
}

pub(super) const SALVAGE: Manual = Manual {
    examples: &[("iotomy history salvage", "Save what can be read of a damaged history:")],
    status: &[
        ("0", "The history is sound, or runs of it were saved."),
        ("2", "No run could be saved, or the history could not be read or written."),
    ],
    see_also: &["iotomy-history(1)"],
};

/// Make a new history of all that can be read of a damaged one
///
/// The damaged one is left beside it, as history.db.damaged-1. The runs that are lost are named; where
/// none can be saved, the status is 2.
#[derive(Debug, clap::Args)]
pub(super) struct SalvageArgs {}

pub(super) fn salvage(_: &SalvageArgs) -> Result<ExitCode> {
    let path = place()?;
    let Some(found) = iotomy_history::salvage(&path)? else {
        return print("the history is sound; nothing was changed\n");
    };
    let aside = printable(&found.aside.to_string_lossy(), true);
    let runs = if found.saved == 1 { "run is" } else { "runs are" };
    print(&format!("{} {runs} saved; the damaged history is {aside}\n", found.saved))?;
    if found.was_aside {
        let path = printable(&path.to_string_lossy(), true);
        say(&format!("there was no {path}; the damaged history had been set aside before"));
    }
    tell("lost", &found.lost);
    tell("not readable, and either lost or removed before", &found.unclear);
    if found.saved == 0 {
        return Err(anyhow!(
            "nothing could be saved: no run can be read in {aside}, which is left as it was"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Names runs, the first of them if they are many.
fn tell(what: &str, runs: &[u64]) {
    if runs.is_empty() {
        return;
    }
    let named: Vec<String> = runs.iter().take(20).map(u64::to_string).collect();
    let more = if runs.len() > named.len() { ", …" } else { "" };
    say(&format!("{what}: run {}{more}", named.join(", ")));
}

fn say(text: &str) {
    // With standard error gone there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "iotomy: {}", crate::screen::shown(text));
}
