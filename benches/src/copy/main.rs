//! `bench-copy`: how fast `iotomy copy` moves bytes, beside its peers, in one run.
//!
//! The order of the work: [`races`] sets up what is copied and lets contenders run, [`lanes`] keeps
//! their times, [`targets`] judges, [`results`] prints and keeps.

mod bandwidth;
mod contender;
mod ends;
mod lanes;
mod races;
mod results;
mod route;
mod runner;
mod targets;
mod variants;
mod volumes;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use iotomy_benches::child::{Interrupted, Signals};
use iotomy_benches::order::Order;
use iotomy_benches::run::{command, load, progress, seed};
use iotomy_benches::session::own_session;
use iotomy_benches::stats::FEWEST;
use iotomy_observe::{machine, rfc3339};

use crate::contender::{Tool, Tools};
use crate::races::{Plan, Raced};
use crate::results::Results;
use crate::targets::Verdict;
use crate::volumes::Workshop;

/// How fast iotomy copies, beside its peers, in one run
///
/// Peers that are not installed and file systems that cannot be had are skipped and named.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// The iotomy to measure
    #[arg(long, value_name = "FILE", default_value = "target/release/iotomy")]
    iotomy: PathBuf,

    /// The program `coreutils` of uutils
    #[arg(long, value_name = "FILE", default_value = "target/peers/bin/coreutils")]
    uutils: PathBuf,

    /// Blocks of runs; every contender runs once in each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(FEWEST as i64..=1000))]
    blocks: Option<u32>,

    /// MiB copied in each run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(4..=65536))]
    size: Option<u64>,

    /// Few and small runs, and nothing is kept unless --results says where
    #[arg(long)]
    quick: bool,

    /// Race the movers of iotomy instead, each with its options
    #[arg(long)]
    sweep: bool,

    /// Only races whose name contains this; can be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,

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
    /// Nothing at all: what starting and ending a process takes.
    #[command(hide = true)]
    Nothing,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if matches!(args.part, Some(Part::Nothing)) {
        return ExitCode::SUCCESS;
    }
    bench(&args).unwrap_or_else(|error| {
        progress("");
        eprintln!("bench-copy: {error:#}");
        let signal = error.downcast_ref::<Interrupted>().map(|by| by.0);
        ExitCode::from(signal.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(2))
    })
}

fn bench(args: &Args) -> Result<ExitCode> {
    let tools = tools(args)?;
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals)? {
        return Ok(ended);
    }
    let workshop = Workshop::open()?;
    let bytes = args.size.unwrap_or(if args.quick { 64 } else { 1024 }) << 20;
    enough_memory(bytes)?;
    let blocks = args.blocks.unwrap_or(if args.quick || args.sweep { FEWEST as u32 } else { 9 });
    let seed = args.seed.unwrap_or_else(seed);
    let started = rfc3339(SystemTime::now());
    let before = load();
    let bandwidth = bandwidth::memory_copy();
    let (peers, missing) = peers(&tools);
    let plan = Plan {
        signals: &signals,
        tools: &tools,
        workshop: &workshop,
        peers,
        blocks,
        starts: if args.quick { 50 } else { 300 },
        files: if args.quick { 1_000 } else { 10_000 },
        bytes,
        only: args.only.clone(),
        sweep: args.sweep,
    };
    let Raced { races, mut skipped } = plan.run(&mut Order::new(seed))?;
    skipped.splice(0..0, missing);
    let results = Results {
        started,
        machine: machine(),
        command: command(),
        seed,
        blocks,
        bytes,
        loads: [before, load()],
        versions: versions(&tools),
        bandwidths: [bandwidth, bandwidth::memory_copy()],
        targets: if args.sweep { Vec::new() } else { targets::judge(&races) },
        races,
        skipped,
        sweep: args.sweep,
    };
    print!("{}", results.text());
    let default = (!args.quick && args.only.is_empty()).then(|| PathBuf::from("results"));
    if let Some(below) = args.results.clone().or(default) {
        let folder = results.folder(&below);
        results.keep(&folder)?;
        println!("\nkept in {}", folder.display());
    }
    let missed = results.targets.iter().any(|target| target.verdict == Verdict::Missed);
    Ok(if args.check && missed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn tools(args: &Args) -> Result<Tools> {
    let iotomy = args.iotomy.canonicalize().with_context(|| {
        format!("cannot find {}; build it with `make build`", args.iotomy.display())
    })?;
    let uutils = args.uutils.canonicalize().unwrap_or_else(|_| args.uutils.clone());
    Ok(Tools { iotomy, uutils })
}

/// Source, target, an image and what is written back to it are all in memory.
fn enough_memory(bytes: u64) -> Result<()> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = available.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    let needed = 7 * bytes + (1 << 30);
    let has = kib.map_or(u64::MAX, |kib| kib << 10);
    ensure!(
        has >= needed,
        "{} MiB of memory are available and {} are needed; try a smaller --size",
        has >> 20,
        needed >> 20
    );
    Ok(())
}

fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::to_owned)
}

/// Peers that are here, and why others are not.
fn peers(tools: &Tools) -> (Vec<Tool>, Vec<(String, String)>) {
    let here = |tool: &Tool| match tool {
        Tool::UuCat | Tool::UuCp => version(&tools.uutils).is_some(),
        tool => version(Path::new(tool.name())).is_some(),
    };
    let (peers, missing): (Vec<Tool>, Vec<Tool>) = Tool::PEERS.into_iter().partition(here);
    let reason = |tool: Tool| (tool.name().to_owned(), "it is not installed".to_owned());
    (peers, missing.into_iter().map(reason).collect())
}

/// Of iotomy and its peers, each in a line.
fn versions(tools: &Tools) -> Vec<String> {
    let programs = [&tools.iotomy, Path::new("cp"), Path::new("pv"), &tools.uutils];
    programs.into_iter().filter_map(version).collect()
}
