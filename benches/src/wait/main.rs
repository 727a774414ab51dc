//! `bench-wait`: what the `epoll` waiter costs beside a bare loop, libevent, libuv and mio, in one run.
//!
//! The rounds are those of libevent's benchmark ([`iotomy_waiters::rounds`], and `peers.c` for the
//! others). Each contender is a process with pairs of its own, which makes rounds when it is told
//! to; a block asks each for some, in random order. [`mod@serve`] makes them, [`contender`] talks to those
//! who do, [`results`] judges, prints and keeps.

mod contender;
mod results;
mod serve;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use iotomy_benches::child::{Interrupted, Signals};
use iotomy_benches::order::Order;
use iotomy_benches::run::{command, load, progress, seed};
use iotomy_benches::session::own_session;
use iotomy_benches::stats::{FEWEST, median};
use iotomy_observe::{machine, rfc3339};
use iotomy_waiters::rounds::Ring;
use iotomy_waiters::{Events, Interest, Settings, waiter};

use crate::contender::{Contender, contenders};
use crate::results::{Lane, Point, Results};
use crate::serve::{BATCH, serve, thread_ns};

/// What is measured: descriptors, active ones, writes. The first is for small sets, the others are
/// those of the articles' charts.
const POINTS: [[usize; 3]; 3] = [[100, 1, 100], [7_500, 1, 100], [7_500, 100, 7_500]];

/// Blocks after which all are started anew, in random order: where a process has its sockets in memory
/// makes some hundredths of difference, which are nobody's merit.
const BLOCKS_A_LIFE: u32 = 3;

/// Hold the epoll waiter against a bare loop and against event libraries.
#[derive(Debug, Parser)]
#[command(name = "bench-wait", version)]
struct Args {
    /// The others' rounds, as scripts/build-wait-peers builds them
    #[arg(long, value_name = "FILE", default_value = "target/peers/wait-peers")]
    peers: PathBuf,

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

    #[command(subcommand)]
    part: Option<Part>,
}

/// What this program does as a part of its own measurements.
#[derive(Debug, Subcommand)]
enum Part {
    /// Makes rounds through a waiter or mio, one for each line of standard input.
    #[command(hide = true)]
    Serve {
        /// The waiter's name.
        waiter: String,
        /// How many pairs.
        pairs: usize,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.part {
        Some(Part::Serve { waiter, pairs }) => serve(waiter, *pairs).map(|()| ExitCode::SUCCESS),
        None => bench(&args),
    };
    done.unwrap_or_else(|error| {
        progress("");
        eprintln!("bench-wait: {error:#}");
        let signal = error.downcast_ref::<Interrupted>().map(|by| by.0);
        ExitCode::from(signal.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(2))
    })
}

fn bench(args: &Args) -> Result<ExitCode> {
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals)? {
        return Ok(ended);
    }
    let blocks = args.blocks.unwrap_or(if args.quick { FEWEST as u32 } else { 30 });
    let seed = args.seed.unwrap_or_else(seed);
    let (started, before) = (rfc3339(SystemTime::now()), load());
    let (lineup, versions, skipped) = contenders(&args.peers)?;
    let mut order = Order::new(seed);
    let mut points = Vec::new();
    for shape in POINTS {
        points.push(point(shape, &lineup, blocks, &mut order, &signals)?);
    }
    progress("");
    let results = Results {
        started,
        machine: machine(),
        command: command(),
        seed,
        blocks,
        loads: [before, load()],
        versions,
        skipped,
        points,
        trait_ns: by_nothing()?,
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

fn point(
    shape: [usize; 3],
    lineup: &[Contender],
    blocks: u32,
    order: &mut Order,
    signals: &Signals,
) -> Result<Point> {
    let [pairs, active, writes] = shape;
    let mut running = BTreeMap::new();
    let mut lanes: Vec<Lane> =
        lineup.iter().map(|one| Lane { name: one.name.clone(), ..Lane::default() }).collect();
    for block in 0..blocks {
        progress(&format!("n={pairs} a={active} w={writes}: block {} of {blocks}", block + 1));
        let mut turns: Vec<usize> = (0..lineup.len()).collect();
        if block % BLOCKS_A_LIFE == 0 {
            running.clear();
            order.shuffle(&mut turns);
            for at in &turns {
                running.insert(*at, lineup[*at].start(pairs)?);
            }
        }
        order.shuffle(&mut turns);
        for at in turns {
            signals.check()?;
            let contender = running.get_mut(&at).context("all were started")?;
            let (cpu, wall) = contender.rounds(active, writes)?;
            lanes[at].cpu_ns.push(cpu);
            lanes[at].wall_ns.push(wall);
        }
    }
    Ok(Point { pairs, active, writes, lanes })
}

/// What the trait and the buffer cost an event by themselves: batches of the waiter `null`, which
/// makes no call, less a loop over the same tokens; samples in ns.
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

/// The middle of some rounds.
fn middle(rounds: &[f64]) -> f64 {
    median(rounds).unwrap_or(f64::NAN)
}
