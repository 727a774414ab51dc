//! `iotomy history`: the kept runs, and their comparison.
//!
//! Glue only: [`iotomy_history`] has the store and the comparisons, and [`iotomy_report`] prints
//! them.

mod change;
mod compare;
mod read;

pub(super) use compare::checked;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use iotomy_history::{Filter, HistoryError, KeptMachine, Pick, Store, store_file};

use crate::manual::{DONE, FAILED, Manual};
use crate::pager;

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        (
            "iotomy race --save=main 'make -j2'\niotomy race --against main 'make -j2'",
            "Keep a race as a baseline, and compare a later one with it:",
        ),
        ("iotomy history list", "List the kept runs:"),
        ("iotomy history diff 3 last", "Compare two runs:"),
        (
            "iotomy history compare --baseline main --check",
            "Exit with status 1 if the last run is slower than the baseline:",
        ),
        ("iotomy history trend 'make -j2'", "Plot a command's times:"),
    ],
    status: &[
        DONE,
        ("1", "Something is slower than the baseline, with `compare --check`."),
        FAILED,
    ],
    see_also: &["iotomy-race(1)", "iotomy-report(1)"],
};

/// Of the verbs below.
pub(crate) const MANUALS: &[(&str, &Manual)] = &[
    ("history list", &read::LIST),
    ("history show", &read::SHOW),
    ("history diff", &compare::DIFF),
    ("history compare", &compare::COMPARE),
    ("history trend", &read::TREND),
    ("history name", &change::NAME),
    ("history rm", &change::RM),
    ("history export", &read::EXPORT),
    ("history import", &change::IMPORT),
];

/// List, show and compare kept runs
///
/// `--save` or `--save=NAME` keeps a run of trace, anatomy, race, limits, lab run or copy;
/// `history.always = true` in iotomy/config.toml under XDG_CONFIG_HOME, or IOTOMY_HISTORY=always,
/// keeps every run. RUN is the number of a run, a name (the run kept last under it), or `last` (the
/// run kept last of all); an imported run counts as kept when it is imported. A baseline is all
/// runs of one name. The history is the file iotomy/history.db under XDG_DATA_HOME
/// (~/.local/share).
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    #[command(subcommand)]
    what: HistoryCommand,
}

#[derive(Debug, Subcommand)]
enum HistoryCommand {
    List(read::ListArgs),
    Show(read::ShowArgs),
    Diff(compare::DiffArgs),
    Compare(compare::CompareArgs),
    Trend(read::TrendArgs),
    Name(change::NameArgs),
    Rm(change::RmArgs),
    Export(read::ExportArgs),
    Import(change::ImportArgs),
}

/// Lists, compares or changes runs.
///
/// # Errors
/// A run that is none, or a history that cannot be read or written.
pub(crate) fn run(args: &HistoryArgs) -> Result<ExitCode> {
    match &args.what {
        HistoryCommand::List(args) => read::list(args),
        HistoryCommand::Show(args) => read::show(args),
        HistoryCommand::Diff(args) => compare::diff(args),
        HistoryCommand::Compare(args) => compare::compare(args),
        HistoryCommand::Trend(args) => read::trend(args),
        HistoryCommand::Name(args) => change::name(args),
        HistoryCommand::Rm(args) => change::rm(args),
        HistoryCommand::Export(args) => read::export(args),
        HistoryCommand::Import(args) => change::import(args),
    }
}

/// The history's file.
fn place() -> Result<PathBuf, HistoryError> {
    store_file().ok_or(HistoryError::NoPlace)
}

/// The history, which has at least once been written to.
pub(super) fn opened() -> Result<Store> {
    let path = place()?;
    Store::open(&path)?.ok_or_else(|| HistoryError::Nothing { path }.into())
}

fn print(text: &str) -> Result<ExitCode> {
    pager::print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn pick(text: &str) -> Result<Pick, String> {
    match text.is_empty() {
        true => Err(String::from("expected the number or the name of a run")),
        false => Ok(Pick::from_text(text)),
    }
}

/// The machine that is asked for, if one is.
fn machine(store: &Store, asked: Option<&str>) -> Result<Option<KeptMachine>> {
    Ok(asked.map(|asked| store.machine(asked)).transpose()?)
}

/// The total number of these.
fn count(store: &Store, filter: &Filter) -> Result<u64> {
    let all = store.list(&Filter { last: None, ..filter.clone() })?;
    Ok(all.len() as u64)
}
