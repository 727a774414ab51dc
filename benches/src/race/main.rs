//! `bench-race`: how often racers of commands are wrong, and what they find, in one run.
//!
//! The order of the work: [`rounds`] lets the racers of [`tool`] race the load (`load.rs`, a program
//! of its own), [`neighbour`] disturbs some races, [`results`] judges, prints and keeps.

mod neighbour;
mod results;
mod rounds;
mod tool;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use iotomy_benches::child::Signals;
use iotomy_benches::conditions::Conditions;
use iotomy_benches::options::Options;
use iotomy_benches::order::Order;
use iotomy_benches::run::{built, ended, progress, version};
use iotomy_benches::session::own_session;

use crate::results::Found;
use crate::rounds::Rounds;

/// How often racers of commands are wrong, and what they find, in one run
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// The iotomy to measure
    #[arg(long, value_name = "FILE", default_value = "target/release/iotomy")]
    iotomy: PathBuf,

    /// Races of each racer in each field
    #[arg(long, value_name = "N", default_value_t = 40, conflicts_with = "quick", value_parser = clap::value_parser!(u32).range(1..=1000))]
    races: u32,

    /// Work of one run of the load; a unit takes about 2 µs
    #[arg(long, value_name = "N", default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    units: u64,

    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    part: Option<Part>,
}

/// What this program does as a part of its own measurements.
#[derive(Debug, Subcommand)]
enum Part {
    /// The neighbour: takes a CPU until it is killed.
    #[command(hide = true)]
    Burn,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.part {
        Some(Part::Burn) => neighbour::burn().map(|()| ExitCode::SUCCESS),
        None => bench(&args),
    };
    ended("bench-race", done)
}

fn bench(args: &Args) -> Result<ExitCode> {
    let iotomy = built(&args.iotomy)?;
    let iotomy = iotomy.to_str().context("the path of iotomy is not UTF-8")?;
    let own = std::env::current_exe().context("cannot tell this program's path")?;
    let load_program = own.with_file_name("bench-race-load");
    let versions = [Path::new(iotomy), Path::new("hyperfine")].map(needed);
    let versions: Vec<String> = versions.into_iter().collect::<Result<_>>()?;
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals, &args.options)? {
        return Ok(ended);
    }
    let folder = tempfile::Builder::new().prefix("iotomy-bench.").tempdir();
    let folder = folder.context("cannot make a temporary folder")?;
    let mut conditions = Conditions::begin(&args.options)?;
    let rounds = Rounds {
        signals: &signals,
        iotomy,
        load: load_program.to_str().context("the path of the load is not UTF-8")?,
        folder: folder.path(),
        units: args.units,
        races: if args.options.quick { 4 } else { args.races },
        slow_every: if args.options.quick { 0 } else { 4 },
    };
    let lanes = rounds.run(&mut Order::new(conditions.seed))?;
    progress("");
    conditions.end();
    let results = Found { units: args.units, versions, lanes }.results(&conditions);
    results.publish(&args.options, &conditions, true)?;
    Ok(results.status(&args.options))
}

/// The version of one without which there is no race.
fn needed(program: &Path) -> Result<String> {
    version(program).with_context(|| {
        format!("cannot run {}; `scripts/setup bench` installs the peers", program.display())
    })
}
