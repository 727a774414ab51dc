//! `bench ports`: the CPU time of event ports, `/dev/poll` and kqueue of libiotomy-ports compared with bare `epoll(7)`
//! used alike, in one run; whether threads that share a port get each event once; and the memory of what is watched.
//!
//! The rounds are those of libevent's benchmark, by `loops.c`, whose loops are the contenders as those of `bench wait`
//! are. [`results`] judges, prints and stores the results.

mod results;
mod rows;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::{CommandFactory, Parser};

use crate::bench::{Bench, no_rows, run_with_args};
use crate::child::Signals;
use crate::conditions::Conditions;
use crate::lanes::lanes;
use crate::options::Options;
use crate::order::Order;
use crate::ports::results::{Memory, PortsResults, Shared};
use crate::run::progress;
use crate::session::own_session;
use crate::stats::FEWEST;
use crate::summary::{of_target, targets};
use crate::wait::contender::Contender;
use crate::wait::results::Point;

/// The measured points: watched descriptors (of twice as many that are open), active ones, writes.
const POINTS: [[usize; 3]; 4] =
    [[100, 1, 100], [7_500, 1, 100], [7_500, 100, 7_500], [7_500, 7_500, 7_500]];

/// Threads that share a port, and the events that are sent to it.
const THREADS: u64 = 4;
const EVENTS: u64 = 10_000_000;
const EVENTS_IF_QUICK: u64 = 100_000;

/// The bench.
pub(crate) static BENCH: Bench = Bench {
    name: "ports",
    title: "CPU time of event ports, /dev/poll and kqueue",
    minutes: 6,
    peers: &["build-ports-peers"],
    command: Args::command,
    run: |matches| run_with_args(matches, bench),
    rows: |raw| targets(&raw.sweep).map(|claim| of_target(claim, 3, raw)).collect(),
    overall: no_rows,
    block: Some(|raws, _, link| rows::block(raws, link)),
};

/// Hold event ports, /dev/poll and kqueue against bare epoll used alike.
#[derive(Debug, Parser)]
struct Args {
    /// Blocks of rounds; every loop makes some in each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(FEWEST as i64..=1000))]
    blocks: Option<u32>,

    #[command(flatten)]
    options: Options,
}

fn bench(args: &Args) -> Result<ExitCode> {
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals, &args.options)? {
        return Ok(ended);
    }
    let is_quick = args.options.quick;
    let blocks = args.blocks.unwrap_or(if is_quick { FEWEST as u32 } else { 30 });
    let mut conditions = Conditions::begin(&args.options)?;
    let program = args.options.peers.join("ports-loops");
    let names = answer(&program, &["list"])?;
    let lineup: Vec<Contender> = names.lines().map(|name| Contender::of(&program, name)).collect();
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
    signals.check()?;
    progress("threads at one port");
    let shared = shared(&program, if is_quick { EVENTS_IF_QUICK } else { EVENTS })?;
    let memory = lineup.iter().map(|one| memory(&program, &one.name));
    let memory = memory.collect::<Result<Vec<Memory>>>()?;
    progress("");
    conditions.end();
    let found = PortsResults { blocks, points, shared, memory };
    let results = found.results(&conditions);
    results.publish(&args.options, &conditions, true)?;
    Ok(results.status(&args.options))
}

/// Has threads retrieve events from one port, and counts what came, what came twice and what never.
fn shared(program: &Path, events: u64) -> Result<Shared> {
    let line = answer(program, &["shared", &THREADS.to_string(), &events.to_string()])?;
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [came, twice, never] = numbers[..] else { bail!("{line:?} is not three numbers") };
    Ok(Shared { threads: THREADS, events, came, twice, never })
}

/// Returns the bytes of the process that a watched descriptor takes in a loop.
fn memory(program: &Path, name: &str) -> Result<Memory> {
    const PAIRS: &str = "7500";
    let line = answer(program, &["memory", name, PAIRS])?;
    let bytes = line.trim().parse().with_context(|| format!("{line:?} is no number of bytes"))?;
    Ok(Memory { name: name.to_owned(), bytes })
}

fn answer(program: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new(program).args(words).output();
    let output = output.with_context(|| {
        format!("cannot run {}; `bench prepare ports` builds it", program.display())
    })?;
    if !output.status.success() {
        bail!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("the loops answer with text")
}
