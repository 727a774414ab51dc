//! `bench report`: the time to make a page of large records, and the time until it is usable in Chromium.
//!
//! The records are one trace with enough processes to reach the file size: those of a small script, traced here by
//! iotomy and repeated ([`large`]). [`browser`] opens the page.

mod browser;
mod chromium;
mod command;
mod large;
mod rows;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser};

use crate::bench::{Bench, no_rows, run_with_args};
use crate::child::Signals;
use crate::conditions::Conditions;
use crate::options::Options;
use crate::record::{Case, Sweep};
use crate::report::command::run_to_end;
use crate::results::Results;
use crate::run::{built, progress, version};
use crate::scratch::Scratch;
use crate::session::own_session;
use crate::stats::{FEWEST, estimate};
use crate::targets::{Bound, Target, target_table};

/// Targets in seconds: for making the page, and until it is usable.
const MAKE: f64 = 2.0;
const OPEN: f64 = 1.0;

/// The bench.
pub(crate) static BENCH: Bench = Bench {
    name: "report",
    title: "time to make and open a page",
    minutes: 1,
    peers: &[],
    command: Args::command,
    run: |matches| run_with_args(matches, run),
    rows: rows::rows,
    overall: no_rows,
    block: Some(|raws, _, link| rows::block(raws, link)),
};

/// How long a page of large records takes to make, and until it can be used, in one run
///
/// Without Chromium the page is made and not opened.
#[derive(Debug, Parser)]
struct Args {
    /// Pages that are made and opened
    #[arg(long, value_name = "N", default_value_t = 15, conflicts_with = "quick", value_parser = clap::value_parser!(u32).range(FEWEST as i64..=1000))]
    pages: u32,

    /// MiB of records
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=200))]
    size: u64,

    #[command(flatten)]
    options: Options,
}

/// The measurements.
#[derive(Default)]
struct Measured {
    processes: usize,
    record_bytes: u64,
    page_bytes: u64,
    /// Seconds.
    make: Vec<f64>,
    open: Vec<f64>,
    /// The reason why no page was opened.
    unopened: Option<String>,
}

fn run(args: &Args) -> Result<ExitCode> {
    let iotomy = built(&args.options.iotomy)?;
    let iotomy = iotomy.to_str().context("the path of iotomy is not UTF-8")?;
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals, &args.options)? {
        return Ok(ended);
    }
    let folder = Scratch::new()?;
    let pages = if args.options.quick { FEWEST as u32 } else { args.pages };
    let mut conditions = Conditions::begin(&args.options)?;
    let measured = measure(&signals, iotomy, folder.path(), pages, args.size << 20)?;
    progress("");
    conditions.end();
    let results = results(&measured, &conditions, iotomy);
    // Results for another page size are not comparable.
    results.publish(&args.options, &conditions, args.size == 50)?;
    Ok(results.status(&args.options))
}

fn measure(
    signals: &Signals,
    iotomy: &str,
    folder: &Path,
    pages: u32,
    bytes: u64,
) -> Result<Measured> {
    progress("records");
    let record = folder.join("record.json");
    let mut measured = Measured {
        processes: large::record(signals, iotomy, &record, bytes)?,
        ..Measured::default()
    };
    measured.record_bytes = fs::metadata(&record).context("cannot look at the record")?.len();
    let page = folder.join("report.html");
    let paths = [&page, &record].map(|path| path.to_string_lossy().into_owned());
    let [to, from] = &paths;
    for number in 1..=pages {
        progress(&format!("page {number} of {pages}"));
        let began = Instant::now();
        run_to_end(signals, &[iotomy, "report", "-o", to, from])?;
        measured.make.push(began.elapsed().as_secs_f64());
        if measured.unopened.is_none() {
            match browser::ready(signals, &page, folder)? {
                Ok(seconds) => measured.open.push(seconds),
                Err(reason) => measured.unopened = Some(reason),
            }
        }
    }
    measured.page_bytes = fs::metadata(&page).context("cannot look at the page")?.len();
    Ok(measured)
}

fn results(measured: &Measured, conditions: &Conditions, iotomy: &str) -> Results {
    let opened = measured.unopened.clone().unwrap_or_else(|| "not opened".to_owned());
    let of = |samples: &[f64], reason: &str| estimate(samples).ok_or_else(|| reason.to_owned());
    let targets = [
        Target::new(
            "make",
            "a page of 50 MiB of records is made".to_owned(),
            Bound::at_most(MAKE, "s"),
            of(&measured.make, "not made"),
        ),
        Target::new(
            "open",
            "and can be used after its opening began in Chromium".to_owned(),
            Bound::at_most(OPEN, "s"),
            of(&measured.open, &opened),
        ),
    ];
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let versions = [Path::new(iotomy), Path::new("chromium")].map(version);
    let text = conditions.text(&[
        ("programs", versions.into_iter().flatten().collect::<Vec<_>>().join("; ")),
        ("records", format!("{}, {} processes", mib(measured.record_bytes), measured.processes)),
        ("page", mib(measured.page_bytes)),
        ("runs", format!("{} pages made, {} opened", measured.make.len(), measured.open.len())),
    ]);
    Results {
        folder: "report",
        title: "Time to make and open a page",
        text: format!("{text}\n## Targets\n\n{}", target_table(&targets, 2)),
        method: METHOD.to_owned(),
        record: record(measured, conditions, &targets),
        is_on_one_line: false,
    }
}

fn record(measured: &Measured, conditions: &Conditions, targets: &[Target]) -> Sweep {
    let names = ["make", "open"].map(str::to_owned).to_vec();
    let mut sweep = Sweep::new("report-speed", conditions, &[("what", names)]);
    let mut make = Case::new(&[("what", "make")], "time", "s", &measured.make);
    make.extra.insert("record_bytes", measured.record_bytes as f64);
    make.extra.insert("page_bytes", measured.page_bytes as f64);
    make.extra.insert("processes", measured.processes as f64);
    let mut open = Case::new(&[("what", "open")], "time", "s", &measured.open);
    open.skipped.clone_from(&measured.unopened);
    sweep.cases.extend([make, open]);
    sweep.claims = targets.iter().map(Target::claim).collect();
    sweep
}

const METHOD: &str = "
## Method

The records are one trace: the processes of a small shell script, traced by this iotomy, over and over under other \
process ids until the file has 50 MiB. A page is made by `iotomy report -o FILE RECORD`, from the start of the command \
to its end; the record is in the page cache. Then a Chromium that has just started, without a window and with a \
profile of its own, opens it from its file. The page says itself when its script has run to the end, from which on \
it can be sorted, filtered and asked: in seconds since the browser began to open it, by the browser's own clock. Start \
and end of the browser are not in it. Both run at nice −20 in a session of their own.

`raw.json` (`iotomy.sweep/1`) has every time.
";
