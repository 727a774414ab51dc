//! `iotomy limits`: this machine's floors and ceilings.
//!
//! Glue only: [`iotomy_limits`] measures, and [`iotomy_report`] prints. Measured limits are an
//! answer even when they could be neither kept nor written.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use iotomy_host::folder::Folder;
use iotomy_host::rfc3339;
use iotomy_limits::kept::Cache;
use iotomy_limits::{
    GROUPS, LimitDeclaration, LimitsPlan, Progress, Scope, declaration, declarations,
};
use iotomy_record::{Limits, store};

use super::outputs;
use super::saving::SaveArgs;
use super::this_machine::machine;
use crate::errors::{COULD_NOT_RUN, print_error};
use crate::manual::Manual;
use crate::pager;
use crate::screen::{OutputStyle, is_dumb, path_text, shown_lines};

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        ("iotomy limits", "Show the limits, and measure those not yet known:"),
        (
            "iotomy limits --path /home --path /mnt/disk",
            "Measure the file systems of two directories as well:",
        ),
        (
            "iotomy limits --refresh --only syscall,memory-copy --json limits.json",
            "Measure two of them again, and keep the record:",
        ),
    ],
    status: &[
        ("0", "The limits were shown, including skipped ones."),
        (
            "2",
            "The command line is wrong, there is no such limit or directory, or an output could \
             not be written.",
        ),
    ],
    see_also: &["iotomy-report(1)", "lmbench(8)", "fio(1)"],
};

/// Measure the cost of the smallest operations on this machine, and its transfer rates
///
/// Measures system calls, page faults, memory, channels, wake-ups and process starts within
/// seconds; each figure has its spread and its method. iotomy keeps the figures for this machine
/// and kernel, and shows them the next time. With --path, it also measures the requests of a file
/// system.
#[derive(Debug, clap::Args)]
pub(crate) struct LimitsArgs {
    /// Measure again instead of showing kept figures
    #[arg(long)]
    refresh: bool,

    /// Measure the file system of this directory as well; repeatable
    #[arg(long, value_name = "DIR")]
    path: Vec<PathBuf>,

    /// Measure only these limits, as in syscall,memory-copy
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', long_help = only_help())]
    only: Vec<String>,

    /// List every limit with its unit and meaning, and measure nothing
    #[arg(long, conflicts_with_all = ["refresh", "path", "only", "json", "quiet", "save"])]
    list: bool,

    /// Write the record to FILE; with `-`, standard output, the table is not printed
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    save: SaveArgs,

    /// Write the table to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print no table and no progress
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    looks: OutputStyle,
}

