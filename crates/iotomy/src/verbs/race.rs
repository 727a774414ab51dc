//! `iotomy race`: commands against each other, and why one is faster.
//!
//! The flow:
//!
//! 1. `sys::front` makes three processes of iotomy: whichever of them is killed, or any two at once, the others end
//!    what is left. `iotomy_race` fills in placeholders, splits the commands, and makes a process group whose leader
//!    outlives iotomy just long enough to kill it.
//! 2. Rounds of runs: `sys::timed` starts a command by a `clone` that shares memory until `execve`, and waits for it
//!    by `wait4`. A thread empties the pipes. `stats::sequential` decides when it is enough.
//! 3. Each command is traced by the function that this verb hands in, with the same group, streams and filter.
//! 4. `iotomy_race::attribution`, pure, computes terms and residual from the medians and the traces. Findings come
//!    from these; then identical images are put together (`Race::roll_up`).
//! 5. `report` renders the `record::Race`; `show` does only that.

mod baseline;
mod flames;
mod host;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use iotomy_host::rfc3339;
use iotomy_observe::Probe;
use iotomy_race::{Axis, Cache, Denial, Options, Output, RaceError, commands, race};
use iotomy_record::store::{OutputFile, RecordRef};
use iotomy_record::{Anatomy, Race};
use iotomy_sys::front;

use self::flames::Flames;
use self::host::CommandHost;
use super::outputs::Outputs;
use super::saving::SaveArgs;
use super::this_machine::machine;
use super::{history, judging, outputs};
use crate::errors::{COULD_NOT_RUN, print_error};
use crate::manual::Manual;
use crate::screen::{OutputStyle, StatusLine, shown};

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        ("iotomy race 'dd if=f of=g bs=8k' 'dd if=f of=g bs=1M'", "Race two commands:"),
        (
            "iotomy race 'cat f > g' 'cp f g' --prepare 'rm -f g'",
            "Remove the output before each run:",
        ),
        (
            "iotomy race 'dd if=f of=/dev/null bs={bs}' -L bs=4k,64k,1M",
            "Race one command against itself, with three values of a parameter:",
        ),
        (
            "iotomy race 'cp f g' 'cp f g' --deny B:copy_file_range=ENOSYS",
            "Measure the effect of a denied system call on a command:",
        ),
        (
            "iotomy race --json race.json 'ls -l' 'ls'\niotomy show race.json",
            "Keep the record, and show it again:",
        ),
        (
            "iotomy race --save=main 'make -j2'\niotomy race --against main --check 'make -j2'",
            "Keep a baseline, and exit with status 1 when a later race is slower:",
        ),
    ],
    status: &[
        ("0", "The race ended, with any verdict."),
        ("1", "A command is slower than the baseline, with --check."),
        (
            "2",
            "The race could not be run: a command is not there, fails (unless --ignore-failure) or does not \
             end, or a line of --setup or --prepare fails; --cleanup failed, or a result could not be \
             written or kept; --check can judge nothing; or the command line is wrong.",
        ),
        ("128 + n", "Signal n interrupted the race."),
    ],
    see_also: &["iotomy-trace(1)", "iotomy-history(1)", "hyperfine(1)", "perf-stat(1)"],
};

/// Race commands: find which is faster, by how much, and which calls make the difference
///
/// Runs the commands untraced, in random order within mirrored rounds, until the result is decided,
/// and prints the ratio of their times with its 95 % confidence interval (CI). Then traces each
/// command and accounts for the difference call by call. A single command is timed, traced and
/// accounted for alone. A command runs directly, or under `sh -c` if it contains redirections,
/// pipes or other shell syntax.
#[derive(Debug, clap::Args)]
#[command(override_usage = "iotomy race [OPTIONS] CMD…")]
pub(crate) struct RaceArgs {
    /// A command, quoted as one word; the first is the base that the others are compared with
    #[arg(value_name = "CMD", required = true)]
    commands: Vec<String>,

    /// Untimed warm-up runs of each command [default: 1 with --cache warm, else 0]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=10_000))]
    warmup: Option<u64>,

    /// Timed runs of each command [default: until decided, at most 128]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    runs: Option<u64>,

