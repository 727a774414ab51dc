//! `iotomy trace`: watches the system calls of a command, a process or the machine.
//!
//! Once a command runs, its run is never lost: a later error of the report or the record is
//! printed, and the command's own exit status stands, unless it was 0.

mod calls;
mod filter;
mod intervals;
mod live;
mod user;
pub(super) mod watching;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use iotomy_host::rfc3339;
use iotomy_observe::{OBSERVERS, Observation, ObserveError, Request, Target};
use iotomy_record::store::RecordRef;
use iotomy_record::{Exit, Trace, View};
use iotomy_report::Style;
use iotomy_report::live::Setting;
use iotomy_sys::launch::{Command, LaunchError, find_program};

use self::intervals::IntervalView;
use self::live::LiveView;
pub(super) use self::user::UserArgs;
use super::outputs::Outputs;
use super::saving::SaveArgs;
use super::target::{self, RUNNING, TargetArgs};
use super::view::ViewArgs;
use super::{judging, outputs};
use crate::errors::{COULD_NOT_RUN, print_error};
use crate::manual::{Fact, Manual};
use crate::screen::OutputStyle;

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        ("iotomy trace -- dd if=file of=copy bs=8192", "Watch a command:"),
        (
            "iotomy trace --files --call %io -- make",
            "Count only the calls that move bytes, and count by file:",
        ),
        (
            "iotomy trace --quantize wall --call read -p 1234 -d 10",
            "Watch a running process for 10 seconds, and show the times of its reads:",
        ),
        (
            "iotomy trace --unit nginx -d 10\niotomy trace --name 'postgres*' -d 10",
            "Watch a service, or all processes of a name, for 10 seconds:",
        ),
        (
            "iotomy trace --slowest 10 --call fsync,fdatasync -p 1234 -d 60",
            "Keep the ten slowest syncs of a minute, with their files and who woke them:",
        ),
        ("iotomy trace --live -- make", "Show live counts:"),
        (
            "iotomy trace -i 1 --unit nginx\niotomy trace -i 1 -q --json - --unit nginx | jq -c .calls[0]",
            "Report each second, or write a record of each second in a line:",
        ),
        (
            "iotomy trace --json run.json -- ls -lR /usr\niotomy show --top 3 run.json",
            "Keep the record, and show it again with shorter tables:",
        ),
    ],
    status: WATCH_STATUS,
    see_also: &[
        "iotomy-anatomy(1)",
        "iotomy-race(1)",
        "iotomy-show(1)",
        "strace(1)",
        "perf-trace(1)",
    ],
};

/// How a watch of a command ends.
pub(super) const WATCH_STATUS: &[Fact] = &[
    ("status of CMD", "CMD ran and exited. Without a CMD it is 0."),
    ("128 + n", "Signal n ended CMD."),
    ("127", "There is no such program."),
    ("126", "The program cannot be executed."),
    (
        "2",
        "The command line is wrong, the watch could not begin, or CMD succeeded and its report or record \
         could not be written, or its run not be kept (--save).",
    ),
];

/// Trace the system calls of a command and account for its time
///
/// Runs CMD with its standard input, output, signals and exit status untouched, and follows every
/// process and thread it starts. When CMD ends, prints a report on standard error: system calls
/// with their counts, errors, bytes, times and distributions, and a ledger that accounts for all
/// thread time.
#[derive(Debug, clap::Args)]
#[command(override_usage = "iotomy trace [OPTIONS] [--] CMD [ARG]…\n       \
                      iotomy trace [OPTIONS] -p PID\n       \
                      iotomy trace [OPTIONS] --name PATTERN | --unit NAME | --container NAME | \
                      --cgroup PATH\n       \
                      iotomy trace [OPTIONS] -a")]
#[command(groups = target::groups())]
pub(crate) struct TraceArgs {
    /// The command to run, with its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true, conflicts_with = RUNNING)]
    command: Vec<OsString>,

    #[command(flatten)]
    target: TargetArgs,

    /// Stop watching after SECONDS; a command runs on, and iotomy waits for it
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,

