//! `bench-anatomy`: what sampling adds to a command that is watched, in one run.
//!
//! A command with a fixed amount of work is watched by `iotomy trace` and by `iotomy anatomy`, side by
//! side in random order, and the time its threads were on a CPU is compared. Both are the kernel's exact
//! times of the same work; what the second has more is the samples: their interrupts, their programs,
//! and the caches they use.

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
use iotomy_benches::stats::{Estimate, estimate};
use iotomy_benches::tables::interval;
use iotomy_record::{Trace, store};
use serde_json::json;

/// Work whose time is mostly in calls that copy, with a stack like that of most reads.
const WORK: [&str; 6] =
    ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=100000", "status=none"];
const TARGET: f64 = 0.03;
const KINDS: [&str; 2] = ["trace", "anatomy"];

/// What sampling adds to a command that is watched, in one run
#[derive(Debug, Parser)]
struct Args {
    /// The iotomy to measure
    #[arg(long, value_name = "FILE", default_value = "target/release/iotomy")]
    iotomy: PathBuf,

    /// Pairs of runs
    #[arg(long, value_name = "N", default_value_t = 60, conflicts_with = "quick", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pairs: u32,

    /// Samples a second on each CPU
    #[arg(long, value_name = "HZ", default_value_t = 1_000)]
    rate: u32,

    #[command(flatten)]
    options: Options,
}

/// What was measured.
struct Measured {
    /// ns on a CPU, by kind, pair by pair.
    on_cpu: [Vec<f64>; 2],
    samples: u64,
    price_ns: Vec<f64>,
}

fn main() -> ExitCode {
    ended("bench-anatomy", bench(&Args::parse()))
}

fn bench(args: &Args) -> Result<ExitCode> {
    let work = tempfile::Builder::new().prefix("iotomy-bench.").tempdir();
    let work = work.context("cannot make a temporary folder")?;
    let mut conditions = Conditions::begin(&args.options)?;
    let measured = measure(args, work.path(), conditions.seed)?;
    progress("");
    conditions.end();
    let pairs = measured.on_cpu[0].iter().zip(&measured.on_cpu[1]);
    let added: Vec<f64> = pairs.map(|(trace, anatomy)| (anatomy / trace - 1.0) * 100.0).collect();
    let found = estimate(&added).context("there is no pair")?;
    let verdict = verdict(found);
    let results = Results {
        folder: "anatomy",
        title: "What sampling costs",
        text: text(args, &measured, found, verdict, &conditions),
        method: String::new(),
        record: sweep(args, &conditions, &measured, &added, verdict),
        is_on_one_line: true,
    };
    results.publish(&args.options, &conditions, true)?;
    Ok(results.status(&args.options))
}

fn measure(args: &Args, folder: &Path, seed: u64) -> Result<Measured> {
    let pairs = if args.options.quick { 6 } else { args.pairs };
    let mut measured =
        Measured { on_cpu: [Vec::new(), Vec::new()], samples: 0, price_ns: Vec::new() };
    let mut order = Order::new(seed);
    for pair in 0..pairs {
        progress(&format!("pair {} of {pairs}", pair + 1));
        let first = usize::from(order.coin());
        for kind in [first, 1 - first] {
            let trace = watched(args, folder, KINDS[kind], &mut measured)?;
            measured.on_cpu[kind].push(on_cpu(&trace));
        }
    }
    Ok(measured)
}

fn watched(args: &Args, folder: &Path, kind: &str, measured: &mut Measured) -> Result<Trace> {
    let path = folder.join("record.json");
    let mut watch = Command::new(&args.iotomy);
    watch.args([kind, "-q", "--json"]).arg(&path);
    if kind == "anatomy" {
        watch.args(["--rate", &args.rate.to_string()]);
    } else {
        watch.args(["--observer", "bpf"]);
    }
    let status = watch.arg("--").args(WORK).stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot run {}", args.iotomy.display()))?;
    if !status.success() {
        bail!("iotomy {kind} ended with {status}; `iotomy doctor` says what is missing");
    }
    if kind == "trace" {
        return Ok(store::load_trace(&path)?);
    }
    let anatomy = store::load_anatomy(&path)?;
    measured.samples += anatomy.sampling.samples;
    measured.price_ns.push(anatomy.sampling.price_ns_per_sample);
    Ok(anatomy.trace)
}

fn on_cpu(trace: &Trace) -> f64 {
    trace.ledger.iter().map(|row| (row.user_ns + row.calls_on_cpu_ns) as f64).sum()
}

fn verdict(found: Estimate) -> &'static str {
    let target = TARGET * 100.0;
    match () {
        () if found.high < target => "holds",
        () if found.low > target => "fails",
        () => "inconclusive",
    }
}

fn text(
    args: &Args,
    measured: &Measured,
    found: Estimate,
    verdict: &str,
    conditions: &Conditions,
) -> String {
    let median = |samples: &[f64]| iotomy_stats::median(samples).unwrap_or(0.0);
    format!(
        "Sampling {} times a second adds {} % to the time on a CPU, median and 95 % interval of {} pairs.\n\n\
         - target: below {:.0} %: {verdict}\n\
         - `{}` under `iotomy trace`: {:.1} ms on a CPU; under `iotomy anatomy`: {:.1} ms\n\
         - {} samples; a sample costs {:.1} µs by the calibration at each start, {:.2} % at this rate\n\
         - load of the machine: {}\n\
         - `{}`, seed {}\n",
        args.rate,
        interval(found, 2),
        measured.on_cpu[0].len(),
        TARGET * 100.0,
        WORK.join(" "),
        median(&measured.on_cpu[0]) / 1e6,
        median(&measured.on_cpu[1]) / 1e6,
        measured.samples,
        median(&measured.price_ns) / 1e3,
        median(&measured.price_ns) * f64::from(args.rate) / 1e7,
        conditions.loads(),
        conditions.command,
        conditions.seed,
    )
}

fn sweep(
    args: &Args,
    conditions: &Conditions,
    measured: &Measured,
    added: &[f64],
    verdict: &'static str,
) -> Sweep {
    let kinds = KINDS.map(str::to_owned).to_vec();
    let mut sweep = Sweep::new("anatomy", conditions, &[("watched by", kinds)]);
    for (kind, samples) in KINDS.into_iter().zip(&measured.on_cpu) {
        sweep.cases.push(Case::new(&[("watched by", kind)], "on-cpu", "ns", samples));
    }
    let prices = &measured.price_ns;
    sweep.cases.push(Case::new(&[("watched by", "anatomy")], "price of a sample", "ns", prices));
    sweep.claims.push(Claim {
        id: "sampling-price".to_owned(),
        source: "docs/anatomy.md",
        text: format!("{} samples a second add less than 3 % to the time on a CPU", args.rate),
        verdict,
        evidence: json!({ "added_percent": added, "samples": measured.samples }),
    });
    sweep
}
