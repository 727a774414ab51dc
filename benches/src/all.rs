//! `bench all`: runs every bench, one after another, and stores the results in one directory.
//!
//! The program prints the expected duration first. A bench that fails does not stop the others; failed benches are
//! listed at the end and decide the exit status. A signal ends the bench that is running, and then the whole run.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Instant, SystemTime};

use anyhow::{Result, bail};
use clap::Parser;
use iotomy_benches::bench::Bench;
use iotomy_benches::child::{Signals, own_path};
use iotomy_benches::options::Options;
use iotomy_benches::registry::{BENCHES, durations};
use iotomy_benches::summary::documents::{guide, pages};
use iotomy_host::rfc3339;

/// Run every bench, one after another, and write what they found onto one page
///
/// After a whole run, docs/ has its figures, too.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Only this bench; can be repeated
    #[arg(long, value_name = "BENCH", value_parser = BENCHES.iter().map(|bench| bench.name).collect::<Vec<_>>())]
    only: Vec<String>,

    /// The program that runs a bench, where it is not this one
    #[arg(long, value_name = "FILE", hide = true)]
    by: Option<PathBuf>,

    #[command(flatten)]
    options: Options,
}

/// How a bench ended.
enum End {
    Well,
    /// A target was missed, with `--check`.
    Missed,
    Failed(String),
    Signalled(u8),
}

pub(crate) fn all(args: &Args) -> Result<ExitCode> {
    let signals = Signals::hold()?;
    let is_wanted =
        |bench: &&Bench| args.only.is_empty() || args.only.iter().any(|name| name == bench.name);
    let benches: Vec<&Bench> = BENCHES.iter().copied().filter(is_wanted).collect();
    let expected = match args.options.quick {
        true => "a few minutes, of which nothing is published".to_owned(),
        false => durations(benches.iter().copied()),
    };
    println!("{} benches one after another: {expected}", benches.len());
    // All benches belong to one run, even when it continues past midnight.
    let day = args.options.day.clone().unwrap_or_else(|| rfc3339(SystemTime::now()));
    let (mut missed, mut failed) = (Vec::new(), Vec::new());
    for bench in benches {
        let began = Instant::now();
        println!("\n=== {}: {}\n", bench.name, bench.title);
        match run(bench, args, &day, &signals)? {
            End::Well => {}
            End::Missed => missed.push(bench.name),
            End::Failed(how) => failed.push(format!("{} ({how})", bench.name)),
            End::Signalled(status) => {
                eprintln!("bench-all: interrupted in {}", bench.name);
                return Ok(ExitCode::from(status));
            }
        }
        println!("\n=== {}: took {} s", bench.name, began.elapsed().as_secs());
    }
    println!();
    if let Err(error) = write(args) {
        failed.push(format!("the summary ({error:#})"));
    }
    if !missed.is_empty() {
        eprintln!("bench-all: a target was missed in {}", missed.join(", "));
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(ExitCode::from(u8::from(!missed.is_empty())))
}

fn run(bench: &Bench, args: &Args, day: &str, signals: &Signals) -> Result<End> {
    let by = args.by.clone().map_or_else(own_path, Ok)?;
    let Options { iotomy, peers, quick, seed, results, check, .. } = &args.options;
    let mut command = Command::new(by);
    command.arg(bench.name).arg("--iotomy").arg(iotomy).arg("--peers").arg(peers);
    command.args(["--end-with-parent", "--day", day]);
    command.args(quick.then_some("--quick")).args(check.then_some("--check"));
    if let Some(seed) = seed {
        command.args(["--seed", &seed.to_string()]);
    }
    if let Some(results) = results {
        command.arg("--results").arg(results);
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(End::Failed(format!("cannot start: {error}"))),
    };
    let status = signals.wait_passing_on(&mut child)?;
    Ok(match status.code() {
        Some(0) => End::Well,
        Some(1) if *check => End::Missed,
        // The shell's exit statuses for SIGHUP, SIGINT and SIGTERM.
        Some(code @ (129 | 130 | 143)) => End::Signalled(code as u8),
        _ => End::Failed(status.to_string()),
    })
}

/// Writes the pages of the stored results, and after a whole run also the guide's tables.
fn write(args: &Args) -> Result<()> {
    let Some(results) = args.options.below(true) else { return Ok(()) };
    let mut documents = pages(&results)?;
    if args.options.results.is_none() && args.only.is_empty() {
        documents.extend(guide(Path::new("."))?);
    }
    for document in documents.iter().filter(|document| !document.is_current()) {
        document.write()?;
        println!("wrote {}", document.path.display());
    }
    Ok(())
}