/// Loads the kept limits, measures the others, keeps them and prints all.
///
/// # Errors
/// When a name or directory does not exist, or an output cannot be written.
pub(crate) fn run(args: &LimitsArgs) -> Result<ExitCode> {
    let here = outputs::here();
    let stdout = Path::new("-");
    if args.list {
        let text = shown_lines(&list());
        match &args.output {
            Some(to) => store::OutputFile::write(to, &here, text.as_bytes())?,
            None => pager::print(&text)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let files = [("--json", args.json.as_deref()), ("--output", args.output.as_deref())];
    let mut outputs = outputs::open(&files, &here)?;
    let plan = LimitsPlan { only: named(&args.only)?, folders: folders(&args.path)? };
    if let Some(of_files) = plan.only.iter().find(|one| one.scope == Scope::FileSystem)
        && plan.folders.is_empty()
    {
        bail!(
            "cannot measure {}: it is a limit of a file system; name a directory with --path DIR",
            of_files.name
        );
    }
    let record = measure(&plan, args);
    let mut written = Ok(());
    if !args.quiet && (args.output.is_some() || args.json.as_deref() != Some(stdout)) {
        let to = match outputs.take("--output") {
            Some(to) => to,
            None => store::OutputFile::open(stdout, &here)?,
        };
        let style = match to.is_standard() {
            true => args.looks.on(&std::io::stdout()),
            false => args.looks.in_a_file(),
        };
        written = to.put(iotomy_report::limits(&record, &style).as_bytes());
    }
    let record = store::RecordRef::Limits(&record);
    let saved = outputs.take("--json").map_or(Ok(()), |to| record.save(to));
    let is_kept = args.save.keep_if_wanted(record, args.quiet);
    outputs::all([written, saved].map(|one| one.map_err(Into::into)))?;
    Ok(if is_kept { ExitCode::SUCCESS } else { ExitCode::from(COULD_NOT_RUN) })
}

fn measure(plan: &LimitsPlan, args: &LimitsArgs) -> Limits {
    let machine = machine();
    let cache = Cache::of_user();
    let kept = cache.as_ref().and_then(|cache| cache.load(&machine));
    let started = rfc3339(SystemTime::now());
    let mut line = ProgressLine::on_terminal(args.quiet);
    let usable = kept.as_ref().filter(|_| !args.refresh);
    let limits = plan.run(usable, &started, &mut |progress| line.show(progress));
    line.clear();
    let record = Limits { schema: Limits::SCHEMA.to_owned(), started, machine, limits };
    let is_new = |at: &Option<String>| at.as_ref() == Some(&record.started);
    if record.limits.iter().any(|limit| limit.value.is_some() && is_new(&limit.measured)) {
        say_if_busy(&record);
        keep(cache, &record, kept);
    }
    record
}

/// Keeps the figures for the next time; that they cannot be kept costs nothing but that.
fn keep(cache: Option<Cache>, record: &Limits, before: Option<Limits>) {
    let result = match cache {
        Some(cache) => cache.save(record, before).map_err(anyhow::Error::from),
        None => Err(anyhow::anyhow!("neither XDG_CACHE_HOME nor HOME names a directory")),
    };
    if let Err(error) = result {
        print_error(&error.context("the limits were not kept for the next time"));
    }
}

/// Others at work make every figure worse, and it is kept: that is to be known.
fn say_if_busy(record: &Limits) {
    let text = iotomy_host::kernel_text("/proc/loadavg").unwrap_or_default();
    let load = text.split(' ').next().and_then(|minute| minute.parse::<f64>().ok());
    // This run by itself makes less than one.
    let most = f64::from(record.machine.cpus) / 2.0 + 1.0;
    if let Some(load) = load.filter(|load| *load > most) {
        print_error(&anyhow::anyhow!(
            "the machine was busy (load {load}), which degrades the figures; measure again with \
             --refresh when it is idle"
        ));
    }
}

/// The declarations of these names.
fn named(names: &[String]) -> Result<Vec<&'static LimitDeclaration>> {
    names
        .iter()
        .map(|name| {
            declaration(name).with_context(|| {
                let alike = alike(name);
                match alike.is_empty() {
                    true => {
                        format!("unknown limit {name:?}; `iotomy limits --list` lists all")
                    }
                    false => format!("unknown limit {name:?}; did you mean {}?", alike.join(", ")),
                }
            })
        })
        .collect()
}

/// Limits whose names contain the word or a part of it, or are contained in it.
fn alike(word: &str) -> Vec<&'static str> {
    let parts: Vec<&str> = word.split(['-', '_']).filter(|part| part.len() > 2).collect();
    let is_like = |name: &str| parts.iter().any(|part| name.contains(part)) || word.contains(name);
    declarations().map(|limit| limit.name).filter(|name| is_like(name)).take(6).collect()
}

/// The directories, one per file system.
fn folders(paths: &[PathBuf]) -> Result<Vec<Folder>> {
    let mut folders: Vec<Folder> = Vec::new();
    for path in paths {
        let folder = Folder::open(path)?;
        match folders.iter().find(|other| other.volume().id == folder.volume().id) {
            Some(other) => print_error(&anyhow::anyhow!(
                "{} is on the file system of {}, which is measured once",
                path_text(path),
                other.volume().path
            )),
            None => folders.push(folder),
        }
    }
    Ok(folders)
}

/// Every limit: a line each, by group.
fn list() -> String {
    let widest = declarations().map(|limit| limit.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for group in GROUPS {
        let _ = writeln!(text, "{}", group.name);
        for limit in group.limits {
            let (name, unit) = (limit.name, limit.unit.name());
            let path = if limit.scope == Scope::FileSystem { " (--path)" } else { "" };
            let _ = writeln!(text, "  {name:<widest$}  {unit:<7}  {}{path}", limit.summary);
        }
    }
    text
}

fn only_help() -> String {
    let mut help = String::from("Measure only these limits, as in syscall,memory-copy\n\nLimits:");
    for limit in declarations() {
        let _ = write!(help, "\n- {:<22} {}", limit.name, limit.summary);
    }
    help
}

/// A progress line on standard error, on a terminal only.
pub(super) struct ProgressLine {
    is_shown: bool,
}

impl ProgressLine {
    pub(super) fn on_terminal(quiet: bool) -> Self {
        Self { is_shown: !quiet && !is_dumb() && std::io::stderr().is_terminal() }
    }

    pub(super) fn show(&mut self, progress: Progress) {
        let Progress { done, all, name } = progress;
        self.put(&format!("\r\x1b[Kmeasuring {} of {all}: {name}", done + 1));
    }

    pub(super) fn clear(&mut self) {
        self.put("\r\x1b[K");
    }

    fn put(&mut self, text: &str) {
        if self.is_shown {
            // If it cannot be written, nobody reads it.
            let mut stderr = std::io::stderr();
            let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
        }
    }
}
