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

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use iotomy_benches::child::Signals;
use iotomy_benches::conditions::Conditions;
use iotomy_benches::lanes::lanes;
use iotomy_benches::options::Options;
use iotomy_benches::order::Order;
use iotomy_benches::run::{ended, progress};
use iotomy_benches::session::own_session;
use iotomy_benches::stats::{FEWEST, median};

use crate::contender::{Running, contenders};
use crate::results::Found;

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

    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    ended("bench-files", bench(&Args::parse()))
}

fn bench(args: &Args) -> Result<ExitCode> {
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals, &args.options)? {
        return Ok(ended);
    }
    let quick = args.options.quick;
    let blocks = args.blocks.unwrap_or(if quick { FEWEST as u32 } else { 60 });
    let mut conditions = Conditions::begin(&args.options)?;
    let memory = tempfile::Builder::new().prefix("iotomy-bench.").tempdir_in("/dev/shm");
    let memory = memory.context("cannot make a folder in /dev/shm")?;
    let (lineup, mut skipped) = contenders(&args.peers, memory.path())?;
    let mut order = Order::new(conditions.seed);
    let pairs = pairs::raw_over_bare(&lineup, quick, &mut order, &signals, memory.path())?;
    let lanes = lanes(
        "",
        lineup.iter().map(|one| one.name.clone()),
        blocks,
        (&mut order, &signals),
        |at| lineup[at].start(&memory.path().join(at.to_string())),
        Running::rounds,
    )?;
    let agreement =
        agreement::agreement(&args.path, quick, &mut order, &signals).unwrap_or_else(|error| {
            skipped.push(("reads of a file".to_owned(), format!("{error:#}")));
            Vec::new()
        });
    progress("");
    conditions.end();
    let results = Found { blocks, skipped, pairs, lanes, agreement }.results(&conditions);
    results.publish(&args.options, &conditions, true)?;
    Ok(results.status(&args.options))
}

/// The middle of some figures.
fn middle(figures: &[f64]) -> f64 {
    median(figures).unwrap_or(f64::NAN)
}
