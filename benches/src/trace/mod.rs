//! `bench trace`: the overhead of being observed, by iotomy and by its peers, in one run.
//!
//! The steps: [`rounds`] makes the runs, [`startup`] and [`memory`] measure the costs that are not
//! per call, [`cold`] calls that find nothing in the caches, [`costs`] and [`targets`] judge, [`results`] prints and stores the results. This
//! program is also its own subject: see [`subject`].

mod cold;
mod costs;
mod found;
mod memory;
mod observer;
mod paid;
mod results;
mod rounds;
mod rows;
mod startup;
mod subject;
mod sweep;
mod targets;
mod workload;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::bench::{Bench, no_rows, run_with_args};
use crate::child::Signals;
use crate::conditions::Conditions;
use crate::options::Options;
use crate::order::Order;
use crate::run::{built_observer, progress, version};
use crate::scratch::Scratch;
use crate::stats;
use crate::trace::found::TraceResults;
use crate::trace::observer::Observer;
use crate::trace::rounds::Rounds;
use crate::trace::subject::Subject;

/// The most blocks of cold calls: a run is long, and its figure a mean of many calls.
const COLD_BLOCKS: u32 = 9;

/// The bench.
pub(crate) static BENCH: Bench = Bench {
    name: "trace",
    title: "overhead of tracing",
    minutes: 14,
    peers: &[],
    command: Args::command,
    run: |matches| run_with_args(matches, run),
    rows: rows::rows,
    overall: no_rows,
    block: Some(|raws, _, link| rows::block(raws, link)),
};

/// What it costs a program to be observed, by iotomy and by its peers, in one run
///
/// Observers that are not installed are skipped and named.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// Blocks of runs; every observer watches every subject once in each
    #[arg(long, value_name = "N", default_value_t = 15, conflicts_with = "quick", value_parser = clap::value_parser!(u32).range(stats::FEWEST as i64..=1000))]
    blocks: u32,

    /// Only calls that find what an observer keeps out of the caches
    #[arg(long)]
    cold: bool,

    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    part: Option<Helper>,
}

/// Helper processes that this program runs for its measurements.
#[derive(Debug, Subcommand)]
enum Helper {
    #[command(hide = true)]
    SubjectGetppid(subject::SubjectArgs),
    #[command(hide = true)]
    SubjectDd(subject::SubjectArgs),
    #[command(hide = true)]
    Cold(cold::subject::ColdArgs),
    #[command(hide = true)]
    Crowd(subject::CrowdArgs),
    #[command(hide = true)]
    Member,
    #[command(hide = true)]
    Workload(workload::WorkloadArgs),
}

fn run(args: &Args) -> Result<ExitCode> {
    match &args.part {
        None => bench(args),
        Some(part) => run_part(part).map(|()| ExitCode::SUCCESS),
    }
}

fn run_part(part: &Helper) -> Result<()> {
    match part {
        Helper::SubjectGetppid(args) => subject::run(Subject::Getppid, args),
        Helper::SubjectDd(args) => subject::run(Subject::Dd, args),
        Helper::Cold(args) => cold::subject::run(args),
        Helper::Crowd(args) => subject::crowd(args),
        Helper::Member => subject::member(),
        Helper::Workload(args) => workload::run(args),
    }
}

fn bench(args: &Args) -> Result<ExitCode> {
    let iotomy = built_observer(&args.options.iotomy, &BENCH.target())?;
    let signals = Signals::hold()?;
    let folder = Scratch::new()?;
    let blocks = if args.options.quick { stats::FEWEST as u32 + 1 } else { args.blocks };
    let mut conditions = Conditions::begin(&args.options)?;

    let mut order = Order::new(conditions.seed);
    if args.cold {
        let cold = cold::measure(&signals, &iotomy, &folder, &mut order, blocks)?;
        progress("");
        print!("{}", cold.text());
        return Ok(ExitCode::SUCCESS);
    }
    let mut rounds = Rounds::prepare(&signals, iotomy.clone(), &folder)?;
    for block in 1..=blocks {
        progress(&format!("block {block} of {blocks}"));
        rounds.block(&mut order)?;
    }
    let cold = cold::measure(&signals, &iotomy, &folder, &mut order, blocks.min(COLD_BLOCKS))?;
    progress("programs");
    let paid = paid::measure(&signals, &iotomy, &folder, &mut order, blocks)?;
    progress("start-up");
    let startup = startup::measure(&signals, &iotomy, &folder, &mut order, blocks)?;
    progress("memory");
    let memory = memory::measure(&signals, &iotomy, &folder)?;
    progress("");
    conditions.end();

    let costs = costs::costs(&rounds.measured);
    let found = TraceResults {
        blocks,
        versions: versions(&iotomy),
        measured: std::mem::take(&mut rounds.measured),
        targets: targets::judge(&costs, &paid, &startup, &memory),
        costs,
        cold,
        paid,
        startup,
        memory,
    };
    let results = found.results(&conditions);
    if let Some(folder) = results.publish(&args.options, &conditions, true)? {
        results::keep_example(&signals, &rounds, &folder)?;
    }
    Ok(results.status(&args.options))
}

/// Returns the versions of iotomy, its peers and dd, one per line.
fn versions(iotomy: &str) -> Vec<String> {
    let peers = Observer::ALL.into_iter().filter_map(|observer| observer.version()?.ok());
    version(Path::new(iotomy)).into_iter().chain(peers).chain(version(Path::new("dd"))).collect()
}
