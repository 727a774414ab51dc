//! Runs held against one another.

use std::process::ExitCode;

use anyhow::Result;
use iotomy_history::{Earlier, Pick, Store, against};
use iotomy_record::{Against, Kept, RaceVerdict};

use super::{opened, pick, print};
use crate::screen::Looks;

/// A check of the result failed.
const CHECK_FAILED: u8 = 1;

/// Compare two runs: what differs around them, and what they measured
///
/// Of traces, every call is compared.
#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// The earlier run: its number, its name, or `last`
    #[arg(value_name = "A", value_parser = pick)]
    earlier: Pick,

    /// The later run
    #[arg(value_name = "B", value_parser = pick)]
    later: Pick,

    #[command(flatten)]
    looks: Looks,
}

pub(super) fn diff(args: &DiffArgs) -> Result<ExitCode> {
    let store = opened()?;
    let later = store.find(&args.later)?;
    let found = held(&store, &args.earlier, &later, true)?;
    print(&iotomy_report::against(&found, &args.looks.on(&std::io::stdout())))
}

/// Compare a run with a baseline
///
/// The ratios come with an interval of 95 %, of runs that are no pairs. Where machine, kernel or caches
/// differ, there is no verdict.
#[derive(Debug, clap::Args)]
pub(super) struct CompareArgs {
    /// The run to compare with: a name, of which the one kept last is meant, or a number
    #[arg(long, value_name = "NAME", value_parser = pick)]
    baseline: Pick,

    /// The run to compare [default: the one of the same command that was kept last, after the baseline]
    #[arg(value_name = "RUN", value_parser = pick)]
    run: Option<Pick>,

    /// End with status 1 where something is slower
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    looks: Looks,
}

pub(super) fn compare(args: &CompareArgs) -> Result<ExitCode> {
    let store = opened()?;
    let run = match &args.run {
        Some(run) => store.find(run)?,
        None => store.newest_like(&store.find(&args.baseline)?)?,
    };
    let found = held(&store, &args.baseline, &run, false)?;
    print(&iotomy_report::against(&found, &args.looks.on(&std::io::stdout())))?;
    let is_slower = found.changes.iter().any(|one| one.verdict == Some(RaceVerdict::Slower));
    Ok(if args.check && is_slower { ExitCode::from(CHECK_FAILED) } else { ExitCode::SUCCESS })
}

fn held(store: &Store, earlier: &Pick, later: &Kept, in_detail: bool) -> Result<Against> {
    let earlier = Earlier::load(store, earlier, Some(later.id))?;
    let record = store.record(later.id)?;
    Ok(against(&earlier, record.as_ref(), &later.version, in_detail)?)
}
