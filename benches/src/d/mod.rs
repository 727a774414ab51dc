//! `bench d`: the overhead of D programs and of bpftrace's that answer the same questions, in one run.
//!
//! The steps: [`rounds`] makes the runs, [`startup`] measures what is not per call, [`results`] computes, judges, prints
//! and stores. This program is also its own [`subject`].

mod questions;
mod results;
mod rounds;
mod rows;
mod startup;
mod subject;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::bench::{Bench, no_rows, run_with_args};
use crate::child::Signals;
use crate::conditions::Conditions;
use crate::d::results::DResults;
use crate::d::rounds::Rounds;
use crate::options::Options;
use crate::order::Order;
use crate::peers;
use crate::run::{built_observer, progress, version};
use crate::scratch::Scratch;
use crate::stats;

/// The bench.
pub(crate) static BENCH: Bench = Bench {
    name: "d",
    title: "overhead of D programs",
    minutes: 6,
    peers: &[],
    command: Args::command,
    run: |matches| run_with_args(matches, run),
    rows: rows::rows,
    overall: no_rows,
    block: Some(|raws, _, link| rows::block(raws, link)),
};

/// What a program in D costs each firing of its probes, beside one of bpftrace that answers the same, in one run
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// Blocks of runs; every question is asked by each in each
    #[arg(long, value_name = "N", default_value_t = 9, conflicts_with = "quick", value_parser = clap::value_parser!(u32).range(stats::FEWEST as i64..=1000))]
    blocks: u32,

    /// Ask these questions only
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = questions::ALL.map(|one| one.name))]
    only: Vec<String>,

    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    part: Option<Helper>,
}

/// Helper processes that this program runs for its measurements.
#[derive(Debug, Subcommand)]
enum Helper {
    #[command(hide = true)]
    Subject(subject::SubjectArgs),
}

fn run(args: &Args) -> Result<ExitCode> {
    match &args.part {
        None => bench(args),
        Some(Helper::Subject(args)) => subject::run(args).map(|()| ExitCode::SUCCESS),
    }
}

fn bench(args: &Args) -> Result<ExitCode> {
    let iotomy = built_observer(&args.options.iotomy, &BENCH.target())?;
    let peer = peers::version("bpftrace").map_err(anyhow::Error::msg)?;
    let signals = Signals::hold()?;
    let folder = Scratch::new()?;
    let blocks = if args.options.quick { stats::FEWEST as u32 + 1 } else { args.blocks };
    let mut conditions = Conditions::begin(&args.options)?;

    let mut order = Order::new(conditions.seed);
    let mut rounds = Rounds::prepare(&signals, &iotomy, &folder, questions::chosen(&args.only))?;
    for block in 1..=blocks {
        progress(&format!("block {block} of {blocks}"));
        rounds.block(&mut order)?;
    }
    progress("start-up");
    let startup = startup::measure(&signals, &iotomy, &folder, &mut order, blocks)?;
    progress("");
    conditions.end();

    let versions = version(Path::new(&iotomy)).into_iter().chain([peer]).collect();
    let found = DResults {
        blocks,
        versions,
        questions: rounds.questions,
        samples: rounds.samples,
        startup,
    };
    let results = found.results(&conditions);
    results.publish(&args.options, &conditions, args.only.is_empty())?;
    Ok(results.status(&args.options))
}
