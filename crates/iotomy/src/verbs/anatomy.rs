//! `iotomy anatomy`: a trace with the time of each call split into the layers of the kernel.
//!
//! As with `trace`, once a command runs, its run is never lost: later errors are printed, and the
//! command's own exit status stands, unless it was 0.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow, bail};
use iotomy_host::rfc3339;
use iotomy_observe::anatomy::{self, Dissection, SampleSettings};
use iotomy_observe::{ObserveError, Request, Target};
use iotomy_record::store::{OutputFile, RecordRef};
use iotomy_record::{Anatomy, Trace, View, store};
use iotomy_report::Style;
use iotomy_sys::launch::Command;

use super::outputs::Outputs;
use super::saving::SaveArgs;
use super::target::{self, RUNNING, TargetArgs};
use super::trace::{
    Refusal, UserArgs, WATCH_STATUS, command, ended, filter, launch_status, seconds, watching,
};
use super::{judging, outputs};
use crate::errors::print_error;
use crate::manual::Manual;
use crate::screen::{OutputStyle, path_text};

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        (
            "iotomy anatomy -- dd if=file of=copy bs=8192",
            "Split the system calls of a command \
            into layers:",
        ),
        (
            "iotomy anatomy --timeline=1 -- dd if=file of=copy conv=fsync",
            "List the kernel events inside the slowest call that reads and the slowest that \
             writes:",
        ),
        (
            "iotomy anatomy --svg flames.svg --rate 5000 -- git status",
            "Draw a flame graph from 5000 samples per second on each CPU:",
        ),
        (
            "iotomy anatomy --json before.json -- cat file\n\
             iotomy anatomy --against before.json --svg difference.svg -- dd if=file",
            "Draw the difference between two commands:",
        ),
    ],
    status: WATCH_STATUS,
    see_also: &["iotomy-trace(1)", "iotomy-show(1)", "perf-record(1)"],
};

/// Show in which kernel layers a command's system calls spend their time
///
/// Runs CMD untouched, as `trace` does, and samples it at a fixed rate. The report splits the time
/// of each system call into layers, such as the page cache, the file system, its journal or the
/// scheduler, with the hottest functions, and blocked time by its cause. The parts add up to the
/// call's time in the trace, and each has its sampling error.
#[derive(Debug, clap::Args)]
#[command(override_usage = "iotomy anatomy [OPTIONS] [--] CMD [ARG]…\n       \
                      iotomy anatomy [OPTIONS] -p PID\n       \
                      iotomy anatomy [OPTIONS] --name PATTERN | --unit NAME | --container NAME | \
                      --cgroup PATH\n       \
                      iotomy anatomy [OPTIONS] -a")]
#[command(groups = target::groups())]
pub(crate) struct AnatomyArgs {
    /// The command to run, with its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true, conflicts_with = RUNNING)]
    command: Vec<OsString>,

    #[command(flatten)]
    target: TargetArgs,

    /// Stop watching after SECONDS; a command runs on, and iotomy waits for it
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,

    /// Wait for every process that the command leaves running
    #[arg(long, conflicts_with = RUNNING)]
    wait: bool,

    #[command(flatten)]
    user: UserArgs,

    /// Split only the calls for which EXPR holds, as in 'call == "fsync" && duration > 10ms'
    #[arg(long = "where", value_name = "EXPR", allow_hyphen_values = true, long_help = where_help())]
    r#where: Option<String>,

    /// Samples a second on each CPU; a rate that fits the kernel's tick, as 1000 does, is wrong about what
    /// timers wake
    #[arg(long, value_name = "HZ", default_value_t = RATE, value_parser = clap::value_parser!(u32).range(1..=MOST))]
    rate: u32,

    /// Record user-space call stacks as well, of programs built with frame pointers; raises the
    /// overhead
    #[arg(long)]
    user_stacks: bool,

