//! `iotomy report`: records as one HTML file, or a part of them as SVG, CSV or Markdown.
//!
//! The flow:
//!
//! 1. Each record is loaded with its bytes. A damaged one is an error before anything is written.
//! 2. `report::section` makes a `Section` of each: answers, findings, charts, sheets, facts, all of it printable text
//!    without a format. It takes rows and words from where the terminal's text comes from.
//! 3. `html` writes the sections, and the records packed; `parts` gives a chart as SVG, a sheet as CSV, everything as
//!    Markdown. Each escapes for itself. The page's policy names its one script by hash, so nothing else can run.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use iotomy_record::lossless;
use iotomy_record::store::{self, OutputFile, Record};
use iotomy_report::{PartKind, Source};
use iotomy_sys::launch::helper;

use crate::manual::{DONE, FAILED, Manual};
use crate::pager;
use crate::screen::{path_text, shown};

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        (
            "iotomy report race.json limits.json -o page.html",
            "Make one page of a race and the limits:",
        ),
        ("iotomy report --list race.json", "List the charts and tables of a record:"),
        ("iotomy report --svg race.json -o race.svg", "Write the first chart as SVG:"),
        ("iotomy report --markdown race.json", "Print answers, findings and tables as Markdown:"),
    ],
    status: &[DONE, FAILED],
    see_also: &["iotomy-show(1)"],
};

/// Make one HTML page of records: charts, tables and findings
///
/// The page is self-contained: it includes the records and loads nothing. A record of limits
/// provides the ceilings that the results of the other records are compared with.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// The records, as `--json` wrote them; `-` is standard input
    #[arg(value_name = "RECORD", required = true)]
    records: Vec<PathBuf>,

    /// Write to FILE instead of RECORD.html (report.html for several records); `-` is standard
    /// output, the default for SVG, CSV and Markdown
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Open the page in the browser
    #[arg(long, conflicts_with_all = ["svg", "csv", "markdown", "list"])]
    open: bool,

    /// Write one chart as SVG: the first, or the one that --part names
    #[arg(long, group = "form")]
    svg: bool,

    /// Write one table as CSV, complete and in the record's units: the first, or the one that
    /// --part names
    #[arg(long, group = "form")]
    csv: bool,

    /// Write the answers, findings and tables as Markdown, or only the table that --part names
    #[arg(long, group = "form")]
    markdown: bool,

    /// List the parts
    #[arg(long, group = "form")]
    list: bool,

    /// The part to write, as --list names it
    #[arg(long, value_name = "NAME", requires = "form", conflicts_with = "list")]
    part: Option<String>,
}

/// Writes the page, or the part of it.
pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    if args.records.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        bail!("cannot read two records from standard input: name the files");
    }
    if args.open && args.output.as_deref() == Some(Path::new("-")) {
        bail!("cannot open a page on standard output: name a file with -o");
    }
    let loaded: Vec<(String, Record, Vec<u8>)> = args
        .records
        .iter()
        .map(|path| {
            let (record, bytes) = store::load_with_bytes(path)?;
            Ok((lossless(path.as_os_str().as_bytes()), record, bytes))
        })
        .collect::<Result<_>>()?;
    let sources: Vec<Source<'_>> =
        loaded.iter().map(|(name, record, bytes)| Source { name, record, bytes }).collect();
    let here = crate::verbs::outputs::here();
    if !(args.svg || args.csv || args.markdown || args.list) {
        return page(args, &sources, &here);
    }
    let part = args.part.as_deref();
    let text = match args {
        ReportArgs { svg: true, .. } => iotomy_report::svg(&sources, part)?,
        ReportArgs { csv: true, .. } => iotomy_report::csv(&sources, part)?,
        ReportArgs { markdown: true, .. } => iotomy_report::markdown(&sources, part)?,
        _ => list(&sources),
    };
    let to = args.output.as_deref().unwrap_or(Path::new("-"));
    refuse_a_record(args, to, &here)?;
    match args.output {
        Some(_) => OutputFile::write(to, &here, text.as_bytes())?,
        None => pager::print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn page(args: &ReportArgs, sources: &[Source<'_>], here: &Path) -> Result<ExitCode> {
    let usual = usual_name(&args.records);
    let to = args.output.as_deref().unwrap_or(&usual);
    refuse_a_record(args, to, here)?;
    OutputFile::write_with(to, here, |to| iotomy_report::html(sources, to))?;
    if to.as_os_str() == "-" {
        return Ok(ExitCode::SUCCESS);
    }
    if args.output.is_none() {
        // A default name is printed. If standard error is closed, it cannot be.
        let name = shown(&path_text(to));
        let _ = writeln!(std::io::stderr(), "iotomy: wrote {name}");
    }
    if args.open {
        open(&here.join(to))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A default name in the current directory that overwrites no record.
fn usual_name(records: &[PathBuf]) -> PathBuf {
    match records {
        [one] if one.as_os_str() != "-" => {
            let stem = one.file_stem().unwrap_or("report".as_ref());
            let mut name = stem.to_os_string();
            name.push(".html");
            name.into()
        }
        _ => PathBuf::from("report.html"),
    }
}

/// A record is never written over by its report.
fn refuse_a_record(args: &ReportArgs, to: &Path, here: &Path) -> Result<()> {
    let is_record = |path: &&PathBuf| {
        path.as_os_str() != "-" && to.as_os_str() != "-" && store::same_output(path, to, here)
    };
    if let Some(path) = args.records.iter().find(is_record) {
        bail!(
            "cannot write the report to {}: it is the record; give another name with -o",
            path_text(path)
        );
    }
    Ok(())
}

fn list(sources: &[Source<'_>]) -> String {
    let parts = iotomy_report::parts(sources);
    let widest = parts.iter().map(|part| part.name.len()).max().unwrap_or(0);
    let line = |part: &iotomy_report::ReportPart| {
        let kind = match part.kind {
            PartKind::Chart => "picture",
            PartKind::Table => "table  ",
        };
        format!("{:widest$}  {kind}  {}\n", part.name, part.title)
    };
    parts.iter().map(line).collect()
}

/// By the desktop's own opener, which returns when it has found a program.
fn open(path: &Path) -> Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let shown = path_text(&path);
    let status = helper("xdg-open")
        .and_then(|mut opener| opener.arg(&path).stdin(Stdio::null()).status())
        .with_context(|| {
            format!("cannot open {shown} by xdg-open; the page is written, open it by hand")
        })?;
    if !status.success() {
        bail!(
            "cannot open {shown}: xdg-open ended with {status}; the page is written, open it by hand"
        );
    }
    Ok(())
}
