//! The watched process: a loop of the shortest calls that have an argument, which times itself in pieces.
//!
//! The calls are a `getpgid` of processes that there are not, of 100,000 one after another, an `lseek` that stays where
//! it is, and a `getsid` of the same processes in another order each time: keys that come again in the order in which their
//! rows were made are read ahead by the processor. The result is the 5th percentile of the pieces, as a busy neighbour makes most of them slower and leaves some.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rustix::process::Pid;

use crate::child::{die_with_parent, own_path};
use crate::cpus;
use crate::d::questions::Call;
use crate::stats;

/// Pieces of a run.
const PIECES: u64 = 200;
/// Calls of a piece.
const CALLS: u64 = 2_000;
/// Arguments that differ.
const ARGUMENTS: u64 = 100_000;
/// The first of them: beyond every number of a process.
const FIRST: u64 = 5_000_000;

/// Steps through the arguments that meet each of them once: they have no divisor in common with their number.
const STEPS: [u64; 4] = [48_271, 69_621, 16_807, 39_373];

/// Calls of a run, of each kind.
pub(crate) const ALL_CALLS: u64 = PIECES * CALLS;

/// Options of the subject.
#[derive(Debug, clap::Args)]
pub(crate) struct SubjectArgs {
    #[arg(long)]
    cpu: usize,
    #[arg(long)]
    result: PathBuf,
}

/// Returns the command that makes the calls on `cpu` and writes its times to `result`.
pub(crate) fn argv(cpu: usize, result: &Path) -> Result<Vec<String>> {
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is not UTF-8");
    let (cpu, result) = (format!("--cpu={cpu}"), format!("--result={}", text(result)?));
    Ok(vec![text(&own_path()?)?, "d".to_owned(), "subject".to_owned(), cpu, result])
}

/// Returns ns per call from the subject's output.
pub(crate) fn read_result(result: &Path, call: Call) -> Result<f64> {
    let text = fs::read_to_string(result).context("cannot read the subject's result")?;
    let of_line = |line: &str| line.split(' ').nth(call as usize)?.parse().ok();
    let pieces: Vec<f64> = text.lines().filter_map(of_line).collect();
    if pieces.len() as u64 != PIECES {
        bail!("the subject did not end its loop");
    }
    Ok(stats::undisturbed(&pieces).unwrap_or_default() / CALLS as f64)
}

/// Makes the calls.
pub(crate) fn run(args: &SubjectArgs) -> Result<()> {
    die_with_parent()?;
    cpus::stay_on(args.cpu)?;
    let file = tempfile::tempfile().context("cannot make a file")?;
    let mut pieces = [[0u128; 3]; PIECES as usize];
    for (number, piece) in pieces.iter_mut().enumerate() {
        let start = Instant::now();
        for turn in 0..CALLS {
            let pid = FIRST + (number as u64 * CALLS + turn) % ARGUMENTS;
            let _ = std::hint::black_box(rustix::process::getpgid(Pid::from_raw(pid as i32)));
        }
        piece[0] = start.elapsed().as_nanos();
        let start = Instant::now();
        for _ in 0..CALLS {
            let _ = std::hint::black_box(rustix::fs::tell(&file));
        }
        piece[1] = start.elapsed().as_nanos();
        let start = Instant::now();
        for turn in 0..CALLS {
            let at = number as u64 * CALLS + turn;
            let step = STEPS[(at / ARGUMENTS) as usize % STEPS.len()];
            let pid = FIRST + at % ARGUMENTS * step % ARGUMENTS;
            let _ = std::hint::black_box(rustix::process::getsid(Pid::from_raw(pid as i32)));
        }
        piece[2] = start.elapsed().as_nanos();
    }
    let line = |[getpgid, lseek, getsid]: &[u128; 3]| format!("{getpgid} {lseek} {getsid}\n");
    let text: String = pieces.iter().map(line).collect();
    fs::write(&args.result, text).context("cannot write the subject's result")
}
