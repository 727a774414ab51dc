//! `iotomy trace`: watches the system calls of a command, a process or the machine.
//!
//! Once a command runs, its run is never lost: a later error of the report or the record is
//! printed, and the command's own exit status stands, unless it was 0.

mod calls;
pub(super) mod filter;
mod intervals;
mod live;
mod own_use;
mod recorder;
mod resolving;
mod ring;
mod status;
mod text;
mod user;
mod views;
pub(super) mod watching;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow};
use clap::ArgGroup;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use iotomy_host::rfc3339;
use iotomy_observe::{OBSERVERS, ObserveError, Request, Target, name_callers};
use iotomy_record::store::{OutputFile, RecordRef};
use iotomy_record::{Trace, View};
use iotomy_report::Style;
use iotomy_sys::launch::{Command, LaunchError, find_program};

use self::calls::Chosen;
pub(super) use self::calls::groups;
use self::status::TRACE_STATUS;
pub(super) use self::status::{WATCH_STATUS, ended};
use self::text::report_text;
pub(super) use self::user::UserArgs;
use super::outputs::Outputs;
use super::saving::SaveArgs;
use super::target::{self, RUNNING, TargetArgs};
use super::view::ViewArgs;
use super::{judging, outputs};
use crate::errors::{COULD_NOT_RUN, print_error};
use crate::manual::Manual;
use crate::screen::{OutputStyle, path_text};

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
            "iotomy trace -q --until 'errno == EIO' -d 60 --unit postgresql; [ $? = 3 ] && echo an I/O error",
            "Wait for an error, for a minute at most:",
        ),
        (
            "iotomy trace --ring 30 --until 'call == \"fsync\" && duration > 100ms' --json spike.json --unit postgresql",
            "Wait for a slow sync, and keep the 30 seconds before it:",
        ),
        (
            "iotomy trace --ring 30 --until 'duration > 500ms && group != \"%poll\"' --keep 20 -q --json /var/log/slow.json --unit nginx",
            "Leave it running, and keep the 30 seconds before each of the last 20 slow calls:",
        ),
        (
            "iotomy trace -i 1 --unit nginx\niotomy trace -i 1 -q --json - --unit nginx | jq -c .calls[0]",
            "Report each second, or write a record of each second in a line:",
        ),
        (
            "iotomy trace --sample 1/10 --unit redis -d 60",
            "Watch a busy service at a part of the overhead, with estimates in place of counts:",
        ),
        (
            "iotomy trace --json run.json -- ls -lR /usr\niotomy show --top 3 run.json",
            "Keep the record, and show it again with shorter tables:",
        ),
    ],
    status: TRACE_STATUS,
    see_also: &[
        "iotomy-anatomy(1)",
        "iotomy-race(1)",
        "iotomy-show(1)",
        "strace(1)",
        "perf-trace(1)",
    ],
};

/// What is shown as it comes, or counted of the whole watch only: not together with `--ring`.
const OF_THE_WHOLE: [&str; 8] =
    ["live", "interval", "files", "peers", "paths", "threads", "by", "save"];

/// What has no meaning for a part of the calls, or is not scaled: not together with `--sample`.
const OF_ALL_CALLS: [&str; 12] = [
    "live", "interval", "ring", "until", "files", "peers", "requests", "paths", "threads", "by",
    "slowest", "save",
];

/// The largest N of `--sample 1/N`: a window in 10 s.
const MOST_APART: u32 = 1_000;

