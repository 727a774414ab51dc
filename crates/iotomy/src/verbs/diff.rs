//! `iotomy diff`: what differs between two traces, or two anatomies, or two sets of them.
//!
//! A word is a file, or a run of the history, or all runs of a name there; [`iotomy_diff`] compares
//! and [`iotomy_report`] prints.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use iotomy_diff::Source;
use iotomy_history::{Filter, HistoryError, Pick, Store, store_file};
use iotomy_record::store;
use iotomy_record::{Diff, KeptRun, SortKey, lossless, printable};
use iotomy_report::DiffView;

use super::outputs;
use super::view::sort_keys;
use crate::manual::Manual;
use crate::pager;
use crate::screen::OutputStyle;

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        (
            "iotomy trace --json before.json -- git status\n\
             iotomy trace --json after.json -- git status\n\
             iotomy diff before.json after.json",
            "Compare two traces:",
        ),
        ("iotomy diff a1.json a2.json a3.json a4.json -- b?.json", "Compare with what is noise:"),
        (
            "for i in 1 2 3 4 5; do iotomy trace -q --save=old -- ./old; \
             iotomy trace -q --save=new -- ./new; done\n\
             iotomy diff old new",
            "Compare all runs kept under two names:",
        ),
        ("iotomy diff --csv a.json b.json", "Write every measure of both for a spreadsheet:"),
    ],
    status: &[
        ("0", "The records were compared; with --check, nothing differs beyond noise."),
        ("1", "Something differs beyond noise, with --check."),
        (
            "2",
            "The command line is wrong, the records cannot be compared, or --check has too few runs to judge by.",
        ),
    ],
    see_also: &["iotomy-trace(1)", "iotomy-anatomy(1)", "iotomy-race(1)", "iotomy-history-diff(1)"],
};

/// A check of the result failed.
const CHECK_FAILED: u8 = 1;

/// Compare two traces or anatomies: calls, times, files, peers, paths and findings that differ
///
/// Rows are matched by name, and come by the time they differ by. Tables that need an option of the
/// trace (--requests, --paths, --threads, --by) are compared if all records have them. Each record is a file as --json
/// wrote it (`-` is standard input), a run of the history by its number or `last`, or all runs of a
/// name in the history; a file goes before a name. With several records of each side, differences
/// are compared with the noise among the runs of a side: give four or more of each.
#[derive(Debug, clap::Args)]
#[command(override_usage = "iotomy diff [OPTIONS] A B\n       \
                      iotomy diff [OPTIONS] A… -- B…")]
pub(crate) struct DiffArgs {
    /// The earlier record and the later one; before `--`, all records of the earlier side
    #[arg(value_name = "RECORD", required = true)]
    records: Vec<OsString>,

    /// Behind `--`, the records of the later side
    #[arg(value_name = "B", last = true)]
    later: Vec<OsString>,

    /// Sort rows by their difference of this, largest first, in the tables that have it
    #[arg(long, value_name = "KEY", value_parser = sort_keys())]
    sort: Option<SortKey>,

    /// Show at most N rows of a table; 0 shows all
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Show rows without a difference as well
    #[arg(long)]
    all: bool,

    /// Exit with status 1 if something differs beyond noise, and with 2 if there are too few runs to
    /// judge by
    #[arg(long)]
    check: bool,

    /// Write a line per row and measure as CSV, everything included
    #[arg(long, group = "form")]
    csv: bool,

    /// Write the tables as Markdown
    #[arg(long, group = "form")]
    markdown: bool,

    /// Write the comparison to FILE as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write the text to FILE instead of standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print no text; --output still writes it
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    looks: OutputStyle,
}

/// Compares, prints, and leaves with the status that `--check` asks for.
pub(crate) fn run(args: &DiffArgs) -> Result<ExitCode> {
    let (earlier, later) = sides(args)?;
    if earlier.iter().chain(later).filter(|word| *word == "-").count() > 1 {
        bail!("cannot read two records from standard input: name the files");
    }
    let files = [("--json", args.json.as_deref()), ("--output", args.output.as_deref())];
    let mut outputs = outputs::open(&files, &outputs::here())?;
    let found = iotomy_diff::diff(&sources(earlier)?, &sources(later)?)?;
    // Standard output has one document.
    let json_is_printed = args.json.as_deref() == Some(Path::new("-"));
    let is_quiet = args.quiet || (json_is_printed && args.output.is_none());
    let written = match outputs.take("--output") {
        Some(to) => {
            let style = if to.is_standard() {
                args.looks.on(&std::io::stdout())
            } else {
                args.looks.in_a_file()
            };
            to.put(text(args, &found, &style).as_bytes()).map_err(Into::into)
        }
        None if is_quiet => Ok(()),
        None => {
            let text = text(args, &found, &args.looks.on(&std::io::stdout()));
            pager::print(&text).map_err(Into::into)
        }
    };
    let saved = outputs.take("--json").map(|to| -> Result<()> {
        let mut json = serde_json::to_vec_pretty(&found)?;
        json.push(b'\n');
        Ok(to.put(&json)?)
    });
    outputs::all([Some(written), saved].into_iter().flatten())?;
    if args.check { checked(&found) } else { Ok(ExitCode::SUCCESS) }
}