    /// List the kernel events inside the N slowest calls that read and the N slowest that write, in
    /// order of time; without N, 3
    #[arg(long, alias = "story", value_name = "N", num_args = 0..=1, require_equals = true,
        default_missing_value = "3",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(anatomy::MOST_TIMELINES)))]
    timeline: Option<u32>,

    /// Show at most N calls; 0 shows all
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Show the most important on one screen: at most 24 lines of 80 columns; the record has everything
    #[arg(long, conflicts_with_all = ["top", "timeline"])]
    brief: bool,

    /// Write folded stacks to FILE, one line per stack with its time in µs
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,

    /// Write a flame graph to FILE
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Make the flame graph of --svg show the difference from this record of `anatomy --json`
    #[arg(long, value_name = "RECORD")]
    against: Option<PathBuf>,

    /// Write the record to FILE; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    save: SaveArgs,

    /// Write the report to FILE instead of standard error; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print no report; --output still writes it
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    looks: OutputStyle,
}

/// Not in step with the kernel's clock ticks, nor with programs that run at round rates.
const RATE: u32 = 997;

/// Where a sample takes 40 µs, as it does in some virtual machines, this many take two fifths of the time;
/// a few times as many leave none for the command.
const MOST: i64 = 10_000;

/// The help of `--where`.
fn where_help() -> String {
    filter::help(
        "Split only the calls for which EXPR holds, as in 'call == \"fsync\" && duration > 10ms'",
        "The time of all other calls is one row. Samples and sleeps are set aside until the call that \
         they are in returns and the condition decides.",
    )
}

/// Watches, dissects, reports, and leaves with the command's own status.
pub(crate) fn run(args: &AnatomyArgs) -> Result<ExitCode> {
    let outputs = outputs::open(&files(args), &outputs::here())?;
    if let (Some(record), None) = (&args.against, &args.svg) {
        bail!(
            "cannot compare with {}: --against applies to the flame graph only; add --svg FILE",
            path_text(record)
        );
    }
    let against = args.against.as_ref().map(store::load_anatomy).transpose()?;
    let request = match request(args) {
        Ok(request) => request,
        Err(Refusal::Program(error, status)) => {
            print_error(&error);
            return Ok(ExitCode::from(status));
        }
        Err(Refusal::Other(error)) => return Err(error),
    };
    if args.command.is_empty() && !args.quiet {
        args.target.announce(&request.target, args.duration);
    }
    let started = rfc3339(SystemTime::now());
    let asked = SampleSettings {
        hz: args.rate,
        timelines: args.timeline.unwrap_or(0),
        user_stacks: args.user_stacks,
    };
    let (observation, dissection) = match anatomy::watch(&request, asked) {
        Ok(seen) => seen,
        Err(error) => {
            let status = launch_status(&error);
            print_error(&anyhow::Error::new(error));
            return Ok(ExitCode::from(status));
        }
    };
    if let Some(reason) = &dissection.block_refused {
        print_error(&anyhow!("block I/O is not shown: {reason}"));
    }
    let mut record = record(args, &request, started, observation, dissection);
    let is_kept = args.save.is_wanted();
    if reports(args) || args.json.is_some() || is_kept {
        record.trace.findings =
            judging::findings(args.quiet, |limits| iotomy_findings::anatomy(&record, limits));
    }
    let written = write_out(args, &record, against.as_ref(), outputs);
    let kept = !is_kept || args.save.keep(RecordRef::Anatomy(&record), args.quiet);
    Ok(ended(record.trace.exit, written, kept))
}