/// The group of the tables that show remote addresses.
const WITH_ADDRESSES: &str = "with_addresses";

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
#[command(group = ArgGroup::new(WITH_ADDRESSES).args(["peers", "requests"]).multiple(true))]
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
    /// The view shows calls, files, processes, peers, with --requests the requests, and the time ledger
    /// of each second; `?` lists the keys. The command's terminal output goes to a pseudo-terminal: the view shows its last
    /// lines, and all of it follows when the view closes. The command reads nothing from the
    /// terminal.
    #[arg(long)]
    live: bool,

    /// Report what came in each interval of SECONDS, instead of the whole at the end
    ///
    /// Prints a line of sums and the calls that took most time; with --slowest, also the slowest calls
    /// of the interval. With --json, each interval is a record in one line of its own (JSON Lines).
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "live")]
    interval: Option<Duration>,

    /// End the watch when a call for which EXPR holds has returned, as in 'duration > 10ms'
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, long_help = filter::help_until())]
    until: Option<String>,

    /// Keep the last SECONDS only: the report and the record are of these
    ///
    /// A watch may go on for as long as it takes for --until to end it, or Ctrl-C: its memory is
    /// bounded. The stretch is longer by a tenth at most; the report has its length. SIGUSR1 has the
    /// stretch reported and written as it is then, to files of its own as with --keep, and the watch goes on.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with_all = OF_THE_WHOLE)]
    ring: Option<Duration>,

    /// Go on after a call that fulfils --until, and keep a record of each stretch before one: the last N
    ///
    /// With --json FILE.json, each is in a file FILE-DATE-TIME.json beside it (UTC), and --output FILE likewise; no
    /// file is replaced, and those beyond N are removed, the oldest first. FILE itself is written at the end of the
    /// watch. The next call that fulfils EXPR is looked for SECONDS of --ring after one, so that no two
    /// stretches overlap. The status is as without --until.
    #[arg(long, value_name = "N", requires = "ring", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    keep: Option<u32>,

    /// Count calls in a random part of the time, 10 ms of each N times 10 ms, and estimate the rest
    ///
    /// For services that counting every call slows too much. The report shows counts and times scaled to the
    /// whole watch, with their 95 % margins; the record has what was counted. Thread time, blocked time and run
    /// queue delay are exact. Needs the observer bpf. 1/1 counts all calls.
    #[arg(long, value_name = "1/N", value_parser = part, conflicts_with_all = OF_ALL_CALLS)]
    sample: Option<u32>,

    /// Wait for every process that the command leaves running
    #[arg(long, conflicts_with = RUNNING)]
    wait: bool,

    #[command(flatten)]
    user: UserArgs,

    /// The observer to use; auto takes the first that works here
    #[arg(long, value_name = "NAME", default_value = AUTO, value_parser = observers())]
    observer: String,

    /// Count only these system calls, ring operations and groups, as in read,%file,ring:send_zc
    #[arg(long = "call", value_name = "NAME,…", value_delimiter = ',', long_help = calls::help())]
    calls: Vec<String>,

    /// Count only the calls and ring operations for which EXPR holds, as in 'call == "read" && bytes < 512'
    #[arg(long = "where", value_name = "EXPR", allow_hyphen_values = true, long_help = filter::help_of_trace())]
    r#where: Option<String>,

    /// Count calls by the values of up to four variables as well, as in call,path
    #[arg(long, value_name = "VAR,…", value_delimiter = ',', long_help = filter::help_by())]
    by: Vec<String>,

    /// Count reads and writes by file as well
    #[arg(long)]
    files: bool,

    /// Show the other ends of sockets and pipes, with the bytes each way
    ///
    /// And connects and accepts, with their time and errors, and TCP's round-trip times and
    /// retransmissions.
    #[arg(long)]
    peers: bool,

    /// Show the latency of requests over connections, served and asked, and where their time went
    ///
    /// Of TCP and UNIX sockets. For a server, from the arrival of a request to the last byte of its
    /// answer; for a client, from the first byte written to the last one read. By listener, peer and
    /// program: quantiles, and the time unread, on a CPU, in the run queue, and blocked for disks,
    /// other peers and locks.
    #[arg(long)]
    requests: bool,

    /// Show the names of remote addresses, as the system's resolver has them (with --peers or --requests)
    ///
    /// They are looked up after the watch, for 5 seconds at most; what is not answered by then stays an
    /// address.
    #[arg(long, requires = WITH_ADDRESSES, conflicts_with = "interval")]
    resolve: bool,

    /// Count calls by the paths they are given as well, by outcome
    ///
    /// As in: which paths the 507 openat calls asked for that failed by ENOENT.
    #[arg(long)]
    paths: bool,
    /// Show what each thread did: its name, calls, on-CPU and blocked time, and longest call
    #[arg(long)]
    threads: bool,

    /// Keep the N slowest calls whole: when, who, arguments, path, bytes, who woke them, callers
    ///
    /// Waits for work (epoll_wait, poll, select, futex and their kin) are left out, unless --call or
    /// --where chooses calls. Callers are the functions of user space that a call was made in. With
    /// --interval, each interval has its own.
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

/// So many program images have rows of their own until the findings are made. Of more, identical ones are put together
/// as they are read, so that memory goes with what differs.
const IMAGES_APART: usize = 4_096;

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

/// The N of a part 1/N.
fn part(text: &str) -> Result<u32, String> {
    let n = text.strip_prefix("1/").and_then(|n| n.parse().ok());
    n.filter(|n| (1..=MOST_APART).contains(n)).ok_or_else(|| {
        format!("invalid part: expected 1/N with N from 1 to {MOST_APART}, as in 1/10")
    })
}