    /// Show live counts on the whole terminal; the report follows at the end
    ///
    /// The view shows calls, files, processes and the time ledger of each second; `?` lists the
    /// keys. The command's terminal output goes to a pseudo-terminal: the view shows its last
    /// lines, and all of it follows when the view closes. The command reads nothing from the
    /// terminal.
    #[arg(long)]
    live: bool,

    /// Report what came in each interval of SECONDS, instead of the whole at the end
    ///
    /// Prints a line of sums and the calls that took most time. With --json, each interval is a
    /// record in one line of its own (JSON Lines).
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "live")]
    interval: Option<Duration>,

    /// Wait for every process that the command leaves running
    #[arg(long, conflicts_with = RUNNING)]
    wait: bool,

    #[command(flatten)]
    user: UserArgs,

    /// The observer to use; auto takes the first that works here
    #[arg(long, value_name = "NAME", default_value = AUTO, value_parser = observers())]
    observer: String,

    /// Count only these system calls and groups, as in read,write,%file
    #[arg(long = "call", value_name = "NAME,…", value_delimiter = ',', long_help = calls::help())]
    calls: Vec<String>,

    /// Count only the calls for which EXPR holds, as in 'call == "read" && bytes < 512'
    #[arg(long = "where", value_name = "EXPR", long_help = filter::help())]
    r#where: Option<String>,

    /// Count calls by the values of up to four variables as well, as in call,path
    #[arg(long, value_name = "VAR,…", value_delimiter = ',', long_help = filter::help_by())]
    by: Vec<String>,

    /// Count reads and writes by file as well
    #[arg(long)]
    files: bool,

    /// Show the other ends of sockets and pipes, with the bytes each way
    #[arg(long)]
    peers: bool,

    /// Count calls by the paths they are given as well, by outcome
    ///
    /// As in: which paths the 507 openat calls asked for that failed by ENOENT.
    #[arg(long)]
    paths: bool,
    /// Show what each thread did: its name, calls, on-CPU and blocked time, and longest call
    #[arg(long)]
    threads: bool,

    /// Keep the N slowest calls whole: when, who, arguments, path, bytes, who woke them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(Request::MOST_SLOW)))]
    slowest: Option<u32>,

    /// Keep identical program images separate in the report and the record
    ///
    /// Without it, more than four images of one program under the same names share one entry in
    /// each table, with their number and sums. Processes that the command forks share one row of
    /// the report until they execute another program.
    #[arg(long)]
    each: bool,

    #[command(flatten)]
    view: ViewArgs,

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

    /// Maximum number of rows in each table of the observer; entries that do not fit are counted as
    /// lost
    #[arg(long, value_name = "N", default_value_t = Request::ROWS, value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    max_rows: u32,

    #[command(flatten)]
    looks: OutputStyle,
}

pub(super) const AUTO: &str = "auto";

pub(super) fn observers() -> impl TypedValueParser<Value = String> {
    let names = OBSERVERS.iter().map(|observer| {
        let declaration = observer.declaration();
        clap::builder::PossibleValue::new(declaration.name).help(declaration.summary)
    });
    let auto = clap::builder::PossibleValue::new(AUTO).help("the first of these that works here");
    PossibleValuesParser::new([auto].into_iter().chain(names))
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 =
        text.parse().map_err(|_| String::from("invalid duration: expected seconds, as in 2.5"))?;
    if seconds.is_nan() || seconds <= 0.0 {
        return Err(String::from("invalid duration: expected more than 0 seconds"));
    }
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("invalid duration: {text} seconds is too long"))
}

