//! `bench rings`: the overhead of watching the requests of io_uring, in one run.
//!
//! The steps: [`rounds`] makes the runs, [`results`] computes, judges, prints and stores. This program is also its own
//! [`subject`].

mod results;
mod rounds;
mod rows;
mod subject;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::bench::{Bench, no_rows, run_with_args};
use crate::child::Signals;
use crate::conditions::Conditions;
use crate::options::Options;
use crate::order::Order;
use crate::rings::results::RingResults;
use crate::rings::rounds::Rounds;
use crate::rings::subject::Subject;
use crate::run::{built_observer, progress, version};
use crate::scratch::Scratch;
use crate::stats;

/// The bench.
pub(crate) static BENCH: Bench = Bench {
    name: "rings",
    title: "overhead of watching io_uring",
    minutes: 1,
    peers: &[],
    command: Args::command,
    run: |matches| run_with_args(matches, run),
    rows: rows::rows,
    overall: no_rows,
    block: Some(|raws, _, link| rows::block(raws, link)),
};

/// What it costs a request of io_uring to be watched, in one run
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// Blocks of runs; every observer watches every subject in each
    #[arg(long, value_name = "N", default_value_t = 15, conflicts_with = "quick", value_parser = clap::value_parser!(u32).range(stats::FEWEST as i64..=1000))]
    blocks: u32,

    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    part: Option<Helper>,
}

/// Helper processes that this program runs for its measurements.
#[derive(Debug, Subcommand)]
enum Helper {
    #[command(hide = true)]
    SubjectNop(subject::SubjectArgs),
    #[command(hide = true)]
    SubjectRead(subject::SubjectArgs),
}

fn run(args: &Args) -> Result<ExitCode> {
    match &args.part {
        None => bench(args),
        Some(Helper::SubjectNop(args)) => done(subject::run(Subject::Nop, args)),
        Some(Helper::SubjectRead(args)) => done(subject::run(Subject::Read, args)),
    }
}

fn done(run: Result<()>) -> Result<ExitCode> {
    run.map(|()| ExitCode::SUCCESS)
}

fn bench(args: &Args) -> Result<ExitCode> {
    let iotomy = built_observer(&args.options.iotomy, &BENCH.target())?;
    let signals = Signals::hold()?;
    let folder = Scratch::new()?;
    let blocks = if args.options.quick { stats::FEWEST as u32 + 1 } else { args.blocks };
    let mut conditions = Conditions::begin(&args.options)?;

    let mut order = Order::new(conditions.seed);
    let mut rounds = Rounds::prepare(&signals, &iotomy, &folder)?;
    for block in 1..=blocks {
        progress(&format!("block {block} of {blocks}"));
        rounds.block(&mut order)?;
    }
    progress("");
    conditions.end();

    let found =
        RingResults::new(blocks, rounds.disturbed, version(Path::new(&iotomy)), rounds.samples);
    let results = found.results(&conditions);
    results.publish(&args.options, &conditions, true)?;
    Ok(results.status(&args.options))
}
