//! `bench race`: false-positive and detection rates of `iotomy race` and hyperfine, in one run.
//!
//! The steps: [`rounds`] runs the racers of [`tool`] on the load (`load.rs`, a separate program), [`neighbour`]
//! disturbs some races, [`results`] judges, prints and stores the results.

mod expected;
mod neighbour;
mod results;
mod rounds;
mod rows;
mod tool;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, Subcommand};

use crate::bench::{Bench, no_rows, run_with_args};
use crate::child::Signals;
use crate::conditions::Conditions;
use crate::options::Options;
use crate::order::Order;
use crate::race::expected::RACES;
use crate::race::results::RaceResults;
use crate::race::rounds::Rounds;
use crate::run::{built, load_program, progress, version};
use crate::scratch::Scratch;
use crate::session::own_session;

/// The bench.
pub(crate) static BENCH: Bench = Bench {
    name: "race",
    title: "false-positive and detection rates of races",
    minutes: 20,
    peers: &[],
    command: Args::command,
    run: |matches| run_with_args(matches, run),
    rows: rows::rows,
    overall: no_rows,
    block: Some(|raws, _, link| rows::block(raws, link)),
};

/// Approximate number of races of a slow tool; each takes 6 s.
const SLOW_RACES: u32 = 10;

/// False-positive and detection rates of iotomy race and hyperfine, in one run
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// Races of each tool in each field; with fewer than 73, no result can meet the target of 5 %
    #[arg(long, value_name = "N", default_value_t = RACES, conflicts_with = "quick", value_parser = clap::value_parser!(u32).range(1..=1000))]
    races: u32,

    /// Work of one run of the load; a unit takes about 2 µs
    #[arg(long, value_name = "N", default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    units: u64,

    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    part: Option<Helper>,
}

/// Helper processes that this program runs for its measurements.
#[derive(Debug, Subcommand)]
enum Helper {
    /// The neighbour: takes a CPU until it is killed.
    #[command(hide = true)]
    Burn,
}

fn run(args: &Args) -> Result<ExitCode> {
    match args.part {
        Some(Helper::Burn) => neighbour::burn().map(|()| ExitCode::SUCCESS),
        None => bench(args),
    }
}

fn bench(args: &Args) -> Result<ExitCode> {
    let iotomy = built(&args.options.iotomy)?;
    let iotomy = iotomy.to_str().context("the path of iotomy is not UTF-8")?;
    let load = load_program()?;
    let versions = [Path::new(iotomy), Path::new("hyperfine")].map(needed);
    let versions: Vec<String> = versions.into_iter().collect::<Result<_>>()?;
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals, &args.options)? {
        return Ok(ended);
    }
    let folder = Scratch::new()?;
    let mut conditions = Conditions::begin(&args.options)?;
    let rounds = Rounds {
        signals: &signals,
        iotomy,
        load: load.to_str().context("the path of the load is not UTF-8")?,
        folder: folder.path(),
        units: args.units,
        races: if args.options.quick { 4 } else { args.races },
        slow_every: if args.options.quick { 0 } else { args.races.div_ceil(SLOW_RACES) },
    };
    let lanes = rounds.run(&mut Order::new(conditions.seed))?;
    progress("");
    conditions.end();
    let results = RaceResults { units: args.units, versions, lanes }.results(&conditions);
    results.publish(&args.options, &conditions, true)?;
    Ok(results.status(&args.options))
}

/// Returns the version of a program that the races require.
fn needed(program: &Path) -> Result<String> {
    version(program).with_context(|| {
        format!("cannot run {}; `scripts/setup bench` installs the peers", program.display())
    })
}