/// Watches, reports, and leaves with the command's own status.
pub(crate) fn run(args: TraceArgs) -> Result<ExitCode> {
    let files = [("--json", args.json.as_deref()), ("--output", args.output.as_deref())];
    let mut outputs = outputs::open(&files, &outputs::here())?;
    let request = match request(&args) {
        Ok(request) => request,
        Err(Refusal::Program(error, status)) => {
            print_error(&error);
            return Ok(ExitCode::from(status));
        }
        Err(Refusal::Other(error)) => return Err(error),
    };
    let mut request = request;
    let mut view = args.live.then(|| live_view(&args, &mut request)).transpose()?;
    if args.command.is_empty() && !args.quiet && !args.live {
        args.target.announce(&request.target, args.duration);
    }
    let started = rfc3339(SystemTime::now());
    let mut intervals =
        args.interval.map(|every| interval_view(&args, &request, every, &mut outputs));
    let viewer = match (&mut view, &mut intervals) {
        (Some(view), _) => Some(view as _),
        (None, intervals) => intervals.as_mut().map(|view| view as _),
    };
    let watched = watching::watch(&args.observer, &request, viewer);
    // The terminal is the report's from here on, and an error's.
    drop(view);
    let observation = match watched {
        Ok(observation) => observation,
        Err(error) => {
            let status = launch_status(&error);
            print_error(&anyhow::Error::new(error));
            return Ok(ExitCode::from(status));
        }
    };
    let mut record = record(&args, &request, started, observation);
    let is_kept = args.save.is_wanted();
    let wants_findings = reports(&args) || args.json.is_some();
    if (wants_findings && intervals.is_none()) || is_kept {
        record.findings =
            judging::findings(args.quiet, |limits| iotomy_judge::trace(&record, limits));
    }
    let of_intervals = intervals.map(|intervals| intervals.finish(&record));
    // The findings need each process by itself.
    if !args.each {
        record.roll_up();
    }
    let written = of_intervals.unwrap_or_else(|| write_out(&args, &record, outputs));
    let kept = !is_kept || args.save.keep(RecordRef::Trace(&record), args.quiet);
    Ok(ended(record.exit, written, kept))
}

/// The exit status: the command's, unless that is 0 and an output failed.
pub(super) fn ended(exit: Option<Exit>, written: Result<()>, is_kept: bool) -> ExitCode {
    let own = u8::try_from(exit.map_or(0, Exit::status)).unwrap_or(u8::MAX);
    let failed = written.map_err(|error| print_error(&error)).is_err() || !is_kept;
    ExitCode::from(if own == 0 && failed { COULD_NOT_RUN } else { own })
}

/// The live view, and the command's streams as it leaves them.
fn live_view(args: &TraceArgs, request: &mut Request) -> Result<LiveView> {
    let subject = match &request.target {
        Target::Command(command) => {
            let words = command.argv.iter().map(|word| word.to_string_lossy());
            words.collect::<Vec<_>>().join(" ")
        }
        Target::Running(_) | Target::Machine => args.target.description(),
    };
    let setting = Setting {
        subject,
        files: request.files,
        is_command: matches!(request.target, Target::Command(_)),
        ..args.looks.of_a_screen()
    };
    let common = record(args, request, rfc3339(SystemTime::now()), Observation::nothing());
    let mut view = LiveView::open(setting, common, args.each)?;
    if let Target::Command(command) = &mut request.target {
        command.setup.streams = Some(view.streams()?);
    }
    Ok(view)
}

/// The view of `--interval`, with the outputs.
fn interval_view(
    args: &TraceArgs,
    request: &Request,
    every: Duration,
    outputs: &mut Outputs,
) -> IntervalView {
    let nothing = Observation::nothing();
    let common = record(args, request, rfc3339(SystemTime::now()), nothing);
    let text = reports(args).then(|| {
        let to = outputs.take("--output");
        let style = match &to {
            None => args.looks.on(&std::io::stderr()),
            Some(to) if to.is_standard() => args.looks.on(&std::io::stdout()),
            Some(_) => args.looks.in_a_file(),
        };
        (style, to)
    });
    IntervalView::new(every, common, text, outputs.take("--json"))
}

/// Why there is nothing to watch.
pub(super) enum Refusal {
    /// The program cannot be run: the shell's status for it.
    Program(anyhow::Error, u8),
    Other(anyhow::Error),
}

