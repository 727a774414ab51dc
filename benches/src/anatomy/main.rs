//! `bench-anatomy`: what `iotomy anatomy` adds to a process that is watched, part by part, in one run.
//!
//! A process does the same call over and over, pinned to a CPU. Two ways to watch it are held against
//! each other: for a moment each, in pairs of random order, on the same process with the same memory.
//! What is compared is the time on a CPU a call, by the kernel's exact times: neither the start of a
//! watch nor its end is in it, nor is time in which the process did not run.

mod work;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::Parser;
use iotomy_benches::conditions::Conditions;
use iotomy_benches::options::Options;
use iotomy_benches::order::Order;
use iotomy_benches::record::{Case, Claim, Sweep};
use iotomy_benches::results::Results;
use iotomy_benches::run::{ended, progress};
use iotomy_benches::stats::{Estimate, estimate, median};
use iotomy_benches::tables::{digits, interval, table};
use iotomy_record::{Sampling, Trace, store};
use serde_json::json;

use self::work::Work;

/// Samples may add less than this, in percent: the target.
const TARGET: f64 = 3.0;
/// How long a watch is, in seconds: some 200 samples.
const WINDOW: &str = "0.2";
/// Rows beside that with a target have a pair for so many of its pairs.
const FEWER: u32 = 3;

/// What `iotomy anatomy` adds to a process that is watched, in one run
#[derive(Debug, Parser)]
struct Args {
    /// The iotomy to measure
    #[arg(long, value_name = "FILE", default_value = "target/release/iotomy")]
    iotomy: PathBuf,

    /// Pairs of watches with and without samples
    #[arg(long, value_name = "N", default_value_t = 60, conflicts_with = "quick", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pairs: u32,

    /// Samples a second on each CPU
    #[arg(long, value_name = "HZ", default_value_t = 1_000)]
    rate: u32,

    /// Only the part of this name
    #[arg(long, value_name = "PART")]
    only: Option<String>,

    #[command(flatten)]
    options: Options,
}

/// A way to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Trace,
    /// Anatomy with hardly a sample.
    Unsampled,
    Sampled,
    /// As unsampled, with stories.
    Stories,
}

