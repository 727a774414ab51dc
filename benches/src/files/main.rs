//! `bench-files`: what the rounds of the experiment `files` cost beside a bare loop of the same calls, by
//! the library and by io_uring; and whether fio and sysbench find what `device` does.
//!
//! Each contender is a process in a folder of its own in memory, which makes rounds when it is told to.
//! A block asks each for some, in random order. [`contender`] talks to them, [`pairs`] holds `raw` against
//! the bare loop, [`mod@agreement`] asks fio and sysbench, [`results`] judges, prints and keeps.

mod agreement;
mod contender;
mod pairs;
mod results;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, Result};
use clap::Parser;
use iotomy_benches::child::{Interrupted, Signals};
use iotomy_benches::order::Order;
use iotomy_benches::run::{command, load, progress, seed};
use iotomy_benches::session::own_session;
use iotomy_benches::stats::{FEWEST, median};
use iotomy_observe::{machine, rfc3339};
use tempfile::TempDir;

use crate::contender::{Lineup, contenders};
use crate::results::{Lane, Results};

/// Blocks after which all are started anew: where a process has its memory makes some hundredths of
/// difference, which are nobody's merit.
const BLOCKS_A_LIFE: u32 = 3;

/// Hold the rounds of the experiment `files` against a bare loop.
#[derive(Debug, Parser)]
#[command(name = "bench-files", version)]
struct Args {
    /// The folder scripts/build-files-peers builds the bare loop into
    #[arg(long, value_name = "FOLDER", default_value = "target/peers")]
    peers: PathBuf,

    /// Where the file lies that fio, sysbench and iotomy read
    #[arg(long, value_name = "FOLDER", default_value = "/var/tmp")]
    path: PathBuf,

    /// Blocks of rounds; every contender makes some in each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(FEWEST as i64..=1000))]
    blocks: Option<u32>,

    /// Few blocks, and nothing is kept unless --results says where
    #[arg(long)]
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
}

fn main() -> ExitCode {
    bench(&Args::parse()).unwrap_or_else(|error| {
        progress("");
        eprintln!("bench-files: {error:#}");
        let signal = error.downcast_ref::<Interrupted>().map(|by| by.0);
        ExitCode::from(signal.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(2))
    })
}

fn bench(args: &Args) -> Result<ExitCode> {
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals)? {
        return Ok(ended);
    }
    let blocks = args.blocks.unwrap_or(if args.quick { FEWEST as u32 } else { 60 });
    let seed = args.seed.unwrap_or_else(seed);
    let (started, before) = (rfc3339(SystemTime::now()), load());
    let memory = tempfile::Builder::new().prefix("iotomy-bench.").tempdir_in("/dev/shm");
    let memory = memory.context("cannot make a folder in /dev/shm")?;
    let (lineup, mut skipped) = contenders(&args.peers, memory.path())?;
    let mut order = Order::new(seed);
    let pairs = pairs::raw_over_bare(&lineup, args.quick, &mut order, &signals, memory.path())?;
    let lanes = rounds(&lineup, blocks, &mut order, &signals, &memory)?;
    let agreement = agreement::agreement(&args.path, args.quick, &mut order, &signals)
        .unwrap_or_else(|error| {
            skipped.push(("reads of a file".to_owned(), format!("{error:#}")));
            Vec::new()
        });
    progress("");
    let results = Results {
        started,
        machine: machine(),
        command: command(),
        seed,
        blocks,
        loads: [before, load()],
        skipped,
        pairs,
        lanes,
        agreement,
    };
    print!("{}", results.text());
    let default = (!args.quick).then(|| PathBuf::from("results"));
    if let Some(below) = args.results.clone().or(default) {
        let folder = results.folder(&below);
        results.keep(&folder)?;
        println!("\nkept in {}", folder.display());
    }
    Ok(if args.check && results.is_any_missed() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn rounds(
    lineup: &Lineup,
    blocks: u32,
    order: &mut Order,
    signals: &Signals,
    memory: &TempDir,
) -> Result<Vec<Lane>> {
    let mut running = BTreeMap::new();
    let mut lanes: Vec<Lane> =
        lineup.iter().map(|one| Lane { name: one.name.clone(), ..Lane::default() }).collect();
    for block in 0..blocks {
        progress(&format!("block {} of {blocks}", block + 1));
        let mut turns: Vec<usize> = (0..lineup.len()).collect();
        if block % BLOCKS_A_LIFE == 0 {
            running.clear();
            order.shuffle(&mut turns);
            for at in &turns {
                running.insert(*at, lineup[*at].start(&memory.path().join(at.to_string()))?);
            }
        }
        order.shuffle(&mut turns);
        for at in turns {
            signals.check()?;
            let (cpu, wall) = running.get_mut(&at).context("all were started")?.rounds()?;
            lanes[at].cpu_ns.push(cpu);
            lanes[at].wall_ns.push(wall);
        }
    }
    Ok(lanes)
}

/// The middle of some figures.
fn middle(figures: &[f64]) -> f64 {
    median(figures).unwrap_or(f64::NAN)
}
