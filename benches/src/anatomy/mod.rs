//! `bench anatomy`: the overhead that `iotomy anatomy` adds to a watched process, component by component, in one run.
//!
//! A process repeats the same work, pinned to a CPU. Samples are switched on and off between its turns within one watch
//! (see [`turns`]); samples with and without user stacks are compared in two simultaneous watches (see [`callers`]).
//! Overheads that cannot be switched are compared between watches: two modes run for a moment each, in pairs of random
//! order, on the same process with the same memory. The compared figure is the on-CPU time of a call, from the kernel's
//! exact times. It excludes the start and the end of a watch and the time in which the process did not run.

mod callers;
mod events;
mod rows;
mod turns;
mod work;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::{CommandFactory, Parser, Subcommand};
use iotomy_record::{Trace, store};

use self::callers::Stacks;
use self::work::Work;
use crate::bench::{Bench, no_rows, run_with_args};
use crate::child::{Signals, guard_of};
use crate::conditions::Conditions;
use crate::options::Options;
use crate::order::Order;
use crate::record::{Case, Sweep};
use crate::results::Results;
use crate::run::{built, progress};
use crate::scratch::Scratch;
use crate::stats::{FEWEST, estimate, median};
use crate::tables::{digits, interval, table};

/// The duration of a watch in seconds: about 200 samples.
const WINDOW: &str = "0.2";
/// Rounds of turns for each pair of watches; a pair takes much longer than a round.
const ROUNDS_A_PAIR: u32 = 20;
/// The sampled work. The targets are judged by the first.
static SAMPLED: [Work; 4] = [Work::Zero, Work::Getppid, Work::File, Work::Spin];
/// The name of that measurement, for `--only`.
const SAMPLES: &str = "samples";

/// The bench.
pub(crate) static BENCH: Bench = Bench {
    name: "anatomy",
    title: "overhead of sampling",
    minutes: 4,
    peers: &[],
    command: Args::command,
    run: |matches| run_with_args(matches, run),
    rows: rows::rows,
    overall: no_rows,
    block: None,
};

/// What `iotomy anatomy` adds to a process that is watched, in one run
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// Pairs of watches; samples are switched on and off twenty times as often
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "quick", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pairs: u32,

    /// Samples a second on each CPU
    #[arg(long, value_name = "HZ", default_value_t = 1_000)]
    rate: u32,

    /// Only the part of this name
    #[arg(long, value_name = "PART")]
    only: Option<String>,

    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    part: Option<Job>,
}

/// Helper processes that this program runs for its measurements.
#[derive(Debug, Subcommand)]
enum Job {
    #[command(hide = true)]
    Work { work: Work, file: PathBuf },
    #[command(hide = true)]
    Turns { work: Work, file: PathBuf },
}

/// A mode of watching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchMode {
    Trace,
    /// Anatomy with hardly any samples.
    Unsampled,
    Sampled,
    /// As unsampled, with timelines.
    Timelines,
}