impl Way {
    fn words(self, rate: u32) -> Vec<String> {
        let rate = rate.to_string();
        let words: &[&str] = match self {
            Self::Trace => &["trace", "--observer", "bpf"],
            Self::Unsampled => &["anatomy", "--rate", "1"],
            Self::Sampled => &["anatomy", "--rate", &rate],
            Self::Stories => &["anatomy", "--rate", "1", "--story=3"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

/// Something that is added to something, on some work.
struct Part {
    name: &'static str,
    work: Work,
    ways: [Way; 2],
}

static PARTS: [Part; 4] = [
    Part { name: "samples", work: Work::Zero, ways: [Way::Unsampled, Way::Sampled] },
    Part { name: "all of anatomy", work: Work::Zero, ways: [Way::Trace, Way::Sampled] },
    Part { name: "block I/O and read-ahead", work: Work::File, ways: [Way::Trace, Way::Unsampled] },
    Part { name: "stories", work: Work::File, ways: [Way::Unsampled, Way::Stories] },
];

/// What was measured of a part.
struct Measured {
    part: &'static Part,
    /// ns on a CPU a call, by way, pair by pair.
    ns: [Vec<f64>; 2],
    samples: u64,
    /// What a sample costs, by the calibration at each start.
    price_ns: Vec<f64>,
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

fn main() -> ExitCode {
    let words: Vec<String> = env::args().collect();
    let done = match words.as_slice() {
        [_, own, word, file] if own == "work" => {
            work::run(word, Path::new(file)).map(|()| ExitCode::SUCCESS)
        }
        _ => bench(&Args::parse()),
    };
    ended("bench-anatomy", done)
}

fn bench(args: &Args) -> Result<ExitCode> {
    let temporary = tempfile::Builder::new().prefix("iotomy-bench.").tempdir();
    let temporary = temporary.context("cannot make a temporary folder")?;
    let mut conditions = Conditions::begin(&args.options)?;
    let mut order = Order::new(conditions.seed);
    let wanted = |part: &&Part| args.only.as_deref().is_none_or(|only| part.name.contains(only));
    let all: Vec<Measured> = PARTS
        .iter()
        .filter(wanted)
        .map(|part| measure(args, temporary.path(), part, &mut order))
        .collect::<Result<_>>()?;
    progress("");
    conditions.end();
    let claim = all.iter().find(|one| one.part.name == PARTS[0].name).map(|one| claim(args, one));
    let results = Results {
        folder: "anatomy",
        title: "What anatomy costs",
        text: text(args, &all, claim.as_ref(), &conditions),
        method: String::new(),
        record: sweep(&conditions, &all, claim),
        is_on_one_line: true,
    };
    results.publish(&args.options, &conditions, args.only.is_none())?;
    Ok(results.status(&args.options))
}

fn measure(args: &Args, folder: &Path, part: &'static Part, order: &mut Order) -> Result<Measured> {
    let pairs = match (args.options.quick, part.name == PARTS[0].name) {
        (true, _) => 6,
        (false, true) => args.pairs,
        (false, false) => (args.pairs / FEWER).max(1),
    };
    let worker = part.work.start(folder)?;
    let mut measured = Measured { part, ns: Default::default(), samples: 0, price_ns: Vec::new() };
    for pair in 0..pairs {
        progress(&format!("{}: pair {} of {pairs}", part.name, pair + 1));
        let first = usize::from(order.coin());
        for side in [first, 1 - first] {
            let way = part.ways[side];
            let (trace, sampling) = watched(args, folder, way, worker.pid())?;
            measured.ns[side].push(a_call(&trace)?);
            if let (Way::Sampled, Some(sampling)) = (way, sampling) {
                measured.samples += sampling.samples;
                measured.price_ns.push(sampling.price_ns_per_sample);
            }
        }
    }
    Ok(measured)
}

/// Watches the process for a moment.
fn watched(args: &Args, folder: &Path, way: Way, pid: u32) -> Result<(Trace, Option<Sampling>)> {
    let path = folder.join("record.json");
    let mut watch = Command::new(&args.iotomy);
    watch.args(way.words(args.rate)).args(["-q", "-d", WINDOW, "--json"]).arg(&path);
    let status = watch.args(["-p", &pid.to_string()]).stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot run {}", args.iotomy.display()))?;
    if !status.success() {
        bail!("{watch:?} ended with {status}; `iotomy doctor` says what is missing");
    }
    if way == Way::Trace {
        return Ok((store::load_trace(&path)?, None));
    }
    let anatomy = store::load_anatomy(&path)?;
    Ok((anatomy.trace, Some(anatomy.sampling)))
}

/// ns on a CPU a call.
fn a_call(trace: &Trace) -> Result<f64> {
    let ns: u64 = trace.ledger.iter().map(|row| row.user_ns + row.calls_on_cpu_ns).sum();
    let calls: u64 = trace.calls.iter().map(|row| row.calls).sum();
    if calls == 0 {
        bail!("the process made no call while it was watched");
    }
    Ok(ns as f64 / calls as f64)
}

fn claim(args: &Args, measured: &Measured) -> Claim {
    let added = measured.added_percent();
    let verdict = match estimate(&added) {
        Some(Estimate { high, .. }) if high < TARGET => "holds",
        Some(Estimate { low, .. }) if low > TARGET => "fails",
        _ => "inconclusive",
    };
    Claim {
        id: "sampling-price".to_owned(),
        source: "docs/anatomy.md",
        text: format!(
            "{} samples a second add less than {TARGET} % to the time on a CPU",
            args.rate
        ),
        verdict,
        evidence: json!({ "added_percent": added, "samples": measured.samples }),
    }
}

fn text(args: &Args, all: &[Measured], claim: Option<&Claim>, conditions: &Conditions) -> String {
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
    let mut text = format!(
        "Time on a CPU a call, median and 95 % interval over pairs of watches of one process.\n\n{}\n",
        table(&rows, 2)
    );
    if let Some(claim) = claim {
        text += &format!("- {}: {}\n", claim.text, claim.verdict);
    }
    let prices: Vec<f64> = all.iter().flat_map(|one| one.price_ns.iter().copied()).collect();
    let share = of(&prices) * f64::from(args.rate) / 1e7;
    text += &format!(
        "- a sample costs {:.1} µs by the calibration at each start: {share:.2} % at this rate\n",
        of(&prices) / 1e3,
    );
    text += &format!("- load of the machine: {}\n", conditions.loads());
    text + &format!("- `{}`, seed {}\n", conditions.command, conditions.seed)
}

fn sweep(conditions: &Conditions, all: &[Measured], claim: Option<Claim>) -> Sweep {
    let parts = PARTS.iter().map(|part| part.name.to_owned()).collect();
    let sides = ["without", "with"];
    let axes = [("part", parts), ("side", sides.map(str::to_owned).to_vec())];
    let mut sweep = Sweep::new("anatomy", conditions, &axes);
    for one in all {
        for (side, samples) in sides.into_iter().zip(&one.ns) {
            let params = [("part", one.part.name), ("side", side), ("on", one.part.work.name())];
            sweep.cases.push(Case::new(&params, "on-cpu", "ns a call", samples));
        }
        if !one.price_ns.is_empty() {
            let params = [("part", one.part.name), ("side", "with")];
            sweep.cases.push(Case::new(&params, "price of a sample", "ns", &one.price_ns));
        }
    }
    sweep.claims.extend(claim);
    sweep
}
