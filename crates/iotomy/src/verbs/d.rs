//! `iotomy d`: runs a D program.
//!
//! The program's output is standard output's, as it comes; what is wrong is standard error's. A command
//! is never lost: its status stands, unless the program has one of its own.

mod console;
mod constants;
mod explain;
mod program;
mod record;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow, bail};
use clap::ArgGroup;
use iotomy_dtrace::Options;
use iotomy_dtrace::form::Form;
use iotomy_host::rfc3339;
use iotomy_observe::d::{Finished, Kernel, LoadError, Watch, probes};
use iotomy_record::store::RecordRef;
use iotomy_record::{DRun, Exit};

use self::console::Console;
use self::program::Program;
use self::record::Setting;
use super::outputs::{self, Outputs};
use super::saving::SaveArgs;
use super::target::{CgroupArgs, RUNNING, process};
use super::trace::{Refusal, UserArgs, command, ended, launch_status, seconds};
use crate::errors::{COULD_NOT_RUN, InText, print_error};
use crate::manual::{Fact, Manual, NO_PROGRAM, NOT_EXECUTABLE};
use crate::pager;

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        (
            "iotomy d -n 'syscall:::entry { @[execname, probefunc] = count(); }'",
            "Count the system calls of the machine by program and call, until Ctrl-C:",
        ),
        (
            "iotomy d -n 'syscall::read:return /progenyof($target)/ { @ = quantize(arg0); }' -c 'make -j2'",
            "Show the distribution of what the reads of a command and its children return:",
        ),
        ("iotomy d -s counts.d -p 1234 -d 10", "Run a script, with $target 1234, for 10 seconds:"),
        ("iotomy d -l -n 'syscall::*stat*:'", "List the probes that a description names:"),
    ],
    status: STATUS,
    see_also: &["iotomy-trace(1)", "dtrace(1)", "bpftrace(8)"],
};

const STATUS: &[Fact] = &[
    ("status of exit()", "The program called it."),
    ("status of CMD", "CMD ran and exited, and the program did not call exit()."),
    ("128 + n", "Signal n ended CMD."),
    NO_PROGRAM,
    NOT_EXECUTABLE,
    (
        "2",
        "The command line or the program is wrong, the program could not be run, or its output not be written.",
    ),
    ("0", "In all other cases."),
];

/// Run a D program, as DTrace has them
///
/// Compiles the program to BPF, attaches it to the system calls and timers that its clauses name, and
/// prints what it prints. It ends with `exit()`, with CMD or the processes of --pid, or by Ctrl-C; then
/// aggregations that were not printed are. docs/d.md has the language, and what there is of it.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "iotomy d [OPTIONS] -n PROGRAM [ARG]…\n       iotomy d [OPTIONS] -s FILE [ARG]…\n       \
                      iotomy d -l [-n PROGRAM | -s FILE]"
)]
#[command(group = ArgGroup::new(RUNNING).args(["pid"]))]
#[command(group = ArgGroup::new("what").args(["program", "script", "list"]).required(true).multiple(true))]
pub(crate) struct DArgs {
    /// The program, as in 'syscall::read:entry { @ = count(); }'; several are joined
    #[arg(short = 'n', long, value_name = "PROGRAM", conflicts_with = "script")]
    program: Vec<String>,

    /// The file that the program is in; `-` is standard input
    #[arg(short, long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// Arguments of the program: `$1`, `$2`…
    #[arg(value_name = "ARG", allow_negative_numbers = true)]
    arguments: Vec<String>,

    /// Run CMD, whose process is `$target`; the program ends when it does
    ///
    /// CMD is split at blanks as a shell does, and run by a shell if it has more of its syntax. It begins
    /// once all probes are attached.
    #[arg(short, long, value_name = "CMD", conflicts_with = "pid")]
    command: Option<String>,

    #[command(flatten)]
    user: UserArgs,

    /// End with these processes; the first is `$target`
    #[arg(short, long, value_name = "PID", value_parser = process, value_delimiter = ',')]
    pid: Vec<u32>,

    #[command(flatten)]
    within: CgroupArgs,

    /// End after SECONDS; a command runs on, and iotomy waits for it
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,

    /// Set an option of the program, as in strsize=512
    #[arg(short = 'x', long = "option", value_name = "NAME[=VALUE]", long_help = help_of_options())]
    options: Vec<String>,

