//! The verbs that only read the history: lists, records, trends.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use iotomy_history::{Asked, Filter, Pick, Store};
use iotomy_record::store::{KINDS, OutputFile};

use super::{count, machine, opened, pick, place, print};
use crate::manual::{DONE, FAILED, Manual};
use crate::screen::OutputStyle;
use crate::verbs::show;
use crate::verbs::view::ViewArgs;

/// The kinds of runs.
fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(KINDS)
}

pub(super) const LIST: Manual = Manual {
    examples: &[
        ("iotomy history list --kind race --last 10", "List the ten races kept last:"),
        ("iotomy history list make", "List the runs of commands with `make` in them:"),
    ],
    status: &[DONE, FAILED],
    see_also: &["iotomy-history-show(1)"],
};

/// List the kept runs, in the order they were kept
///
/// An imported record is listed by the time of its import, not of its run.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Only runs with this text in their command
    #[arg(value_name = "TEXT")]
    subject: Option<String>,

    /// Only runs of this kind
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    kind: Option<String>,

    /// Only runs with this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Only runs of this machine: its name, or a part of its name and hardware that only it has
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,

    /// Only the N runs kept last; 0 lists all
    #[arg(long, value_name = "N", default_value_t = 30)]
    last: u64,

    #[command(flatten)]
    looks: OutputStyle,
}

pub(super) fn list(args: &ListArgs) -> Result<ExitCode> {
    // That nothing was ever kept is an answer.
    let path = place()?;
    let (runs, all, kept) = match Store::open(&path)? {
        Some(store) => {
            let filter = Filter {
                kind: args.kind.clone(),
                name: args.name.clone(),
                subject: args.subject.clone(),
                machine: machine(&store, args.machine.as_deref())?,
                last: Some(args.last).filter(|last| *last > 0),
            };
            let kept = count(&store, &Filter::default())?;
            (store.list(&filter)?, count(&store, &filter)?, kept)
        }
        None => (Vec::new(), 0, 0),
    };
    let older = all.saturating_sub(runs.len() as u64);
    print(&iotomy_report::history(&runs, older, kept, &args.looks.on(&std::io::stdout())))
}

pub(super) const SHOW: Manual = Manual {
    examples: &[
        ("iotomy history show last", "Show the run that was kept last:"),
        ("iotomy history show main", "Show the last run with a name:"),
    ],
    status: &[DONE, FAILED],
    see_also: &["iotomy-show(1)"],
};

/// Print a run as the original run printed it
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The run: its number, its name, or `last`
    #[arg(value_name = "RUN", value_parser = pick)]
    run: Pick,

    #[command(flatten)]
    view: ViewArgs,

    #[command(flatten)]
    looks: OutputStyle,
}

pub(super) fn show(args: &ShowArgs) -> Result<ExitCode> {
    let store = opened()?;
    let kept = store.find(&args.run)?;
    let record = store.record(kept.id)?;
    print(&show::text(record, &args.view, &args.looks.on(&std::io::stdout())))
}

pub(super) const TREND: Manual = Manual {
    examples: &[
        ("iotomy history trend 'make -j2'", "Plot the wall times of a command:"),
        ("iotomy history trend limits --measure syscall", "Plot a limit of each machine:"),
        ("iotomy history trend 'make -j2' --machine node4", "Plot the times on one machine:"),
    ],
    status: &[DONE, FAILED],
    see_also: &["iotomy-history-compare(1)"],
};

/// Plot a measure of a command over time, with its step changes
///
/// Runs of several machines are kept apart: each machine has a chart, all with one scale. Detects a step change from the
/// ranks of the runs, or from a step far larger than their variation.
#[derive(Debug, clap::Args)]
pub(super) struct TrendArgs {
    /// The command as it was run, or a part of it that is unique to it; `limits`; or `lab NAME`
    #[arg(value_name = "CMD")]
    command: String,

    /// The measure to plot [default: the wall time, or the first available]
    #[arg(long, value_name = "NAME")]
    measure: Option<String>,

    /// Only runs of this kind [default: the kind with the least overhead]
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    kind: Option<String>,

    /// Only runs of this machine: its name, or a part of its name and hardware that only it has
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,

    /// Only the N newest runs of each machine
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=400))]
    last: u16,

    #[command(flatten)]
    looks: OutputStyle,
}

pub(super) fn trend(args: &TrendArgs) -> Result<ExitCode> {
    let store = opened()?;
    let machine = machine(&store, args.machine.as_deref())?;
    let trends = store.trends(&Asked {
        subject: &args.command,
        kind: args.kind.as_deref(),
        measure: args.measure.as_deref(),
        most: Some(usize::from(args.last)),
        machine: machine.as_ref(),
    })?;
    print(&iotomy_report::trends(&trends, &args.looks.on(&std::io::stdout())))
}

pub(super) const EXPORT: Manual = Manual {
    examples: &[
        ("iotomy history export 7 -o race.json", "Write the record of a run:"),
        ("iotomy history export last | iotomy report -", "Make a page of the last run:"),
    ],
    status: &[DONE, FAILED],
    see_also: &["iotomy-history-import(1)", "iotomy-report(1)"],
};

/// Write the record of a run, as `--json` does
#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// The run: its number, its name, or `last`
    #[arg(value_name = "RUN", value_parser = pick)]
    run: Pick,

    /// Write it to FILE instead of standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

pub(super) fn export(args: &ExportArgs) -> Result<ExitCode> {
    let here = crate::verbs::outputs::here();
    let store = opened()?;
    let kept = store.find(&args.run)?;
    OutputFile::write(&args.output, &here, &store.json(kept.id)?)?;
    Ok(ExitCode::SUCCESS)
}
