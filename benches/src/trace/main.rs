//! `bench-trace`: what it costs a program to be observed, by iotomy and by its peers, in one run.
//!
//! The order of the work: [`rounds`] makes the runs, [`startup`] and [`memory`] measure what is not
//! a cost a call, [`costs`] and [`targets`] judge, [`results`] prints and keeps. This program is
//! also its own subject: see [`subject`].

mod costs;
mod floor;
mod memory;
mod observer;
mod results;
mod rounds;
mod startup;
mod subject;
mod sweep;
mod targets;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use iotomy_benches::child::{self, Interrupted, Signals};
use iotomy_benches::order::Order;
use iotomy_benches::run::{command, load, progress, seed};
use iotomy_benches::stats;
use iotomy_observe::{machine, rfc3339};

use crate::observer::Observer;
use crate::results::Results;
use crate::rounds::Rounds;
use crate::subject::Subject;

/// What it costs a program to be observed, by iotomy and by its peers, in one run
///
/// Observers that are not installed are skipped and named.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// The iotomy to measure
    #[arg(long, value_name = "FILE", default_value = "target/release/iotomy")]
    iotomy: PathBuf,

    /// Blocks of runs; every observer watches every subject once in each
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(stats::FEWEST as i64..=1000))]
    blocks: u32,

    /// Few blocks, and nothing is kept unless --results says where
    #[arg(long, conflicts_with = "blocks")]
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
    #[command(hide = true)]
    SubjectGetppid(subject::SubjectArgs),
    #[command(hide = true)]
    SubjectDd(subject::SubjectArgs),
    #[command(hide = true)]
    Crowd(subject::CrowdArgs),
    #[command(hide = true)]
    Member,
    #[command(hide = true)]
    Guard {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        argv: Vec<String>,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.part {
        None => bench(&args),
        Some(part) => run_part(part).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("bench-trace: {error:#}");
        let signal = error.downcast_ref::<Interrupted>().map(|by| by.0);
        ExitCode::from(signal.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(2))
    })
}

fn run_part(part: &Part) -> Result<()> {
    match part {
        Part::SubjectGetppid(args) => subject::run(Subject::Getppid, args),
        Part::SubjectDd(args) => subject::run(Subject::Dd, args),
        Part::Crowd(args) => subject::crowd(args),
        Part::Member => subject::member(),
        Part::Guard { argv } => child::guard(argv),
    }
}

fn bench(args: &Args) -> Result<ExitCode> {
    let iotomy = args.iotomy.canonicalize();
    let iotomy = iotomy.with_context(|| {
        format!("cannot find {}; build it with `make build`", args.iotomy.display())
    })?;
    let iotomy = iotomy.to_str().context("the path of iotomy is not UTF-8")?.to_owned();
    if !rustix::process::geteuid().is_root() {
        bail!("observing by BPF takes root; try `sudo make bench-trace`");
    }
    let signals = Signals::hold()?;
    let folder = tempfile::Builder::new().prefix("iotomy-bench.").tempdir();
    let folder = folder.context("cannot make a temporary folder")?;
    let blocks = if args.quick { stats::FEWEST as u32 + 1 } else { args.blocks };
    let seed = args.seed.unwrap_or_else(seed);
    let started = rfc3339(SystemTime::now());
    let before = load();

    let mut order = Order::new(seed);
    let mut rounds = Rounds::prepare(&signals, iotomy.clone(), &folder)?;
    for block in 1..=blocks {
        progress(&format!("block {block} of {blocks}"));
        rounds.block(&mut order)?;
    }
    progress("start-up");
    let startup = startup::measure(&signals, &iotomy, &folder, &mut order, blocks)?;
    progress("memory");
    let memory = memory::measure(&signals, &iotomy, &folder)?;
    progress("");

    let costs = costs::costs(&rounds.measured);
    let targets = targets::judge(&costs, &startup, &memory);
    let results = Results {
        started,
        machine: machine(),
        command: command(),
        seed,
        blocks,
        loads: [before, load()],
        versions: versions(&iotomy),
        measured: std::mem::take(&mut rounds.measured),
        costs,
        startup,
        memory,
        targets,
    };
    print!("{}", results.text());
    let default = (!args.quick).then(|| PathBuf::from("results"));
    if let Some(below) = args.results.clone().or(default) {
        let folder = results.folder(&below);
        results.keep(&folder)?;
        results::keep_example(&signals, &rounds, &folder)?;
        println!("\nkept in {}", folder.display());
    }
    let missed = results.targets.iter().any(|t| t.binding && t.reached() == Some(false));
    Ok(if args.check && missed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Of iotomy, its peers and dd, each in a line.
fn versions(iotomy: &str) -> Vec<String> {
    let of = |program: &str| {
        let output = std::process::Command::new(program).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().next().map(str::to_owned)
    };
    let peers = Observer::ALL.into_iter().filter_map(|observer| observer.version()?.ok());
    of(iotomy).into_iter().chain(peers).chain(of("dd")).collect()
}
