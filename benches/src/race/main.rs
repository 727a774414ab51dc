//! `bench-race`: how often racers of commands are wrong, and what they find, in one run.
//!
//! The order of the work: [`rounds`] lets the racers of [`tool`] race the load (`load.rs`, a program
//! of its own), [`neighbour`] disturbs some races, [`results`] judges, prints and keeps.

mod neighbour;
mod results;
mod rounds;
mod tool;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::SystemTime;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use iotomy_benches::child::{Interrupted, Signals};
use iotomy_benches::order::Order;
use iotomy_benches::run::{command, load, progress, seed};
use iotomy_benches::session::own_session;
use iotomy_observe::{machine, rfc3339};

use crate::results::Results;
use crate::rounds::Rounds;

/// How often racers of commands are wrong, and what they find, in one run
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// The iotomy to measure
    #[arg(long, value_name = "FILE", default_value = "target/release/iotomy")]
    iotomy: PathBuf,

    /// Races of each racer in each field
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1000))]
    races: u32,

    /// Work of one run of the load; a unit takes about 2 µs
    #[arg(long, value_name = "N", default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    units: u64,

    /// Few races, without hyperfine's own number of runs, and nothing is kept unless --results says
    /// where
    #[arg(long, conflicts_with = "races")]
    quick: bool,

    /// Repeat the order of an earlier run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Keep the tables and the raw record below this folder
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,

    /// Leave with status 1 when a target is missed
    #[arg(long)]
    check: bool,

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
    done.unwrap_or_else(|error| {
        progress("");
        eprintln!("bench-race: {error:#}");
        let signal = error.downcast_ref::<Interrupted>().map(|by| by.0);
        ExitCode::from(signal.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(2))
    })
}

fn bench(args: &Args) -> Result<ExitCode> {
    let iotomy = args.iotomy.canonicalize();
    let iotomy = iotomy.with_context(|| {
        format!("cannot find {}; build it with `make build`", args.iotomy.display())
    })?;
    let iotomy = iotomy.to_str().context("the path of iotomy is not UTF-8")?;
    let own = std::env::current_exe().context("cannot tell this program's path")?;
    let load_program = own.with_file_name("bench-race-load");
    let versions = [Path::new(iotomy), Path::new("hyperfine")].map(version);
    let versions: Vec<String> = versions.into_iter().collect::<Result<_>>()?;
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals)? {
        return Ok(ended);
    }
    let folder = tempfile::Builder::new().prefix("iotomy-bench.").tempdir();
    let folder = folder.context("cannot make a temporary folder")?;
    let seed = args.seed.unwrap_or_else(seed);
    let started = rfc3339(SystemTime::now());
    let before = load();
    let rounds = Rounds {
        signals: &signals,
        iotomy,
        load: load_program.to_str().context("the path of the load is not UTF-8")?,
        folder: folder.path(),
        units: args.units,
        races: if args.quick { 4 } else { args.races },
        slow_every: if args.quick { 0 } else { 4 },
    };
    let lanes = rounds.run(&mut Order::new(seed))?;
    progress("");
    let results = Results {
        started,
        machine: machine(),
        command: command(),
        seed,
        units: args.units,
        loads: [before, load()],
        versions,
        lanes,
    };
    print!("{}", results.text());
    let default = (!args.quick).then(|| PathBuf::from("results"));
    if let Some(below) = args.results.clone().or(default) {
        let folder = results.folder(&below);
        results.keep(&folder)?;
        println!("\nkept in {}", folder.display());
    }
    let missed = results.targets().iter().any(|target| target.verdict == "fails");
    Ok(if args.check && missed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn version(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| {
        format!("cannot run {}; `scripts/setup bench` installs the peers", program.display())
    })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