/// The outputs there may be, with the options that name them.
fn files(args: &AnatomyArgs) -> [(&'static str, Option<&Path>); 4] {
    [
        ("--json", args.json.as_deref()),
        ("--output", args.output.as_deref()),
        ("--folded", args.folded.as_deref()),
        ("--svg", args.svg.as_deref()),
    ]
}

/// Whether there is a report: --quiet keeps it from standard error, and from no file.
fn reports(args: &AnatomyArgs) -> bool {
    !args.quiet || args.output.is_some()
}

fn request(args: &AnatomyArgs) -> Result<Request, Refusal> {
    let target = match args.target.target()? {
        Some(target) => target,
        None => Target::Command(command(&args.command, &args.user)?),
    };
    let request = Request {
        wait: args.wait,
        duration: args.duration,
        // Of the whole machine they are too many.
        files: !args.target.is_machine(),
        // Nothing tells whether a condition holds for the request that a sample is of.
        ring_operations: args.r#where.is_some().then(BTreeSet::new),
        filter: filter::filter(args.r#where.as_deref(), None, &[])?,
        ..Request::new(target)
    };
    filter::check(&request, args.r#where.is_some(), false)?;
    Ok(request)
}

fn record(
    args: &AnatomyArgs,
    request: &Request,
    started: String,
    seen: Trace,
    dissection: Dissection,
) -> Anatomy {
    let view = View {
        r#where: args.r#where.clone().unwrap_or_default(),
        top: args.top,
        wait: args.wait,
        machine: args.target.is_machine(),
        only: args.target.is_only(),
        ..View::default()
    };
    let trace = match &request.target {
        Target::Command(command) => watching::record(command, started.clone(), seen, view),
        _ => {
            let targets = args.target.watched();
            Trace { targets, ..watching::assemble(Vec::new(), started.clone(), seen, view) }
        }
    };
    assemble(trace, started, dissection)
}

/// Watches a command to its end, for `race`: the observation, and its dissection.
pub(super) fn command_dissected(
    command: &Command,
    started: &str,
    user_stacks: bool,
) -> Result<(Trace, Anatomy), ObserveError> {
    let asked = SampleSettings { hz: RATE, user_stacks, ..SampleSettings::default() };
    let (seen, dissection) = anatomy::watch(&watching::everything(command), asked)?;
    let view = View::default();
    let trace = watching::record(command, started.to_owned(), seen.clone(), view);
    Ok((seen, assemble(trace, started.to_owned(), dissection)))
}

fn assemble(trace: Trace, started: String, dissection: Dissection) -> Anatomy {
    Anatomy {
        schema: Anatomy::SCHEMA.to_owned(),
        started,
        trace,
        sampling: dissection.sampling,
        calls: dissection.calls,
        stacks: dissection.stacks,
        block: dissection.block,
        timelines: dissection.timelines,
    }
}

/// The report first, then the record: an output that fails must not prevent the others.
fn write_out(
    args: &AnatomyArgs,
    record: &Anatomy,
    against: Option<&Anatomy>,
    mut outputs: Outputs,
) -> Result<()> {
    let text = |style: &Style| match args.brief {
        true => iotomy_report::anatomy_brief(record, style),
        false => iotomy_report::anatomy(record, style),
    };
    let reported = match reports(args) {
        true => outputs::report(outputs.take("--output"), args.looks, text),
        false => Ok(()),
    };
    let saved = outputs.take("--json").map(|to| Ok(RecordRef::Anatomy(record).save(to)?));
    let folded =
        outputs.take("--folded").map(|to| Ok(to.put(iotomy_report::folded(record).as_bytes())?));
    let drawn = outputs.take("--svg").map(|to| draw(to, record, against));
    let rest = [saved, folded, drawn].into_iter().flatten();
    outputs::all([reported.map_err(Into::into)].into_iter().chain(rest))
}

fn draw(to: OutputFile, record: &Anatomy, against: Option<&Anatomy>) -> Result<()> {
    let picture = match against {
        None => iotomy_report::flame(record),
        Some(before) => iotomy_report::difference(before, record),
    };
    let picture =
        picture.with_context(|| format!("cannot draw {}: no time was seen", to.name()))?;
    Ok(to.put(picture.as_bytes())?)
}
