//! `bench wait`: the overhead of the `epoll` waiter compared with a bare loop, libevent, libuv and mio, in one run.
//!
//! The rounds are those of libevent's benchmark ([`iotomy_waiters::rounds`], and `peers.c` for the others). Each
//! contender is a process with its own pairs that makes rounds on request. In each block every contender makes some
//! rounds, in random order. [`mod@serve`] makes the rounds, [`contender`] talks to the processes, [`results`] judges,
//! prints and stores the results.

pub(crate) mod contender;
mod lock_file;
pub(crate) mod results;
mod rows;
mod serve;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, Subcommand};
use iotomy_waiters::rounds::Ring;
use iotomy_waiters::{Events, Interest, Settings, waiter};

use crate::bench::{Bench, no_rows, run_with_args};
use crate::child::Signals;
use crate::conditions::Conditions;
use crate::lanes::lanes;
use crate::options::Options;
use crate::order::Order;
use crate::run::{progress, thread_ns};
use crate::session::own_session;
use crate::stats::FEWEST;
use crate::wait::contender::contenders;
use crate::wait::results::{Point, WaitResults};
use crate::wait::serve::{BATCH, serve};

pub use crate::wait::serve::wait_peers_mio;

/// The measured points: descriptors, active descriptors, writes. The first point is for small sets,
/// the others are those of the articles' charts.
const POINTS: [[usize; 3]; 3] = [[100, 1, 100], [7_500, 1, 100], [7_500, 100, 7_500]];

/// The bench.
pub(crate) static BENCH: Bench = Bench {
    name: "wait",
    title: "CPU time of waiting",
    minutes: 3,
    peers: &["build-wait-peers"],
    command: Args::command,
    run: |matches| run_with_args(matches, run),
    rows: rows::rows,
    overall: no_rows,
    block: Some(|raws, _, link| rows::block(raws, link)),
};

/// Hold the epoll waiter against a bare loop and against event libraries.
#[derive(Debug, Parser)]
struct Args {
    /// Blocks of rounds; every contender makes some in each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(FEWEST as i64..=1000))]
    blocks: Option<u32>,

    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    part: Option<Helper>,
}

/// Helper processes that this program runs for its measurements.
#[derive(Debug, Subcommand)]
enum Helper {
    /// Makes rounds through a waiter or mio, one for each line of standard input.
    #[command(hide = true)]
    Serve {
        /// The waiter's name.
        waiter: String,
        /// How many pairs.
        pairs: usize,
    },
}

fn run(args: &Args) -> Result<ExitCode> {
    match &args.part {
        Some(Helper::Serve { waiter, pairs }) => serve(waiter, *pairs).map(|()| ExitCode::SUCCESS),
        None => bench(args),
    }
}

fn bench(args: &Args) -> Result<ExitCode> {
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals, &args.options)? {
        return Ok(ended);
    }
    let blocks = args.blocks.unwrap_or(if args.options.quick { FEWEST as u32 } else { 30 });
    let mut conditions = Conditions::begin(&args.options)?;
    let (lineup, versions, skipped) = contenders(&args.options.peers.join("wait-peers"))?;
    let mut order = Order::new(conditions.seed);
    let mut points = Vec::new();
    for [pairs, active, writes] in POINTS {
        let lanes = lanes(
            &format!("n={pairs} a={active} w={writes}: "),
            lineup.iter().map(|one| one.name.clone()),
            blocks,
            (&mut order, &signals),
            |at| lineup[at].start(pairs),
            |contender| contender.rounds(active, writes),
        )?;
        points.push(Point { pairs, active, writes, lanes });
    }
    progress("");
    let trait_ns = by_nothing()?;
    conditions.end();
    let found = WaitResults { blocks, versions, skipped, points, trait_ns };
    let results = found.results(&conditions);
    results.publish(&args.options, &conditions, true)?;
    Ok(results.status(&args.options))
}

/// Returns the overhead of the trait and the buffer per event: batches of the waiter `null`, which
/// makes no call, minus a loop over the same tokens; samples in ns.
fn by_nothing() -> Result<Vec<f64>> {
    const TOKENS: u64 = 100;
    const WAITS: u32 = 2_000;
    let declared = waiter("null").context("there is no waiter null")?;
    let mut waiter = (declared.open)(&Settings::default())?;
    let ring = Ring::new(usize::try_from(TOKENS)?)?;
    for at in 0..usize::try_from(TOKENS)? {
        waiter.add(ring.reader(at), Interest::READ, at as u64)?;
    }
    let mut events = Events::with_capacity(BATCH);
    let tokens: Vec<u64> = (0..TOKENS).collect();
    let mut samples = Vec::new();
    for _ in 0..25 {
        let began = thread_ns();
        for _ in 0..WAITS {
            std::hint::black_box(&tokens).iter().for_each(|token| _ = std::hint::black_box(*token));
        }
        let bare = thread_ns() - began;
        let began = thread_ns();
        for _ in 0..WAITS {
            waiter.wait(&mut events, None)?;
            events.iter().for_each(|event| _ = std::hint::black_box(event.token));
        }
        let ours = thread_ns() - began;
        samples.push((ours - bare) as f64 / f64::from(WAITS) / TOKENS as f64);
    }
    Ok(samples)
}