impl From<anyhow::Error> for Refusal {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

fn request(args: &TraceArgs) -> Result<Request, Refusal> {
    let target = match args.target.target()? {
        Some(target) => target,
        None => Target::Command(command(&args.command, &args.user)?),
    };
    Ok(Request {
        target,
        wait: args.wait,
        duration: args.duration,
        // The findings need them; of the whole machine they are too many.
        files: args.files || args.peers || !args.target.is_machine(),
        paths: args.paths,
        threads: args.threads,
        slowest: args.slowest.unwrap_or(0),
        calls: calls::calls(&args.calls)?,
        filter: filter::filter(args.r#where.as_deref(), &args.by)?,
        rows: args.max_rows,
    })
}

/// The command for `argv`, run as `user` or as the current user.
pub(super) fn command(argv: &[OsString], user: &UserArgs) -> Result<Command, Refusal> {
    let name = argv.first().map(OsString::as_os_str).unwrap_or_default();
    let mut command = Command { argv: argv.to_vec(), ..Command::default() };
    user.apply_to(&mut command)?;
    // As the user would find it.
    let own = command.environment.iter().find(|(name, _)| name == "PATH");
    let path = own.map(|(_, path)| path.clone()).or_else(|| std::env::var_os("PATH"));
    command.program = find_program(name, path.as_deref()).map_err(|error| {
        let status = exec_status(&error);
        let said = anyhow::anyhow!("cannot run {name:?}: {error}{}", program_hint(name, &error));
        Refusal::Program(said, status)
    })?;
    Ok(command)
}

/// The advice when there is no program to run.
pub(super) fn program_hint(name: &OsStr, error: &std::io::Error) -> &'static str {
    let is_path = name.as_encoded_bytes().contains(&b'/');
    match error.kind() {
        std::io::ErrorKind::NotFound if is_path => "; check the path",
        std::io::ErrorKind::NotFound => "; no directory in $PATH contains it",
        std::io::ErrorKind::PermissionDenied if is_path => {
            "; check with `ls -l` that it is \
            executable"
        }
        std::io::ErrorKind::IsADirectory => "; name a program in it",
        _ => "",
    }
}

/// As a shell has it: 127 for a program that is not there, 126 for one that cannot be run.
fn exec_status(error: &std::io::Error) -> u8 {
    if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
}

/// As a shell has it, where the command could not be started.
pub(super) fn launch_status(error: &ObserveError) -> u8 {
    match error {
        ObserveError::Launch(LaunchError::Exec { source, .. }) => exec_status(source),
        _ => COULD_NOT_RUN,
    }
}

fn record(args: &TraceArgs, request: &Request, started: String, seen: Observation) -> Trace {
    let mut view = View {
        calls: args.calls.clone(),
        r#where: args.r#where.clone().unwrap_or_default(),
        files: args.files,
        peers: args.peers,
        paths: args.paths,
        threads: args.threads,
        slowest: args.slowest.unwrap_or(0),
        wait: args.wait,
        machine: args.target.is_machine(),
        each: args.each,
        only: args.target.is_only(),
        ..View::default()
    };
    args.view.apply_to(&mut view);
    match &request.target {
        Target::Command(command) => watching::record(command, started, seen, view),
        _ => {
            let targets = args.target.watched();
            Trace { targets, ..watching::assemble(Vec::new(), started, seen, view) }
        }
    }
}

/// Whether there is a report: --quiet keeps it from standard error, and from no file.
fn reports(args: &TraceArgs) -> bool {
    !args.quiet || args.output.is_some()
}

/// The report first: a record that cannot be written must not cost it.
fn write_out(args: &TraceArgs, record: &Trace, mut outputs: Outputs) -> Result<()> {
    let text = |style: &Style| match args.view.is_brief() {
        true => iotomy_report::trace_brief(record, style),
        false => iotomy_report::trace(record, style),
    };
    let reported = match reports(args) {
        true => outputs::report(outputs.take("--output"), args.looks, text),
        false => Ok(()),
    };
    let saved = outputs.take("--json").map(|to| RecordRef::Trace(record).save(to));
    outputs::all([Some(reported), saved].into_iter().flatten().map(|one| one.map_err(Into::into)))
}
