//! `bench live`: the overhead that the view of `iotomy trace --live` adds to tracing, and iotomy's share of a CPU for
//! it.
//!
//! A process repeats the same call on one CPU for some seconds: alone, traced, and traced with the view on a terminal
//! that this program creates. The view reads the counts each second. [`subject`] makes the calls and times itself,
//! [`watch`] runs it under each mode, [`results`] judges, prints and stores the results.

mod results;
mod rows;
mod subject;
mod terminal;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::bench::{Bench, no_rows, run_with_args};
use crate::child::Signals;
use crate::conditions::Conditions;
use crate::live::results::LiveResults;
use crate::live::subject::SubjectArgs;
use crate::live::watch::{Samples, WatchMode, Watcher};
use crate::options::Options;
use crate::order::Order;
use crate::run::{be_root, built, progress, version};
use crate::scratch::Scratch;
use crate::session::own_session;
use crate::stats::FEWEST;

/// The bench.
pub(crate) static BENCH: Bench = Bench {
    name: "live",
    title: "overhead of the live view",
    minutes: 2,
    peers: &[],
    command: Args::command,
    run: |matches| run_with_args(matches, run),
    rows: rows::rows,
    overall: no_rows,
    block: Some(|raws, _, link| rows::block(raws, link)),
};

/// What the view of `iotomy trace --live` costs, in one run
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// Blocks of runs; each has one of every way to be watched
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(FEWEST as i64..=1000))]
    blocks: Option<u32>,

    /// Seconds of a run; the view looks once in each, wherever the run begins between two looks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=30))]
    seconds: Option<u32>,

    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    part: Option<Helper>,
}

/// Helper processes that this program runs for its measurements.
#[derive(Debug, Subcommand)]
enum Helper {
    #[command(hide = true)]
    Subject(SubjectArgs),
    /// Becomes a command in a session of its own on a terminal.
    #[command(hide = true)]
    Terminal {
        terminal: PathBuf,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        argv: Vec<OsString>,
    },
}

fn run(args: &Args) -> Result<ExitCode> {
    match &args.part {
        Some(Helper::Subject(args)) => subject::run(args).map(|()| ExitCode::SUCCESS),
        Some(Helper::Terminal { terminal, argv }) => {
            terminal::become_on(terminal, argv).map(|()| ExitCode::SUCCESS)
        }
        None => bench(args),
    }
}

fn bench(args: &Args) -> Result<ExitCode> {
    let iotomy = built(&args.options.iotomy)?;
    be_root(&BENCH.target())?;
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals, &args.options)? {
        return Ok(ended);
    }
    let quick = args.options.quick;
    let blocks = args.blocks.unwrap_or(if quick { FEWEST as u32 } else { 11 });
    let seconds = args.seconds.unwrap_or(if quick { 2 } else { 3 });
    let folder = Scratch::new()?;
    let mut conditions = Conditions::begin(&args.options)?;
    let mut order = Order::new(conditions.seed);
    let watcher = Watcher::new(&signals, &iotomy, folder.path(), seconds)?;
    let mut samples = Samples::default();
    for block in 1..=blocks {
        progress(&format!("block {block} of {blocks}"));
        let mut ways = WatchMode::ALL;
        order.shuffle(&mut ways);
        for way in ways {
            signals.check()?;
            samples.add(way, watcher.run(way)?);
        }
    }
    progress("");
    conditions.end();
    let found = LiveResults { blocks, seconds, version: version(&iotomy), samples };
    let results = found.results(&conditions);
    // Results of a run in which the view hardly ever read the counts are not stored.
    results.publish(&args.options, &conditions, seconds >= 3)?;
    Ok(results.status(&args.options))
}
