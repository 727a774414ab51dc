//! `iotomy show`: a saved record as the run that made it printed it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use iotomy_record::store::{self, Record};
use iotomy_report::Style;

use super::view::ViewArgs;
use crate::manual::{DONE, FAILED, Manual};
use crate::pager;
use crate::screen::OutputStyle;

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        (
            "iotomy trace --json run.json -- make\niotomy show --sort calls --top 5 run.json",
            "Show a record again in another order:",
        ),
        ("iotomy history export last | iotomy show -", "Show a record from standard input:"),
    ],
    status: &[DONE, FAILED],
    see_also: &["iotomy-report(1)", "iotomy-history-show(1)"],
};

/// Print a saved record as the original run printed it
///
/// The record is of a trace, an anatomy, a race, limits, an experiment or a copy; a copy is printed
/// as with `--explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The record, as `--json` wrote it; `-` is standard input
    #[arg(value_name = "FILE")]
    record: PathBuf,

    #[command(flatten)]
    view: ViewArgs,

    #[command(flatten)]
    looks: OutputStyle,
}

/// Prints the record to standard output.
pub(crate) fn run(args: &ShowArgs) -> Result<ExitCode> {
    let style = args.looks.on(&std::io::stdout());
    let text = text(store::load(&args.record)?, &args.view, &style);
    pager::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A record in the form that its run printed, with the changes of `view`.
pub(super) fn text(record: Record, view: &ViewArgs, style: &Style) -> String {
    match record {
        Record::Trace(mut trace) => {
            view.apply_to(&mut trace.view);
            match view.is_brief() {
                true => iotomy_report::trace_brief(&trace, style),
                false => iotomy_report::trace(&trace, style),
            }
        }
        Record::Anatomy(mut anatomy) => {
            view.apply_to(&mut anatomy.trace.view);
            match view.is_brief() {
                true => iotomy_report::anatomy_brief(&anatomy, style),
                false => iotomy_report::anatomy(&anatomy, style),
            }
        }
        // All others have their own form, which these options do not change.
        Record::Race(race) => iotomy_report::race(&race, style),
        Record::Sweep(sweep) => iotomy_report::sweep(&sweep, style),
        Record::Copy(copy) => iotomy_report::copy(&copy, style),
        Record::Limits(limits) => iotomy_report::limits(&limits, style),
        Record::D(run) => iotomy_report::d(&run, style),
    }
}
