//! `bench services`: what running servers pay for being watched, and for others being watched.
//!
//! A [`mod@service`] of the [`registry`] is started once. In each block, every [`watcher`] is attached to it while it runs, its load generator
//! runs for about a second, and the watcher is detached; [`turns`] does that in random order. Ratios are of runs of the
//! same block ([`costs`]); [`results`] judges, prints and stores them. [`storm`] watches as many calls as the machine
//! makes and counts what is lost.

pub(crate) mod costs;
mod cpu_time;
mod registry;
mod results;
mod rows;
mod servers;
mod service;
mod storm;
mod turns;
mod watcher;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::bench::{Bench, no_rows, run_with_args};
use crate::child::Signals;
use crate::conditions::Conditions;
use crate::options::Options;
use crate::order::Order;
use crate::run::{built_observer, progress, version};
use crate::scratch::Scratch;
use crate::services::registry::{SERVICES, service};
use crate::services::results::ServicesResults;
use crate::services::servers::{asker, postgres};
use crate::services::service::Service;
use crate::services::storm::Storm;
use crate::services::turns::Turns;
use crate::services::watcher::Watcher;
use crate::session::own_session;
use crate::stats::FEWEST;

/// The bench.
pub(crate) static BENCH: Bench = Bench {
    name: "services",
    title: "overhead on running servers",
    minutes: 18,
    peers: &[],
    command: Args::command,
    run: |matches| run_with_args(matches, run),
    rows: rows::rows,
    overall: no_rows,
    block: Some(|raws, _, link| rows::block(raws, link)),
};

/// Overhead on running servers that are watched, or that run while another process is, in one run
///
/// HTTP servers in Go and Node and nginx under wrk, redis-server under redis-benchmark, memcached under clients of this
/// program, PostgreSQL under pgbench. Servers, load generators and observers that are not installed are skipped and named.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// Blocks of runs; every observer watches every server once in each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    blocks: Option<u32>,

    /// Only this server; may be repeated
    #[arg(long, value_name = "SERVER", value_parser = SERVICES.map(|one| one.name))]
    only: Vec<String>,

    /// Only under this observer, and under none; may be repeated
    #[arg(long, value_name = "OBSERVER")]
    under: Vec<Watcher>,

    /// Without bpftrace, perf and strace
    #[arg(long)]
    without_peers: bool,

    /// Seconds of the storm of calls; 0 leaves it out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=600))]
    storm: Option<u32>,

    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    part: Option<Helper>,
}

/// Helper processes that this program runs for its measurements.
#[derive(Debug, Subcommand)]
enum Helper {
    #[command(hide = true)]
    AsUser(postgres::AsUserArgs),
    #[command(hide = true)]
    Ask(asker::AskArgs),
    #[command(hide = true)]
    Storm(storm::StormArgs),
}

impl Args {
    fn services(&self) -> Vec<&'static Service> {
        match &self.only[..] {
            [] => SERVICES.to_vec(),
            only => only.iter().filter_map(|name| service(name)).collect(),
        }
    }

    fn watchers(&self) -> Vec<Watcher> {
        let is_wanted = |one: &Watcher| {
            let is_named = self.under.is_empty() || self.under.contains(one);
            *one == Watcher::Bare || is_named && !(self.without_peers && one.is_peer())
        };
        Watcher::ALL.into_iter().filter(is_wanted).collect()
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    match &args.part {
        None => bench(args),
        Some(Helper::AsUser(args)) => postgres::as_user(args).map(|()| ExitCode::SUCCESS),
        Some(Helper::Ask(args)) => asker::run(args).map(|()| ExitCode::SUCCESS),
        Some(Helper::Storm(args)) => storm::run(args).map(|()| ExitCode::SUCCESS),
    }
}

fn bench(args: &Args) -> Result<ExitCode> {
    let iotomy = built_observer(&args.options.iotomy, &BENCH.target())?;
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals, &args.options)? {
        return Ok(ended);
    }
    let folder = Scratch::new()?;
    let quick = args.options.quick;
    let blocks = args.blocks.unwrap_or(if quick { FEWEST as u32 } else { 11 });
    let mut conditions = Conditions::begin(&args.options)?;
    let mut order = Order::new(conditions.seed);

    let services = args.services();
    let watchers = args.watchers();
    progress("starting the servers");
    let mut turns = Turns::prepare(&signals, &iotomy, &folder, &services, &watchers)?;
    for block in 0..blocks {
        turns.block(&mut order, block, blocks)?;
    }
    let measured = turns.end();
    let seconds = args.storm.unwrap_or(if quick { 5 } else { 60 });
    progress("a storm of calls");
    let storm = (seconds > 0).then(|| Storm::measure(&signals, &iotomy, &folder, seconds));
    let storm = storm.transpose()?;
    progress("");
    conditions.end();

    let results = ServicesResults { blocks, versions: versions(&iotomy), measured, storm };
    let results = results.results(&conditions);
    let is_whole = services.len() == SERVICES.len() && watchers.len() == Watcher::ALL.len();
    let is_long = blocks >= FEWEST as u32 && seconds > 0;
    results.publish(&args.options, &conditions, is_whole && is_long)?;
    Ok(results.status(&args.options))
}

/// Returns the versions of iotomy, its peers, the servers and the load generators.
fn versions(iotomy: &str) -> Vec<String> {
    let peers = Watcher::ALL.into_iter().filter_map(|watcher| watcher.version()?.ok());
    let servers = SERVICES.into_iter().flat_map(|service| (service.versions)());
    version(Path::new(iotomy)).into_iter().chain(peers).chain(servers).collect()
}