    /// The smallest difference to report, as in 0.5%; anything surely below it counts as no
    /// difference
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = share, allow_hyphen_values = true)]
    min_effect: f64,

    /// Time limit of the race; kills a command that is still running then, and all its processes
    /// [default: no new runs after 60 s]
    #[arg(long, value_name = "SECONDS", value_parser = super::trace::seconds)]
    max_time: Option<Duration>,

    /// Shell command to run before each run, not timed
    #[arg(long, value_name = "CMD")]
    prepare: Option<String>,

    /// Shell command to run once, before everything
    #[arg(long, value_name = "CMD")]
    setup: Option<String>,

    /// Shell command to run once, after everything, even after a failure
    #[arg(long, value_name = "CMD")]
    cleanup: Option<String>,

    /// State of the caches before each run
    #[arg(long, value_enum, value_name = "STATE", default_value_t = CacheArg::Warm)]
    cache: CacheArg,

    /// Drop all of the machine's caches before each run; needs root
    #[arg(long)]
    drop_caches: bool,

    /// Where the commands' standard output goes: null, pipe (drained by iotomy), file, inherit, or
    /// a path that contains a slash
    #[arg(long, value_name = "WHERE", default_value = "pipe",
        value_parser = OsStringValueParser::new().try_map(output))]
    output: Output,

    /// Accept commands that fail, and count the failures
    #[arg(short, long)]
    ignore_failure: bool,

    /// Substitute each of these values for {NAME} in the commands; repeatable
    #[arg(short = 'L', long = "parameter", value_name = "NAME=V,…")]
    axes: Vec<Axis>,

    /// Make a system call fail with ERRNO (default: ENOSYS), for all commands or for the one with
    /// this label, as in B:splice=EINVAL; repeatable
    #[arg(long, value_name = "[LABEL:]CALL[=ERRNO]")]
    deny: Vec<Denial>,

    /// Repeat the random order of an earlier race
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Repeat up to N rounds that other programs disturbed
    #[arg(long, value_name = "N", default_value_t = 0)]
    redo: u64,

    /// Only time the commands; do not trace them
    #[arg(long)]
    no_trace: bool,

    /// The observer to use; auto takes the first that works here
    #[arg(long, value_name = "NAME", default_value = super::trace::AUTO, value_parser = super::trace::observers())]
    observer: String,

    /// Write the record to FILE; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    save: SaveArgs,

    /// Compare with a baseline: all races kept under this name, or the race with this number.
    /// Prints the differences of the machine, and the ratio of the unpaired runs with its CI
    #[arg(long, value_name = "NAME")]
    against: Option<String>,

    /// Exit with status 1 if a command is slower than the baseline, and with 2 if there is no
    /// verdict: the conditions differ, or there are too few runs
    #[arg(long, requires = "against")]
    check: bool,

    /// Write every run to FILE as CSV
    #[arg(long, value_name = "FILE")]
    export_csv: Option<PathBuf>,

    /// Write the results as a Markdown table to FILE
    #[arg(long, value_name = "FILE")]
    export_markdown: Option<PathBuf>,

    /// Write a differential flame graph of two commands, B against A, to FILE; samples the traced
    /// runs and needs the privileges of `iotomy anatomy`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["no_trace", "observer"])]
    flame: Option<PathBuf>,

    /// Show user-space call stacks in the flame graph as well, of programs built with frame
    /// pointers
    #[arg(long, requires = "flame", conflicts_with_all = ["no_trace", "observer"])]
    user_stacks: bool,

    /// Print no report
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    looks: OutputStyle,
}

/// The treatment of caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CacheArg {
    /// Make untimed runs first
    Warm,
    /// Drop the files that the commands name from the page cache before each run
    Cold,
    /// Nothing
    Asis,
}

