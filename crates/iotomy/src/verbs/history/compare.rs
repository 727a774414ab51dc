//! The comparison of runs.

use std::process::ExitCode;

use anyhow::{Result, bail};
use iotomy_history::{Candidate, Earlier, Pick, Store, against};
use iotomy_record::{Against, KeptRun, RaceVerdict};
use iotomy_report::DiffView;

use super::{machine, opened, pick, print};
use crate::manual::{DONE, FAILED, Manual};
use crate::screen::OutputStyle;
use crate::verbs::diff::{runs_of, sources_of_history as sources};

/// A check of the result failed.
const CHECK_FAILED: u8 = 1;

pub(super) const DIFF: Manual = Manual {
    examples: &[("iotomy history diff 3 last", "Compare two runs:")],
    status: &[DONE, FAILED],
    see_also: &["iotomy-history-compare(1)", "iotomy-diff(1)"],
};

/// Compare two runs: their conditions and their measurements
///
/// Traces and anatomies are compared as by `iotomy diff`: if A is a name, with all its runs but B, so that differences
/// are compared with the noise among these.
#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// The earlier run: its number, its name, or `last`; for a name, all its runs but B
    #[arg(value_name = "A", value_parser = pick)]
    earlier: Pick,

    /// The later run
    #[arg(value_name = "B", value_parser = pick)]
    later: Pick,

    #[command(flatten)]
    looks: OutputStyle,
}

pub(super) fn diff(args: &DiffArgs) -> Result<ExitCode> {
    let store = opened()?;
    let later = store.find(&args.later)?;
    let style = args.looks.on(&std::io::stdout());
    if !ROW_BY_ROW.contains(&&*later.kind) {
        // Two runs of any machines may be viewed; only a baseline judges.
        return print(&iotomy_report::against(&held(&store, &args.earlier, &later, true)?, &style));
    }
    let earlier = runs_of(&store, &args.earlier, Some(&later))?;
    let found = iotomy_diff::diff(&sources(&store, earlier)?, &sources(&store, vec![later])?)?;
    print(&iotomy_report::diff(&found, DiffView::default(), &style))
}

/// The kinds of runs whose tables are compared row by row.
const ROW_BY_ROW: [&str; 2] = ["trace", "anatomy"];

pub(super) const COMPARE: Manual = Manual {
    examples: &[
        (
            "iotomy history compare --baseline main",
            "Compare the last run of a command with its baseline:",
        ),
        (
            "iotomy history compare --baseline main 12 --check",
            "Check in a script whether run 12 is slower:",
        ),
    ],
    status: &[
        ("0", "The runs were compared; with --check, nothing is slower."),
        ("1", "Something is slower, with --check."),
        (
            "2",
            "The command line is wrong, there is no such run, the baseline is of another machine, or --check \
             can judge nothing.",
        ),
    ],
    see_also: &["iotomy-history-diff(1)", "iotomy-race(1)"],
};

/// Compare a run with a baseline
///
/// A baseline is one run, or all runs of one name on the machine of the run; no other run changes it. Prints the ratios of
/// the unpaired runs with their 95 % confidence intervals. A baseline of another machine is an
/// error; if kernel or caches differ, there is no verdict.
#[derive(Debug, clap::Args)]
pub(super) struct CompareArgs {
    /// The baseline: all runs with this name, or the run with this number
    #[arg(long, value_name = "NAME", value_parser = pick)]
    baseline: Pick,

    /// The run to compare [default: the last run of the same command, made or kept after the
    /// baseline]
    #[arg(value_name = "RUN", value_parser = pick)]
    run: Option<Pick>,

    /// Compare the last run on this machine: its name, or a part of its name and hardware that only it has
    #[arg(long, value_name = "NAME", conflicts_with = "run")]
    machine: Option<String>,

    /// Exit with status 1 if something is slower, and with 2 if there is no verdict: the conditions
    /// differ, or there are too few measurements
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    looks: OutputStyle,
}

pub(super) fn compare(args: &CompareArgs) -> Result<ExitCode> {
    let store = opened()?;
    let run = match &args.run {
        Some(run) => store.find(run)?,
        None => {
            let machine = machine(&store, args.machine.as_deref())?;
            store.newest_after(&args.baseline, machine.as_ref())?
        }
    };
    let found = held(&store, &args.baseline, &run, false)?;
    print(&iotomy_report::against(&found, &args.looks.on(&std::io::stdout())))?;
    if args.check { checked(&found) } else { Ok(ExitCode::SUCCESS) }
}

/// How a check of a comparison ends.
///
/// # Errors
/// Differences in the conditions, or too little data, so that there is no verdict.
pub(in crate::verbs) fn checked(found: &Against) -> Result<ExitCode> {
    let reasons: Vec<&str> = found
        .differences
        .iter()
        .filter(|difference| difference.matters)
        .map(|difference| difference.what.as_str())
        .collect();
    if !reasons.is_empty() {
        bail!(
            "cannot check against {}: not measured under the same conditions ({}); keep a baseline under these",
            found.baseline,
            reasons.join(", ")
        );
    }
    let mut judged = found.changes.iter().filter(|one| one.verdict.is_some());
    if judged.all(|one| one.ci95.is_none()) {
        bail!(
            "cannot check against {}: there are too few measurements to judge by; keep a baseline of 3 \
             sessions or more, or make more runs",
            found.baseline
        );
    }
    let is_slower = found.changes.iter().any(|one| one.verdict == Some(RaceVerdict::Slower));
    Ok(if is_slower { ExitCode::from(CHECK_FAILED) } else { ExitCode::SUCCESS })
}

fn held(store: &Store, earlier: &Pick, later: &KeptRun, is_unjudged: bool) -> Result<Against> {
    let record = store.record(later.id)?;
    let candidate = Candidate { is_unjudged, ..Candidate::kept(later, record.as_ref()) };
    let earlier = Earlier::load(store, earlier, &candidate)?;
    Ok(against(&earlier, record.as_ref(), &later.version)?)
}