    /// Print only what the program prints, without a line for each firing (-x quiet)
    #[arg(short, long)]
    quiet: bool,

    /// Allow what changes the machine: system() (-x destructive)
    #[arg(short = 'w', long)]
    destructive: bool,

    /// Compile the program, and run nothing
    #[arg(short = 'e', long)]
    check: bool,

    /// Print what the program became: instructions, attach points, maps; and behind its run what it took
    ///
    /// The kernel measures each BPF program while it runs, which costs some 20 ns a run.
    #[arg(long, conflicts_with_all = ["check", "list"])]
    explain: bool,

    /// List the probes: those that the program names, or all
    #[arg(short, long, conflicts_with_all = ["command", "pid", "check", "json", "csv", "save"])]
    list: bool,

    /// Write the record to FILE; with `-`, standard output, the program's output is not printed
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    json: Option<PathBuf>,

    /// Write all aggregations to FILE as CSV; with `-`, the program's output is not printed
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    csv: Option<PathBuf>,

    #[command(flatten)]
    save: SaveArgs,

    /// Append the program's output to FILE instead of printing it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn help_of_options() -> String {
    let mut help = String::from(
        "Set an option of the program, as in strsize=512\n\nIt prevails over `#pragma D option`. The options: ",
    );
    let _ = write!(help, "{}. docs/d.md explains them.", Options::NAMES.join(", "));
    help
}

/// Runs the program, and leaves with its status or the command's.
pub(crate) fn run(args: &DArgs) -> Result<ExitCode> {
    let options = options(args)?;
    if args.list && args.program.is_empty() && args.script.is_none() {
        return list(None);
    }
    let program = Program::read(&args.program, args.script.as_deref(), &args.arguments)?;
    if args.list || args.check {
        // No process is looked at, so that any number will do.
        let form = program.compile(Some(1), &options)?;
        if args.list {
            return list(Some(&form));
        }
        Kernel::check(&form).map_err(|error| cannot_load(&error, &program))?;
        return Ok(ExitCode::SUCCESS);
    }
    let files = [("--json", args.json.as_deref()), ("--csv", args.csv.as_deref())];
    let outputs = outputs::open(&files, &outputs::here())?;
    let cgroups = args.within.cgroups()?;
    let mut watch = match watch(args)? {
        Ok(watch) => watch,
        Err(status) => return Ok(ExitCode::from(status)),
    };
    let form = program.compile(watch.target(), &options)?;
    let mut kernel =
        Kernel::for_machine(&form, &cgroups).map_err(|error| cannot_load(&error, &program))?;
    let counted = args.explain.then(|| explain_before(&kernel, &form, &program));
    let is_kept = args.save.is_wanted();
    let is_recorded = is_kept || args.json.is_some() || args.csv.is_some();
    let has_stdout =
        ![&args.json, &args.csv].into_iter().flatten().any(|path| path.as_os_str() == "-");
    let output = args.output.as_deref();
    let mut console = Console::new(output, program.name(), has_stdout, is_recorded)?;
    let setting = is_recorded.then(|| setting(args, &program));
    let result = watch.run(&mut kernel, program.text(), args.duration, &mut console);
    if let Some(counted) = counted {
        let _ = std::io::stderr().write_all(explain::after(&kernel.explain()).as_bytes());
        drop(counted);
    }
    // No probe fires while the command is waited for.
    drop(kernel);
    console.finish();
    match result {
        Ok(finished) => {
            tell(&finished);
            let exit = watch.wait()?;
            let record = setting.map(|setting| {
                let mut record = setting.record(&finished, &console.take_kept());
                record.exit = exit;
                record
            });
            let written = record.as_ref().map_or(Ok(()), |record| write(record, outputs));
            let record = record.as_ref().filter(|_| is_kept);
            let kept = record.is_none_or(|record| args.save.keep(RecordRef::D(record), args.quiet));
            let own = finished.status.map(|status| Exit::Code(status & 0xff));
            Ok(ended(own.or(exit), written, kept))
        }
        // Whoever reads the output has had enough.
        Err(_) if console.is_pipe_broken => {
            Ok(ExitCode::from(watch.wait()?.map_or(0, Exit::status) as u8))
        }
        Err(error) => {
            let status = launch_status(&error);
            print_error(&anyhow!(error));
            // A command that runs by now runs on.
            let exit = watch.wait()?.map_or(0, Exit::status);
            let own = u8::try_from(exit).unwrap_or(COULD_NOT_RUN);
            Ok(ExitCode::from(if own == 0 { status } else { own }))
        }
    }
}