/// A share of 1 from `1%`, `0.5 %` or `0.01`.
fn share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').map(str::trim);
    let number = percent.unwrap_or(text).parse::<f64>();
    let number =
        number.map_err(|_| String::from("invalid percentage: expected something like 1%"))?;
    let share = if percent.is_some() { number / 100.0 } else { number };
    match (0.0..1.0).contains(&share) {
        true => Ok(share),
        false if percent.is_none() && (1.0..100.0).contains(&number) => Err(format!(
            "invalid percentage: {text} means {} %; for {text} % write {text}%",
            number * 100.0
        )),
        false => Err(String::from("invalid percentage: expected 0% or more, and less than 100%")),
    }
}

fn output(text: OsString) -> Result<Output, String> {
    match text.as_bytes() {
        b"null" => Ok(Output::Null),
        b"pipe" => Ok(Output::Pipe),
        b"file" => Ok(Output::File),
        b"inherit" => Ok(Output::Inherit),
        path if path.contains(&b'/') => Ok(Output::Path(text.into())),
        _ => {
            Err(String::from("expected null, pipe, file, inherit, or a path that contains a slash"))
        }
    }
}

/// Races, and prints the result to standard output.
pub(crate) fn run(args: &RaceArgs) -> Result<ExitCode> {
    let mut outputs = outputs::open(&files(args), &outputs::here())?;
    let options = options(args);
    if args.flame.is_some() {
        check_pair(&options)?;
        check_sampling()?;
    }
    let load = |name| baseline::load(name, args.save.name(), &options);
    let baseline = args.against.as_deref().map(load).transpose()?;
    front::split().context("cannot start the process that runs the race")?;
    let mut around = CommandHost {
        observer: args.observer.clone(),
        flames: args.flame.as_ref().map(|_| Flames::new(args.user_stacks)),
        progress: StatusLine::new(args.quiet),
    };
    let raced = race(&options, rfc3339(SystemTime::now()), machine(), &mut around);
    around.progress.clear();
    match raced {
        Ok(mut raced) => {
            let record = &mut raced.record;
            if let Some(flames) = around.flames.take() {
                flames.enter(record);
            }
            // A user who interrupts does not wait for limits to be measured.
            record.findings = match record.interrupted {
                Some(_) => {
                    judging::findings_by_kept(|limits| iotomy_findings::race(record, limits))
                }
                None => {
                    judging::findings(args.quiet, |limits| iotomy_findings::race(record, limits))
                }
            };
            // The findings need each process by itself.
            record.roll_up();
            if let Some(baseline) = &baseline {
                record.against = baseline::held(baseline, record);
            }
            let flame = outputs.take("--flame");
            let written = write_out(args, record, outputs);
            let is_kept = args.save.keep_if_wanted(RecordRef::Race(record), args.quiet);
            let drawn = flame.map_or(Ok(()), |to| draw(to, record));
            let written = outputs::all([written, drawn]);
            let interrupted = record.interrupted.map(|signal| interrupted(signal.cast_signed()));
            // A signal takes precedence over other errors, as it does when no run was made.
            if let (Some(code), Err(error)) = (interrupted, &written) {
                print_error(&anyhow!("{error:#}"));
                return Ok(code);
            }
            written?;
            let done = if is_kept { ExitCode::SUCCESS } else { ExitCode::from(COULD_NOT_RUN) };
            raced.cleaned.map_or_else(
                |error| Ok(failed(error)),
                |()| match (interrupted, &record.against) {
                    (Some(code), _) => Ok(code),
                    (None, Some(found)) if args.check => match history::checked(found) {
                        Ok(ExitCode::SUCCESS) => Ok(done),
                        checked => checked,
                    },
                    // The reason for the missing comparison was printed.
                    (None, None) if args.check => Ok(ExitCode::from(COULD_NOT_RUN)),
                    _ => Ok(done),
                },
            )
        }
        Err(error) => Ok(failed(error)),
    }
}

/// Prints an error with the command's own standard error; returns the exit status.
fn failed(error: RaceError) -> ExitCode {
    let said = match &error {
        RaceError::Interrupted(signal) => return interrupted(*signal),
        RaceError::Failed { stderr, .. } => stderr.clone(),
        _ => Vec::new(),
    };
    print_error(&anyhow::Error::new(error));
    show_stderr(&said);
    ExitCode::from(COULD_NOT_RUN)
}

/// How a program ends that a signal ended.
fn interrupted(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(COULD_NOT_RUN))
}

