//! `bench copy`: the speed of `iotomy copy` compared with its peers, in one run.
//!
//! The steps: [`races`] prepares the sources and runs the contenders, [`lanes`] stores their times,
//! [`targets`] judges, and [`results`] prints and stores the results.

mod bandwidth;
mod contender;
mod ends;
mod lanes;
mod races;
mod results;
mod route;
mod rows;
mod runner;
mod targets;
mod variants;
mod volumes;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{CommandFactory, Parser};

use crate::bench::{Bench, run_with_args};
use crate::child::Signals;
use crate::conditions::Conditions;
use crate::copy::contender::{Tool, Tools};
use crate::copy::races::{CopyRaces, RacesPlan};
use crate::copy::results::CopyResults;
use crate::copy::volumes::Workshop;
use crate::options::Options;
use crate::order::Order;
use crate::run::{built, version};
use crate::session::own_session;
use crate::stats::FEWEST;

/// The bench.
pub(crate) static BENCH: Bench = Bench {
    name: "copy",
    title: "speed of copying",
    minutes: 28,
    peers: &["setup-uutils"],
    command: Args::command,
    run: |matches| run_with_args(matches, run),
    rows: rows::rows,
    overall: rows::overall,
    block: Some(|_, rows, link| rows::block(rows, link)),
};

/// How fast iotomy copies, beside its peers, in one run
///
/// Peers that are not installed and file systems that cannot be had are skipped and named.
#[derive(Debug, Parser)]
struct Args {
    /// Blocks of runs; every contender runs once in each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(FEWEST as i64..=1000))]
    blocks: Option<u32>,

    /// MiB copied in each run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(4..=65536))]
    size: Option<u64>,

    /// Race the movers of iotomy instead, each with its options
    #[arg(long)]
    sweep: bool,

    /// Only races whose name contains this; can be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,

    #[command(flatten)]
    options: Options,
}

fn run(args: &Args) -> Result<ExitCode> {
    let quick = args.options.quick;
    let uutils = args.options.peers.join("bin/coreutils");
    let uutils = uutils.canonicalize().unwrap_or(uutils);
    let tools = Tools { iotomy: built(&args.options.iotomy)?, uutils };
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals, &args.options)? {
        return Ok(ended);
    }
    let workshop = Workshop::open()?;
    let bytes = args.size.unwrap_or(if quick { 64 } else { 1024 }) << 20;
    enough_memory(bytes)?;
    let blocks = args.blocks.unwrap_or(if quick || args.sweep { FEWEST as u32 } else { 25 });
    let mut conditions = Conditions::begin(&args.options)?;
    let bandwidth = bandwidth::memory_copy();
    let (peers, missing) = peers(&tools);
    let plan = RacesPlan {
        signals: &signals,
        tools: &tools,
        workshop: &workshop,
        peers,
        blocks,
        starts: if quick { 50 } else { 300 },
        files: if quick { 1_000 } else { 10_000 },
        bytes,
        only: args.only.clone(),
        sweep: args.sweep,
    };
    let CopyRaces { races, mut skipped } = plan.run(&mut Order::new(conditions.seed))?;
    skipped.splice(0..0, missing);
    conditions.end();
    let found = CopyResults {
        blocks,
        bytes,
        versions: versions(&tools),
        bandwidths: [bandwidth, bandwidth::memory_copy()],
        targets: if args.sweep { Vec::new() } else { targets::judge(&races) },
        races,
        skipped,
        sweep: args.sweep,
    };
    let results = found.results(&conditions);
    results.publish(&args.options, &conditions, args.only.is_empty())?;
    Ok(results.status(&args.options))
}

/// Fails unless there is enough memory: source, target, an image and its written-back data are all
/// in memory.
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

/// Returns the available peers, and the reasons why others are missing.
fn peers(tools: &Tools) -> (Vec<Tool>, Vec<(String, String)>) {
    let here = |tool: &Tool| match tool {
        Tool::UuCat | Tool::UuCp => version(&tools.uutils).is_some(),
        tool => version(Path::new(tool.name())).is_some(),
    };
    let (peers, missing): (Vec<Tool>, Vec<Tool>) = Tool::PEERS.into_iter().partition(here);
    let reason = |tool: Tool| (tool.name().to_owned(), "it is not installed".to_owned());
    (peers, missing.into_iter().map(reason).collect())
}

/// Returns the versions of iotomy and its peers, one per line.
fn versions(tools: &Tools) -> Vec<String> {
    let programs = [&tools.iotomy, Path::new("cp"), Path::new("pv"), &tools.uutils];
    programs.into_iter().filter_map(version).collect()
}