/// Prints what the program became, and has its runs counted.
fn explain_before(kernel: &Kernel<'_>, form: &Form, program: &Program) -> Option<OwnedFd> {
    let text = explain::before(&kernel.explain(), form, program.text());
    // If standard error is closed, nothing can be reported.
    let _ = std::io::stderr().write_all(text.as_bytes());
    let counted = kernel.count_runs();
    counted.map_err(|error| print_error(&anyhow!(error))).ok()
}

fn setting(args: &DArgs, program: &Program) -> Setting {
    let command = args.command.as_deref().map(iotomy_race::argv);
    Setting {
        started: rfc3339(SystemTime::now()),
        script: program.name().to_owned(),
        program: program.text().to_owned(),
        arguments: args.arguments.clone(),
        command: command.and_then(Result::ok).unwrap_or_default(),
    }
}

/// Writes the record to the outputs that were asked for.
fn write(record: &DRun, mut outputs: Outputs) -> Result<()> {
    let json = outputs.take("--json").map(|to| Ok(RecordRef::D(record).save(to)?));
    let csv = outputs.take("--csv").map(|to| Ok(to.put(iotomy_report::d_csv(record).as_bytes())?));
    outputs::all([json, csv].into_iter().flatten())
}

/// The processes, or the exit status where the command cannot be run.
fn watch(args: &DArgs) -> Result<Result<Watch, u8>> {
    let Some(text) = &args.command else {
        return Ok(Ok(Watch::of_processes(&args.pid)?));
    };
    let words = iotomy_race::argv(text).map_err(|reason| anyhow!("-c {text:?}: {reason}"))?;
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    match command(&words, &args.user) {
        Ok(command) => Ok(Ok(Watch::of_command(&command)?)),
        Err(Refusal::Program(error, status)) => {
            print_error(&error);
            Ok(Err(status))
        }
        Err(Refusal::Other(error)) => Err(error),
    }
}

/// The options of the command line, by name.
fn options(args: &DArgs) -> Result<Vec<(String, Option<String>)>> {
    let flag = |is_set: bool, name: &str| is_set.then(|| (name.to_owned(), None));
    let mut options: Vec<_> = [flag(args.quiet, "quiet"), flag(args.destructive, "destructive")]
        .into_iter()
        .flatten()
        .collect();
    for setting in &args.options {
        let (name, value) = match setting.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (setting.as_str(), None),
        };
        if let Err((message, advice)) = Options::default().set_by_name(name, value) {
            bail!("-x {setting}: {message}; {advice}");
        }
        options.push((name.to_owned(), value.map(str::to_owned)));
    }
    Ok(options)
}

fn cannot_load(error: &LoadError, program: &Program) -> anyhow::Error {
    match error.problem() {
        Some(problem) => InText(program.shown(&problem)).into(),
        None => anyhow!("{error}"),
    }
}

/// Prints probes, as DTrace lists them.
fn list(form: Option<&Form>) -> Result<ExitCode> {
    let mut text =
        format!("{:>5} {:>10} {:>17} {:>33} {}\n", "ID", "PROVIDER", "MODULE", "FUNCTION", "NAME");
    let all = probes(form);
    if all.is_empty() {
        bail!("no probe matches; `iotomy d -l` lists them all");
    }
    for one in all {
        let _ = writeln!(
            text,
            "{:>5} {:>10} {:>17} {:>33} {}",
            one.id, one.provider, one.module, one.function, one.name
        );
    }
    pager::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Says what was not kept.
fn tell(finished: &Finished) {
    let mut stderr = std::io::stderr();
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            // If standard error is closed, nothing can be reported.
            let _ = writeln!(stderr, "iotomy: {count} {what}");
        }
    };
    for (cause, count) in &finished.drops {
        say(*count, console::lost(*cause));
    }
    say(finished.nested, "firings lost: their probes fired in an interrupt of another firing's");
    say(finished.missed, "firings of timers lost: they came too late to be made up for");
    say(finished.lost_cgroups, "control groups were made anew and not followed");
    say(finished.lost_requests, "firings of io:::done lost: too many requests at a time");
    say(finished.unread, "parts of tables could not be read");
}