/// Prints the standard error of a failed command, line by line.
fn show_stderr(said: &[u8]) {
    let text = String::from_utf8_lossy(said);
    for line in text.lines() {
        // If standard error is closed, nothing can be reported.
        let _ = writeln!(std::io::stderr(), "  | {}", shown(line));
    }
}

/// The outputs there may be, with the options that name them.
fn files(args: &RaceArgs) -> [(&'static str, Option<&Path>); 4] {
    [
        ("--json", args.json.as_deref()),
        ("--export-csv", args.export_csv.as_deref()),
        ("--export-markdown", args.export_markdown.as_deref()),
        ("--flame", args.flame.as_deref()),
    ]
}

/// A difference needs two commands.
fn check_pair(options: &Options) -> Result<()> {
    match commands(options)?.len() {
        2 => Ok(()),
        1 => bail!(
            "cannot draw --flame: it compares two commands, and there is one; use `iotomy \
             anatomy --svg` for one command"
        ),
        some => {
            bail!("cannot draw --flame: it compares two commands, and there are {some}; race two")
        }
    }
}

/// That the traced runs can be sampled here is known before there are any.
fn check_sampling() -> Result<()> {
    match iotomy_observe::anatomy::probe() {
        Probe::Ready => Ok(()),
        Probe::Unsupported { reason, remedy } => bail!("cannot draw --flame: {reason}; {remedy}"),
    }
}

fn options(args: &RaceArgs) -> Options {
    let by_clock = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Short enough to be typed again.
        u64::from(now.subsec_nanos()) ^ (now.as_secs() & 0xfff) << 20
    };
    Options {
        commands: args.commands.clone(),
        axes: args.axes.clone(),
        denials: args.deny.clone(),
        output: args.output.clone(),
        cache: match args.cache {
            CacheArg::Warm => Cache::Warm,
            CacheArg::Cold => Cache::Cold,
            CacheArg::Asis => Cache::AsIs,
        },
        drop_caches: args.drop_caches,
        warmup: args.warmup,
        runs: args.runs,
        min_effect: args.min_effect,
        max_time: args.max_time,
        seed: args.seed.unwrap_or_else(by_clock),
        prepare: args.prepare.clone(),
        setup: args.setup.clone(),
        cleanup: args.cleanup.clone(),
        ignore_failure: args.ignore_failure,
        redo: args.redo,
        trace: !args.no_trace,
    }
}

/// Draws the differences of the second command from the first.
fn draw(to: OutputFile, race: &Race) -> Result<()> {
    let drawn: Option<Vec<Anatomy>> = race.commands.iter().map(flames::anatomy).collect();
    let Some([first, second]) = drawn.as_deref() else {
        bail!("cannot draw {}: not every command could be sampled", to.name());
    };
    let picture = iotomy_report::difference(first, second);
    let picture =
        picture.with_context(|| format!("cannot draw {}: no time was seen", to.name()))?;
    Ok(to.put(picture.as_bytes())?)
}

/// The report first, then the other outputs: one that fails must not prevent the others.
fn write_out(args: &RaceArgs, record: &Race, mut outputs: Outputs) -> Result<()> {
    let dash = Path::new("-");
    let takes_stdout = files(args).iter().any(|(_, path)| *path == Some(dash));
    let mut reported = Ok(());
    if !args.quiet {
        if takes_stdout {
            reported =
                outputs::report(None, args.looks, |style| iotomy_report::race(record, style));
        } else {
            let text = iotomy_report::race(record, &args.looks.on(&std::io::stdout()));
            reported = OutputFile::write(dash, Path::new(""), text.as_bytes());
        }
    }
    let saved = outputs.take("--json").map(|to| RecordRef::Race(record).save(to));
    let lines =
        outputs.take("--export-csv").map(|to| to.put(iotomy_report::race_csv(record).as_bytes()));
    let table = outputs
        .take("--export-markdown")
        .map(|to| to.put(iotomy_report::race_markdown(record).as_bytes()));
    let each = [Some(reported), saved, lines, table].into_iter().flatten();
    outputs::all(each.map(|one| one.map_err(Into::into)))
}