/// Watches, reports, and leaves with the command's own status.
pub(crate) fn run(args: TraceArgs) -> Result<ExitCode> {
    let files = [("--json", args.json.as_deref()), ("--output", args.output.as_deref())];
    let mut outputs = outputs::open(&files, &outputs::here())?;
    if args.ring.is_some() {
        outputs.refuse_fifos("--ring")?;
    }
    let request = match request(&args) {
        Ok(request) => request,
        Err(Refusal::Program(error, status)) => {
            print_error(&error);
            return Ok(ExitCode::from(status));
        }
        Err(Refusal::Other(error)) => return Err(error),
    };
    let mut request = request;
    let mut view = args.live.then(|| views::live(&args, &mut request)).transpose()?;
    if args.command.is_empty() && !args.quiet && !args.live {
        args.target.announce(&request.target, args.duration);
    }
    let started = rfc3339(SystemTime::now());
    let mut intervals =
        args.interval.map(|every| views::interval(&args, &request, every, &mut outputs));
    let mut ring = args.ring.map(|length| views::ring(&args, &request, length, &mut outputs));
    let viewer = match (&mut view, &mut intervals, &mut ring) {
        (Some(view), _, _) => Some(view as _),
        (_, Some(view), _) => Some(view as _),
        (_, _, view) => view.as_mut().map(|view| view as _),
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
    let is_part = args.ring.is_some() || request.sample.is_some();
    let (is_kept, is_whole) = (!is_part && args.save.is_wanted(), !is_part);
    let mut taken = Ok(());
    if let Some(ring) = ring {
        let finished = ring.finish(record);
        outputs.give_back(finished.outputs);
        (record, taken) = (finished.record, finished.failed);
    }
    let wants_findings = reports(&args) || args.json.is_some();
    if (wants_findings && intervals.is_none() && is_whole) || is_kept {
        record.findings =
            judging::findings(args.quiet, |limits| iotomy_findings::trace(&record, limits));
    }
    let of_intervals = intervals.map(|intervals| intervals.finish(&mut record));
    name_callers(&mut record);
    // The findings need each process by itself.
    if !args.each {
        record.roll_up();
    }
    if args.resolve && (reports(&args) || args.json.is_some() || is_kept) {
        let unanswered = resolving::resolve(&mut record);
        if unanswered > 0 && !args.quiet {
            eprintln!("iotomy: --resolve: {unanswered} addresses have had no answer in time");
        }
    }
    let written = of_intervals.unwrap_or_else(|| write_out(&args, &record, outputs));
    let kept = !is_kept || args.save.keep(RecordRef::Trace(&record), args.quiet);
    let written = outputs::all([taken, written]);
    let ends = args.until.is_some() && args.keep.is_none();
    let until = ends.then(|| record.ended_by.is_some());
    Ok(match (until, args.command.is_empty()) {
        (Some(is_ended), true) => status::without_command(is_ended, written, kept),
        (Some(true), false) => status::ended_by_call(written, kept),
        (None, _) | (Some(false), false) => ended(record.exit, written, kept),
    })
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
    if args.keep.is_some() && !reports(args) && args.json.is_none() {
        return Err(Refusal::Other(anyhow!(
            "--keep with -q has nowhere to write to; name a file by --json or --output"
        )));
    }
    let Chosen { calls, ring_operations } = calls::chosen(&args.calls)?;
    let filter = filter::filter(args.r#where.as_deref(), args.until.as_deref(), &args.by)?;
    let sample = args.sample.filter(|n| *n > 1);
    let request = Request {
        target,
        wait: args.wait,
        duration: args.duration,
        // The findings need them; of the whole machine they are too many, and without end those of a
        // watch that may last for ever.
        files: args.files
            || args.peers
            || !args.target.is_machine() && args.ring.is_none() && sample.is_none(),
        paths: args.paths,
        peers: args.peers,
        requests: args.requests,
        threads: args.threads,
        slowest: args.slowest.unwrap_or(0),
        calls,
        ring_operations,
        filter: match args.ring.filter(|_| args.keep.is_some()) {
            Some(length) => filter.going_on(length),
            None => filter,
        },
        sample,
        forgets: args.ring.is_some(),
        takes_slowest: args.ring.is_some() || args.interval.is_some(),
        images_apart: match args.each || args.live || args.interval.is_some() || args.ring.is_some()
        {
            true => usize::MAX,
            false => IMAGES_APART,
        },
        rows: args.max_rows,
    };
    filter::check(&request, args.r#where.is_some(), args.until.is_some())?;
    Ok(request)
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
        let message =
            anyhow!("cannot run {}: {error}{}", path_text(name), program_hint(name, &error));
        Refusal::Program(message, status)
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
pub(super) fn exec_status(error: &std::io::Error) -> u8 {
    if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
}

/// As a shell has it, where the command could not be started.
pub(super) fn launch_status(error: &ObserveError) -> u8 {
    match error {
        ObserveError::Launch(LaunchError::Exec { source, .. }) => exec_status(source),
        _ => COULD_NOT_RUN,
    }
}

fn record(args: &TraceArgs, request: &Request, started: String, seen: Trace) -> Trace {
    let mut view = View {
        calls: args.calls.clone(),
        r#where: args.r#where.clone().unwrap_or_default(),
        until: args.until.clone().unwrap_or_default(),
        files: args.files,
        peers: args.peers,
        requests: args.requests,
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
    let text = |style: &Style| report_text(record, args.view.is_brief(), style);
    let reported = match reports(args) {
        true => outputs::report(outputs.take("--output"), args.looks, text),
        false => Ok(()),
    };
    let save = |to: OutputFile| -> Result<()> {
        match args.ring.is_some() && !to.is_file() {
            // Behind those before, each in a line.
            true => Ok(to.put(&RecordRef::Trace(record).line()?)?),
            false => Ok(RecordRef::Trace(record).save(to)?),
        }
    };
    let saved = outputs.take("--json").map(save);
    outputs::all([Some(reported.map_err(Into::into)), saved].into_iter().flatten())
}
