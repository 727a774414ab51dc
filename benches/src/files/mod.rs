//! `bench files`: the overhead of the rounds of the experiment `files` compared with a bare loop of the same calls,
//! through the library and through io_uring; and whether fio and sysbench agree with `device`.
//!
//! Each contender is a process with its own directory in memory that makes rounds on request. In each block every
//! contender makes some rounds, in random order. [`contender`] talks to the processes, [`pairs`] compares `raw` with
//! the bare loop, [`mod@agreement`] runs fio and sysbench, [`results`] judges, prints and stores the results.

mod agreement;
mod contender;
mod pairs;
mod results;
mod rows;

pub use agreement::{READS, make_reads};

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};

use crate::bench::{Bench, no_rows, run_with_args};
use crate::child::Signals;
use crate::conditions::Conditions;
use crate::files::agreement::agreement;
use crate::files::contender::{Running, contenders};
use crate::files::results::FilesResults;
use crate::lanes::lanes;
use crate::options::Options;
use crate::order::Order;
use crate::run::progress;
use crate::scratch::Scratch;
use crate::session::own_session;
use crate::stats::FEWEST;

/// The bench.
pub(crate) static BENCH: Bench = Bench {
    name: "files",
    title: "time per operation on small files",
    minutes: 3,
    peers: &["build-files-peers"],
    command: Args::command,
    run: |matches| run_with_args(matches, run),
    rows: rows::rows,
    overall: no_rows,
    block: None,
};

/// Hold the rounds of the experiment `files` against a bare loop.
#[derive(Debug, Parser)]
struct Args {
    /// Where the file lies that fio, sysbench and iotomy read
    #[arg(long, value_name = "FOLDER", default_value = "/var/tmp")]
    path: PathBuf,

    /// Blocks of rounds; every contender makes some in each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(FEWEST as i64..=1000))]
    blocks: Option<u32>,

    #[command(flatten)]
    options: Options,
}

fn run(args: &Args) -> Result<ExitCode> {
    let signals = Signals::hold()?;
    if let Some(ended) = own_session(&signals, &args.options)? {
        return Ok(ended);
    }
    let quick = args.options.quick;
    let blocks = args.blocks.unwrap_or(if quick { FEWEST as u32 } else { 60 });
    let mut conditions = Conditions::begin(&args.options)?;
    let memory = Scratch::below(Path::new("/dev/shm"))?;
    let (lineup, mut skipped) = contenders(&args.options.peers, memory.path())?;
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
    let where_and_how = (&*args.path, &*args.options.iotomy);
    let agreement = agreement(where_and_how, quick, &mut order, &signals).unwrap_or_else(|error| {
        skipped.push(("reads of a file".to_owned(), format!("{error:#}")));
        Vec::new()
    });
    progress("");
    conditions.end();
    let results = FilesResults { blocks, skipped, pairs, lanes, agreement }.results(&conditions);
    results.publish(&args.options, &conditions, true)?;
    Ok(results.status(&args.options))
}