impl WatchMode {
    fn words(self, rate: u32) -> Vec<String> {
        let rate = rate.to_string();
        let words: &[&str] = match self {
            Self::Trace => &["trace", "--observer", "bpf"],
            Self::Unsampled => &["anatomy", "--rate", "1"],
            Self::Sampled => &["anatomy", "--rate", &rate],
            Self::Timelines => &["anatomy", "--rate", "1", "--timeline=3"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

/// An addition to a mode whose overhead is measured on some work.
struct AddedCost {
    name: &'static str,
    work: Work,
    pair: Pair,
}

/// The method that compares the measurements without and with the addition.
#[derive(Debug, Clone, Copy)]
enum Pair {
    /// In separate watches, one after the other.
    Watches([WatchMode; 2]),
    /// In turns of two simultaneous watches (see [`callers`]), at the rate of the run or a high one.
    UserStacks { is_dense: bool },
}

static PARTS: [AddedCost; 5] = [
    AddedCost { name: "user stacks", work: Work::Zero, pair: Pair::UserStacks { is_dense: false } },
    AddedCost {
        name: "user stacks, at a high rate",
        work: Work::Zero,
        pair: Pair::UserStacks { is_dense: true },
    },
    AddedCost {
        name: "all of anatomy",
        work: Work::Zero,
        pair: Pair::Watches([WatchMode::Trace, WatchMode::Sampled]),
    },
    AddedCost {
        name: "block I/O and read-ahead",
        work: Work::File,
        pair: Pair::Watches([WatchMode::Trace, WatchMode::Unsampled]),
    },
    AddedCost {
        // Its name in the raw records.
        name: "stories",
        work: Work::File,
        pair: Pair::Watches([WatchMode::Unsampled, WatchMode::Timelines]),
    },
];

/// The measurements of an addition.
struct Measured {
    part: &'static AddedCost,
    /// On-CPU ns of a call, by mode, pair by pair.
    ns: [Vec<f64>; 2],
    /// The unwound stacks, when they are the addition.
    stacks: Option<Stacks>,
}

impl Measured {
    fn pairs(&self) -> impl Iterator<Item = (f64, f64)> {
        self.ns[0].iter().copied().zip(self.ns[1].iter().copied())
    }

    fn added_percent(&self) -> Vec<f64> {
        self.pairs().map(|(without, with)| (with / without - 1.0) * 100.0).collect()
    }

    fn added_ns(&self) -> Vec<f64> {
        self.pairs().map(|(without, with)| with - without).collect()
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    match &args.part {
        Some(Job::Work { work, file }) => work::run(*work, file).map(|()| ExitCode::SUCCESS),
        Some(Job::Turns { work, file }) => {
            work::run_in_turns(*work, file).map(|()| ExitCode::SUCCESS)
        }
        None => bench(args),
    }
}

fn bench(args: &Args) -> Result<ExitCode> {
    let signals = Signals::hold()?;
    let temporary = Scratch::new()?;
    let mut conditions = Conditions::begin(&args.options)?;
    let mut order = Order::new(conditions.seed);
    let wanted = |name: &str| args.only.as_deref().is_none_or(|only| name.contains(only));
    let mut sampled = Vec::new();
    for work in SAMPLED.into_iter().filter(|_| wanted(SAMPLES)) {
        sampled.push(sample(args, &signals, temporary.path(), work, &mut order)?);
    }
    let all: Vec<Measured> = PARTS
        .iter()
        .filter(|part| wanted(part.name))
        .map(|part| measure(args, &signals, temporary.path(), part, &mut order))
        .collect::<Result<_>>()?;
    progress("");
    conditions.end();
    let results = Results {
        folder: "anatomy",
        title: "Overhead of sampling",
        text: text(&sampled, &all, &conditions),
        method: String::new(),
        record: sweep(&conditions, &sampled, &all),
        is_on_one_line: true,
    };
    results.publish(&args.options, &conditions, args.only.is_none())?;
    Ok(results.status(&args.options))
}

/// Returns the number of pairs of watches and of rounds of turns.
fn pairs(args: &Args) -> (u32, u32) {
    let pairs = if args.options.quick { FEWEST as u32 } else { args.pairs };
    (pairs, pairs.saturating_mul(ROUNDS_A_PAIR))
}

fn sample(
    args: &Args,
    signals: &Signals,
    folder: &Path,
    work: Work,
    order: &mut Order,
) -> Result<turns::Measured> {
    let iotomy = built(&args.options.iotomy)?;
    let (_, rounds) = pairs(args);
    turns::measure((&iotomy, args.rate), signals, folder, work, (rounds, order))
        .with_context(|| format!("samples of {}", work.name()))
}

fn measure(
    args: &Args,
    signals: &Signals,
    folder: &Path,
    part: &'static AddedCost,
    order: &mut Order,
) -> Result<Measured> {
    let (pairs, rounds) = pairs(args);
    let ways = match part.pair {
        Pair::Watches(ways) => ways,
        Pair::UserStacks { is_dense } => {
            let iotomy = built(&args.options.iotomy)?;
            let rate = if is_dense { callers::dense(args.rate) } else { args.rate };
            let with = (iotomy.as_path(), rate);
            let found = callers::measure(with, signals, folder, part.work, (rounds, order));
            let callers::Measured { ns, stacks } = found.context(part.name)?;
            return Ok(Measured { part, ns, stacks: Some(stacks) });
        }
    };
    let worker = part.work.start(folder)?;
    let mut measured = Measured { part, ns: Default::default(), stacks: None };
    for pair in 0..pairs {
        progress(&format!("{}: pair {} of {pairs}", part.name, pair + 1));
        let first = usize::from(order.coin());
        for side in [first, 1 - first] {
            let trace = watched(args, folder, ways[side], worker.pid());
            signals.check()?;
            let trace = trace?;
            measured.ns[side].push(a_call(&trace)?);
        }
    }
    Ok(measured)
}

/// Watches the process for a moment.
fn watched(args: &Args, folder: &Path, way: WatchMode, pid: u32) -> Result<Trace> {
    let path = folder.join("record.json");
    let mut watch = Command::new(&args.options.iotomy);
    watch.args(way.words(args.rate)).args(["-q", "-d", WINDOW, "--json"]).arg(&path);
    watch.args(["-p", &pid.to_string()]);
    let status = guard_of(&watch)?.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot run {}", args.options.iotomy.display()))?;
    if !status.success() {
        bail!("{watch:?} ended with {status}; `iotomy doctor` says what is missing");
    }
    if way == WatchMode::Trace {
        return Ok(store::load_trace(&path)?);
    }
    Ok(store::load_anatomy(&path)?.trace)
}

/// Returns the on-CPU ns of a call.
fn a_call(trace: &Trace) -> Result<f64> {
    let ns: u64 = trace.ledger.iter().map(|row| row.user_ns + row.calls_on_cpu_ns).sum();
    let calls: u64 = trace.calls.iter().map(|row| row.calls).sum();
    if calls == 0 {
        bail!("the process made no call while it was watched");
    }
    Ok(ns as f64 / calls as f64)
}

fn text(sampled: &[turns::Measured], all: &[Measured], conditions: &Conditions) -> String {
    let mut text = String::new();
    if !sampled.is_empty() {
        text += "Time on a CPU with samples and with as many interrupts without iotomy, turn by turn of one \
                 process in one watch: median and 95 % interval over rounds.\n\n";
        text += &turns::text(sampled);
        text += "\n";
        for claim in sampled.iter().flat_map(turns::Measured::claims) {
            text += &format!("- {}: {}\n", claim.text, claim.verdict);
        }
        text += "\n";
    }
    if !all.is_empty() {
        text += "Time on a CPU a call, median and 95 % interval over pairs of watches of one process; user \
                 stacks: of its turns under two watches, whose samples are with and without them.\n\n";
        text += &pairs_table(all);
        text += "\n";
        for (one, stacks) in all.iter().filter_map(|one| Some((one, one.stacks?))) {
            text += &format!("- {}: {}\n", one.part.name, stacks.text(&one.added_percent()));
        }
        text += "\n";
    }
    text += &format!("- load of the machine: {}\n", conditions.loads());
    text + &format!("- `{}`, seed {}\n", conditions.command, conditions.seed)
}

fn pairs_table(all: &[Measured]) -> String {
    let heads = ["part", "on", "pairs", "without: ns a call", "with", "more: ns a call", "more: %"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let of = |samples: &[f64]| median(samples).unwrap_or(0.0);
    let shown = |samples: &[f64], decimals| {
        estimate(samples).map_or(String::new(), |found| interval(found, decimals))
    };
    for one in all {
        rows.push(vec![
            one.part.name.to_owned(),
            one.part.work.name().to_owned(),
            one.ns[0].len().to_string(),
            digits(of(&one.ns[0]), 0),
            digits(of(&one.ns[1]), 0),
            shown(&one.added_ns(), 0),
            shown(&one.added_percent(), 2),
        ]);
    }
    table(&rows, 2)
}

fn sweep(conditions: &Conditions, sampled: &[turns::Measured], all: &[Measured]) -> Sweep {
    let of_samples = SAMPLED.into_iter().flat_map(turns::Measured::parts);
    let parts = of_samples.chain(PARTS.iter().map(|part| part.name.to_owned())).collect();
    let sides = ["without", "with"];
    let axes = [("part", parts), ("side", sides.map(str::to_owned).to_vec())];
    let mut sweep = Sweep::new("anatomy", conditions, &axes);
    sweep.cases.extend(sampled.iter().flat_map(turns::Measured::cases));
    for one in all {
        for (side, samples) in sides.into_iter().zip(&one.ns) {
            let params = [("part", one.part.name), ("side", side), ("on", one.part.work.name())];
            let mut case = Case::new(&params, "on-cpu", "ns a call", samples);
            if side == "with" {
                case.extra.extend(one.stacks.iter().flat_map(|stacks| stacks.extra()));
            }
            sweep.cases.push(case);
        }
    }
    sweep.claims.extend(sampled.iter().flat_map(turns::Measured::claims));
    sweep
}