/// The words of either side.
fn sides(args: &DiffArgs) -> Result<(&[OsString], &[OsString])> {
    match (&args.records[..], &args.later[..]) {
        ([a, b], []) => Ok((std::slice::from_ref(a), std::slice::from_ref(b))),
        ([_], []) => bail!("cannot compare one record: give two, as in iotomy diff A B"),
        (_, []) => bail!(
            "cannot tell the sides of more than two records: write -- between them, as in \
             iotomy diff A1 A2 -- B1 B2"
        ),
        (earlier, later) => Ok((earlier, later)),
    }
}

fn text(args: &DiffArgs, found: &Diff, style: &iotomy_report::Style) -> String {
    let view = DiffView { sort: args.sort, top: args.top, all: args.all };
    match args {
        DiffArgs { csv: true, .. } => iotomy_report::diff_csv(found),
        DiffArgs { markdown: true, .. } => iotomy_report::diff_markdown(found, view),
        _ => iotomy_report::diff(found, view, style),
    }
}

fn checked(found: &Diff) -> Result<ExitCode> {
    if !found.judged {
        bail!(
            "cannot check: {} of A and {} of B are too few runs to tell a difference from noise; give 4 \
             of each or more",
            found.a.sources.len(),
            found.b.sources.len()
        );
    }
    Ok(if found.is_beyond_noise() { ExitCode::from(CHECK_FAILED) } else { ExitCode::SUCCESS })
}

fn sources(words: &[OsString]) -> Result<Vec<Source>> {
    let each = words.iter().map(|word| source(word)).collect::<Result<Vec<_>>>()?;
    Ok(each.into_iter().flatten().collect())
}

/// The record of a file or the records of the history that a word means.
fn source(word: &OsStr) -> Result<Vec<Source>> {
    let bytes = word.as_bytes();
    if bytes.is_empty() {
        bail!("cannot read a record without a name: give a file, or a run of the history");
    }
    // What looks like a path is one, and its error is that of a file.
    let is_path = word == "-" || bytes.contains(&b'/') || bytes.ends_with(b".json");
    let Some(name) = word.to_str().filter(|_| !is_path && !Path::new(word).exists()) else {
        let name = if word == "-" { "standard input".to_owned() } else { lossless(bytes) };
        return Ok(vec![Source { name, record: store::load(word)? }]);
    };
    of_history(name).with_context(|| {
        format!("cannot read {}: there is no such file, and no such run", printable(name, true))
    })
}

/// A run by its number or `last`, or all runs of a name that can be compared.
fn of_history(word: &str) -> Result<Vec<Source>> {
    let path = store_file().ok_or(HistoryError::NoPlace)?;
    let history = Store::open(&path)?.ok_or(HistoryError::Nothing { path })?;
    let pick = Pick::from_text(word);
    sources_of_history(&history, runs_of(&history, &pick, None)?)
}

/// A run, or of a name all runs of one kind: of that which they are to be compared with, and never that itself, or else
/// of the newest.
pub(super) fn runs_of(
    history: &Store,
    pick: &Pick,
    later: Option<&KeptRun>,
) -> Result<Vec<KeptRun>> {
    let newest = history.find(pick)?;
    let Pick::Name(name) = pick else { return Ok(vec![newest]) };
    let mut runs = history.list(&Filter { name: Some(name.clone()), ..Filter::default() })?;
    runs.retain(|run| later.is_none_or(|later| run.id != later.id));
    if runs.is_empty() {
        return Err(HistoryError::Itself { asked: pick.to_string() }.into());
    }
    let kind = &later.unwrap_or(&newest).kind;
    if runs.iter().any(|run| run.kind == *kind) {
        runs.retain(|run| run.kind == *kind);
    }
    Ok(runs)
}

/// The records of kept runs.
pub(super) fn sources_of_history(history: &Store, runs: Vec<KeptRun>) -> Result<Vec<Source>> {
    let source = |run: KeptRun| {
        Ok(Source { name: format!("run {}", run.id), record: history.record(run.id)? })
    };
    runs.into_iter().map(source).collect()
}
